// Mine trains with a loss of this module, which has a table of its own in the file, and evaluates.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/run"
)

func main() {
	if err := train(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// train trains the configuration of a file with overrides, goes on where its folder has a run, and evaluates what is
// there then.
func train(file string, sets []string) error {
	ctx := context.Background()
	smoothed := config.Add[Smoothed]("objective.mine")
	cfg, err := config.Load(file, sets, smoothed)
	if err != nil {
		return err
	}
	r, err := run.New(ctx, cfg, run.Options{Log: os.Stderr})
	if err != nil {
		return err
	}
	_, err = r.Train(ctx)
	if closed := r.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	trained, err := run.Open(cfg.Run.Out, run.OpenOptions{Log: os.Stderr, Added: []config.Added{smoothed}})
	if err != nil {
		return err
	}
	defer trained.Close()
	if _, err := trained.Evaluate(ctx, "", "", nil); err != nil {
		return err
	}
	weight, _ := trained.Config.Get("objective.mine.weight")
	fmt.Println("evaluated a run of objective.mine.weight", weight)
	return nil
}
