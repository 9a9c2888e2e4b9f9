package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/mpi"
	"github.com/geoalign/geoalign/internal/process"
)

// Several processes that a launcher such as mpirun has started with the same command line are ranks of one command.
// Rank 0 alone prints and writes; all agree on how the command ends.

// ranks joins the processes that were started together with this one; parallel.Single is a process on its own.
func ranks() (parallel.Group, error) {
	w, err := mpi.Connect(mpi.Options{})
	if err != nil {
		return nil, err
	}
	if w == nil {
		return parallel.Single{}, nil
	}
	return w, nil
}

// rankedCommands are those that several processes can share. Others are run by one.
var rankedCommands = []string{"bench", "doctor", "embed", "eval", "finetune", "train", "validate"}

// company is what a command knows of the processes that it is run by.
type company struct {
	group parallel.Group
	warn  io.Writer // standard error of this rank, for what it alone has to say
}

type (
	companyKey struct{}
	argsKey    struct{}
)

// argsOf returns the command line of a command.
func argsOf(c *cobra.Command) []string {
	args, _ := c.Context().Value(argsKey{}).([]string)
	return args
}

// among returns a context for a command of a group.
func among(ctx context.Context, g parallel.Group, warn io.Writer) context.Context {
	return context.WithValue(ctx, companyKey{}, company{g, warn})
}

// companyOf returns what among has put into ctx; a process on its own without.
func companyOf(ctx context.Context) company {
	if c, ok := ctx.Value(companyKey{}).(company); ok {
		return c
	}
	return company{parallel.Single{}, io.Discard}
}

// groupOf returns the processes that share a command.
func groupOf(c *cobra.Command) parallel.Group { return companyOf(c.Context()).group }

// checkRanks refuses several processes for what one does.
func checkRanks(c *cobra.Command) error {
	if n := groupOf(c).Size(); n > 1 && (c.Parent() != c.Root() || !slices.Contains(rankedCommands, c.Name())) {
		return usageError{fmt.Errorf("%s is done by one process, and %d were started: only %s are shared",
			c.CommandPath(), n, strings.Join(rankedCommands, ", "))}
	}
	return nil
}

// agreed ends a command that has ended with err here and has told it with the exit code. It returns the code that all
// ranks end with: that of the first rank that failed. Where ranks cannot agree, as another one is gone, this one says
// what it knows and ends all that are left.
func (c company) agreed(err error, code int) int {
	if c.group.Size() == 1 || err == nil {
		return code
	}
	f := (*parallel.Failure)(nil)
	if !errors.As(err, &f) {
		c.abort(err)
		return max(code, exitFailed)
	}
	codes, failed := c.group.GatherInts(nil, []int32{int32(code)}) // which also waits until rank 0 has told why
	if failed != nil {
		c.abort(failed)
		return max(code, exitFailed)
	}
	return int(codes[max(0, f.Rank())])
}

// abort ends all ranks. Rank 0 has told err.
func (c company) abort(err error) {
	if c.group.Rank() > 0 && err != nil {
		fmt.Fprintf(c.warn, "rank %d: trainer: %v\n", c.group.Rank(), err)
	}
	if a, ok := parallel.As[parallel.Aborter](c.group); ok {
		a.Abort(nil)
	}
}

// leave ends the process of a command that all ranks have ended with code. They wait for each other.
func leave(g parallel.Group, code int) {
	if g.Size() == 1 {
		os.Exit(code)
	}
	if c, ok := g.(io.Closer); ok {
		if err := c.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "trainer:", err)
		}
	}
	mpi.Exit(code)
}

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

// launcherFlags are those of the launcher at path for processes of one machine: that of Open MPI refuses more than
// there are cores and to run as root, and binds each to one core.
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
