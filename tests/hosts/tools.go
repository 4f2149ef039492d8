package hosts

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

//go:embed namespaces/*.c
var sources embed.FS

// tools are the files of a cluster, all in dir.
type tools struct {
	dir     string
	cluster string // is the cluster's first process
	enter   string // runs a command on a host
}

func buildTools(dir string) (tools, error) {
	t := tools{dir: dir, cluster: filepath.Join(dir, "cluster"), enter: filepath.Join(dir, "enter")}
	for _, program := range []string{t.cluster, t.enter} {
		source := filepath.Base(program) + ".c"
		text, err := sources.ReadFile("namespaces/" + source)
		if err != nil {
			return tools{}, errors.Wrap(err, "read an embedded source")
		}
		if err := os.WriteFile(filepath.Join(dir, source), text, 0o644); err != nil {
			return tools{}, errors.Wrap(err, "write a source")
		}
		compile := exec.Command("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", program, source)
		compile.Dir = dir
		if output, err := compile.CombinedOutput(); err != nil {
			return tools{}, errors.Wrapf(err, "compile %s: %s", source, output)
		}
	}
	return t, nil
}

func (t tools) agent() string    { return filepath.Join(t.dir, "agent") }
func (t tools) hostFile() string { return filepath.Join(t.dir, "hostfile") }

// environment makes mpirun on any host use the cluster. Open MPI keeps its session files in the host's own
// /run, so that they go when the host goes.
func (t tools) environment() []string {
	return []string{
		"OMPI_ALLOW_RUN_AS_ROOT=1",
		"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"OMPI_MCA_plm_rsh_agent=" + t.agent(),
		"OMPI_MCA_orte_default_hostfile=" + t.hostFile(),
		"OMPI_MCA_orte_tmpdir_base=/run",
		"OMPI_MCA_oob_tcp_if_include=" + networkInterface,
		"OMPI_MCA_btl_tcp_if_include=" + networkInterface,
		"OMPI_MCA_rmaps_base_oversubscribe=1",
		"OMPI_MCA_hwloc_base_binding_policy=none",
		"OMPI_MCA_mpi_yield_when_idle=1",
	}
}

// writeMpirunFiles writes the list of hosts and the agent that takes the place of ssh.
func (t tools) writeMpirunFiles(holders []string, slots int) error {
	var hostFile, cases strings.Builder
	for host, holder := range holders {
		fmt.Fprintf(&hostFile, "%s slots=%d\n", name(host), slots)
		fmt.Fprintf(&cases, "%s) holder=%s ;;\n", name(host), holder)
	}
	agent := fmt.Sprintf(`#!/bin/sh
# Called like ssh: agent HOST COMMAND...
host=$1
shift
case $host in
%s*) echo "agent: there is no host $host" >&2; exit 255 ;;
esac
exec env -i HOME="$HOME" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    '%s' "$holder" sh -c "$*"
`, cases.String(), t.enter)

	if err := os.WriteFile(t.hostFile(), []byte(hostFile.String()), 0o644); err != nil {
		return errors.Wrap(err, "write the list of hosts")
	}
	return errors.Wrap(os.WriteFile(t.agent(), []byte(agent), 0o755), "write the agent")
}
