package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"evenkeel/c/tables"
	"evenkeel/runtime/config"
)

// newRunCommand is `evenkeel run PROGRAM`. It becomes the program: there is no
// process in between, so signals, exit status, terminal and limits are the
// program's own.
func newRunCommand() *cobra.Command {
	settings := map[string]string{} // by the name of the variable
	c := &cobra.Command{
		Use:   "run [flags] [--] PROGRAM [ARGUMENTS…]",
		Short: "Run one rank of an MPI program under evenkeel",
		Long: `Run one rank of an MPI program under evenkeel. It stands behind mpirun or
srun, which starts it once for each rank, on every host:

  mpirun -np 4 evenkeel run ./app args…

It puts libevenkeel.so first into the program's LD_PRELOAD, and becomes the
program. The flags set the program's variables that evenkeel settings lists;
what stands behind the program belongs to the program.

libevenkeel.so is looked for in ../lib beside this command; EVENKEEL_LIB names
another.`,
		Example: `  mpirun -np 4 evenkeel run ./app input.dat
  mpirun -np 4 evenkeel run --out /scratch/profile --time all ./app
  mpirun -np 4 evenkeel run python3 solver.py --steps 10
  srun -n 4 evenkeel run ./app`,
		RunE: func(_ *cobra.Command, args []string) error {
			err := run(args, settings)
			return usageError{err} // it returns only if the program did not start
		},
	}
	c.Flags().SetInterspersed(false)
	for _, s := range config.Settings() {
		c.Flags().Var(&settingFlag{s, settings}, config.Flag(s), flagUsage(s))
	}
	return c
}

// run starts the program in this process's place. It returns only with an error.
func run(args []string, settings map[string]string) error {
	if len(args) == 0 {
		return errors.New("run needs a program: mpirun -np 4 evenkeel run ./app args…")
	}
	if launcher, is := asLauncher(args[0]); is {
		return errors.Errorf("%s starts ranks and is none itself: put evenkeel behind it, as in %s -np 4 evenkeel run ./app args…", args[0], launcher)
	}
	environ := os.Environ()
	for name, value := range settings {
		environ = setVariable(environ, name, value)
	}
	library, err := findLibrary(environ)
	if err != nil {
		return err
	}
	path, err := findProgram(args[0])
	if err != nil {
		return err
	}
	note, err := inspect(path, args[0], library)
	if err != nil {
		return err
	}
	if note != "" && isFirstRank(environ) {
		os.Stderr.WriteString("evenkeel: " + note + "\n")
	}
	environ = setVariable(environ, "LD_PRELOAD", preload(library, variable(environ, "LD_PRELOAD")))
	if settings, _ := config.Load(environ); settings.Lend() {
		environ = setVariable(environ, "LD_PRELOAD", withOpenMP(library, variable(environ, "LD_PRELOAD")))
	}
	environ = setVariable(environ, libraryVariable, "")
	err = syscall.Exec(path, args, environ)
	return errors.Errorf("cannot start %s: %v", path, err)
}

// isFirstRank is false in every rank but the first, where the launcher says
// which is which: what is to be said is said once.
func isFirstRank(environ []string) bool {
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"} {
		if rank := variable(environ, name); rank != "" {
			return rank == "0"
		}
	}
	return true
}

// settingFlag is the flag of one setting; what it is set to goes into values.
type settingFlag struct {
	setting tables.Setting
	values  map[string]string
}

// Set takes a value as the setting's variable does; a Bool also as true and
// false. Paths are made absolute: the program may change its directory.
func (f *settingFlag) Set(value string) error {
	if f.setting.Kind == tables.Bool {
		if on, err := strconv.ParseBool(value); err == nil {
			value = map[bool]string{true: "1", false: "0"}[on]
		}
	}
	if err := f.setting.Check(value); err != nil {
		return err
	}
	if f.setting.Kind == tables.Path && value != "" {
		absolute, err := filepath.Abs(value)
		if err != nil {
			return errors.WithStack(err)
		}
		value = absolute
	}
	f.values[f.setting.Name] = value
	return nil
}

func (f *settingFlag) String() string { return f.setting.Default }

func (f *settingFlag) Type() string {
	switch f.setting.Kind {
	case tables.Path:
		return "PATH"
	case tables.Int:
		return "N"
	case tables.Text, tables.Traffic:
		return "TEXT"
	}
	return strings.Join(f.setting.Values(), "|")
}

func flagUsage(s tables.Setting) string {
	meaning := strings.ReplaceAll(s.Meaning, "`", "") // between which pflag looks for the value's name
	if s.Unit == "" || strings.HasPrefix(meaning, s.Unit) {
		return meaning
	}
	return meaning + " (" + s.Unit + ")"
}
