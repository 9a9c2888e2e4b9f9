package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/process"
)

// launchers are programs that start several processes on this machine, in the order in which they are looked for.
var launchers = []string{"mpirun", "mpiexec"}

// launched is the end of a program that this one has started in its place: what there is to say it has said.
type launched struct{ code int }

func (l launched) Error() string { return fmt.Sprintf("the processes ended with exit code %d", l.code) }

// launch runs this program with args as n processes of this machine.
func launch(c *cobra.Command, n int, args []string) error {
	if groupOf(c).Size() > 1 {
		return usageError{errors.New("--ranks starts processes itself: leave it out where a launcher such as mpirun has started several")}
	}
	path := ""
	for _, name := range launchers {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return fmt.Errorf("--ranks %d: there is no %s in PATH: install Open MPI or MPICH (on Debian openmpi-bin), or start this command by the launcher of the machine without --ranks", n, strings.Join(launchers, " or "))
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--ranks: where this program lies: %w", err)
	}
	defer process.Hold()() // the processes are asked to stop, and waited for
	flags, env := launcherFlags(c.Context(), path)
	p := exec.CommandContext(c.Context(), path, append(append(flags, "-n", strconv.Itoa(n), self), args...)...)
	p.Env = append(os.Environ(), env...)
	p.Stdin, p.Stdout, p.Stderr = nil, behind(c.OutOrStdout()), behind(c.ErrOrStderr())
	p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) }
	p.WaitDelay = time.Minute
	err = p.Run()
	if code := p.ProcessState.ExitCode(); err != nil && p.ProcessState != nil && code > 0 {
		return launched{code}
	}
	if err != nil {
		return fmt.Errorf("--ranks: %s: %w", path, err)
	}
	return nil
}

// behind returns the file behind an output of this command, which another process may then write to directly.
func behind(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.file
	}
	return w
}

// launcherFlags are those of the launcher at path for processes of one machine: that of Open MPI refuses more than there are
// cores and to run as root, and binds each to one core.
func launcherFlags(ctx context.Context, path string) (flags, env []string) {
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil || !strings.Contains(string(said), "Open MPI") && !strings.Contains(string(said), "OpenRTE") {
		return nil, nil
	}
	if os.Geteuid() == 0 {
		env = []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
	}
	return []string{"-q", "--oversubscribe", "--bind-to", "none"}, env
}

// without returns args without a flag that has a value, as --ranks 4 or --ranks=4.
func without(args []string, flag string) (out []string) {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == flag:
			i++
		case !strings.HasPrefix(args[i], flag+"="):
			out = append(out, args[i])
		}
	}
	return out
}
