package tests

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
)

// Slurm is a cluster of one node under the batch system Slurm, which starts
// programs by srun. It trusts everybody, and is gone with its test.
type Slurm struct {
	conf string
}

var slurmConf = template.Must(template.New("slurm.conf").Parse(`ClusterName=evenkeel
SlurmctldHost={{.Host}}(127.0.0.1)
SlurmctldPort={{.Port}}
SlurmdPort={{.NodePort}}
SlurmUser={{.User}}
SlurmdUser={{.User}}
AuthType=auth/none
CredType=cred/none
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
KillWait=1
StateSaveLocation={{.Dir}}
SlurmdSpoolDir={{.Dir}}/node
SlurmctldPidFile={{.Dir}}/slurmctld.pid
SlurmdPidFile={{.Dir}}/slurmd.pid
NodeName=node NodeHostname={{.Host}} NodeAddr=127.0.0.1 CPUs=4
PartitionName=all Nodes=ALL Default=YES
`))

// StartSlurm starts Slurm's two daemons and waits until jobs can be run.
func StartSlurm(t *testing.T) *Slurm {
	t.Helper()
	requireProgram(t, "srun")
	host, err := os.Hostname()
	require.NoError(t, err)
	self, err := user.Current()
	require.NoError(t, err)
	dir := t.TempDir()
	s := &Slurm{conf: filepath.Join(dir, "slurm.conf")}
	file, err := os.Create(s.conf)
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, slurmConf.Execute(file, map[string]any{
		"Host": strings.Split(host, ".")[0], "User": self.Username, "Dir": dir, "Port": freePort(t), "NodePort": freePort(t)}))
	logs := [2]*output{s.daemon(t, "/usr/sbin/slurmctld", "-D", "-c"), s.daemon(t, "/usr/sbin/slurmd", "-D", "-N", "node")}
	require.Eventually(t, func() bool {
		state, _ := s.command(t.Context(), "sinfo", "--noheader", "--format=%t").Output()
		return strings.TrimSpace(string(state)) == "idle"
	}, time.Minute, 100*time.Millisecond, "%s\n%s", logs[0], logs[1])
	return s
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func (s *Slurm) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), "SLURM_CONF="+s.conf)
	return command
}

// daemon runs in the foreground, and ends with the test.
func (s *Slurm) daemon(t *testing.T, path string, args ...string) *output {
	t.Helper()
	var said output
	command := s.command(context.Background(), path, args...)
	command.Stdout, command.Stderr = &said, &said
	command.WaitDelay = time.Second
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		command.Process.Signal(syscall.SIGTERM)
		stop := time.AfterFunc(20*time.Second, func() { command.Process.Kill() })
		defer stop.Stop()
		command.Wait()
	})
	return &said
}

// Srun starts a program on two ranks, under evenkeel unless env is nil. The
// profile goes to a directory of the test's own.
func (s *Slurm) Srun(t *testing.T, env []string, program string, args ...string) *Running {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "profile")
	command := []string{"-n", "2", "--quiet"}
	if env != nil {
		command = append(command, fmt.Sprintf("--export=ALL,%s", strings.Join(append(env, "EVENKEEL_OUT="+dir), ",")), Evenkeel, "run")
	}
	srun := s.command(context.Background(), "srun", append(append(command, program), args...)...)
	return start(t, dir, srun)
}
