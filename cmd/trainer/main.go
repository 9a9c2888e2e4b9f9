// Command trainer trains, evaluates and inspects image-text alignment models.
//
// Run "trainer --help" for the commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/geoalign/geoalign/internal/dynlib"
)

func main() {
	dynlib.ProbeInChild()
	if os.Getpid() == 1 {
		os.Exit(underInit())
	}
	faultsAsSignals()
	group, err := ranks()
	if err != nil {
		fmt.Fprintln(os.Stderr, "trainer:", err)
		os.Exit(exitFailed)
	}
	ctx, stop := context.WithCancelCause(among(context.Background(), group, os.Stderr))
	reload := hangup(func() bool { return terminalOf(os.Stderr) != nil })
	go watcher{stop: func() { stop(nil) }, reload: reload, exit: exitOf(group), out: os.Stderr, grace: grace,
		follows: group.Rank() > 0}.watch(signals())
	broken := func() { stop(errUnread) }
	leave(group, execute(ctx, os.Args[1:], outlet(os.Stdout, broken), outlet(os.Stderr, broken)))
}

// underInit runs the command line in a process of its own and returns its exit code. The first process of a container
// does so: the system spares that one from the signal by which a fault of Go ends, see faultsAsSignals, and its code
// would be 2.
func underInit() int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "trainer: where this program lies:", err)
		return exitFailed
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	asked := make(chan os.Signal, 8)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGHUP, os.Interrupt, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "trainer: start the program:", err)
		return exitFailed
	}
	terminal := terminalOf(os.Stdin) != nil
	go func() {
		for s := range asked {
			if !terminal || s == syscall.SIGTERM { // a terminal sends its signals to both
				_ = cmd.Process.Signal(s)
			}
		}
	}()
	err = cmd.Wait()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return exitDone
	case !errors.As(err, &ended):
		fmt.Fprintln(os.Stderr, "trainer:", err)
		return exitFailed
	case ended.ExitCode() >= 0:
		return ended.ExitCode()
	}
	if w, ok := ended.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return exitSignal + int(w.Signal())
	}
	return exitFailed
}
