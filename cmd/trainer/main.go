// Command trainer trains, evaluates and inspects image-text alignment models.
//
// Run "trainer --help" for the commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/geoalign/geoalign/internal/kernel/library"
)

func main() {
	library.ProbeInChild()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go watch(signals, stop, os.Exit)
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// watch asks the command to save and stop at the first signal, and leaves at once
// at the second.
func watch(signals <-chan os.Signal, stop context.CancelFunc, exit func(int)) {
	if _, ok := <-signals; !ok {
		return
	}
	stop()
	if _, ok := <-signals; !ok {
		return
	}
	exit(exitInterrupted)
}
