// Command trainer trains, evaluates and inspects image-text alignment models.
//
// Run "trainer --help" for the commands.
package main

import (
	"context"
	"fmt"
	"os"

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
