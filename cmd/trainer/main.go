// Command trainer trains, evaluates and inspects image-text alignment models.
//
// Run "trainer --help" for the commands.
package main

import (
	"context"
	"os"

	"github.com/geoalign/geoalign/internal/kernel/library"
)

func main() {
	library.ProbeInChild()
	ctx, stop := context.WithCancelCause(context.Background())
	reload := hangup(func() bool { return terminalOf(os.Stderr) != nil })
	go watcher{stop: func() { stop(nil) }, reload: reload, exit: os.Exit, out: os.Stderr, grace: grace}.watch(signals())
	broken := func() { stop(errUnread) }
	os.Exit(execute(ctx, os.Args[1:], outlet(os.Stdout, broken), outlet(os.Stderr, broken)))
}
