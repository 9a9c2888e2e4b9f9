package run_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/tasks/probe"
)

// A run from a configuration. With Log: os.Stderr it tells how it goes on.
func Example() {
	cfg, err := config.Load("testdata/scenes.toml", nil) // or config.Default() with other fields
	if err != nil {
		log.Fatal(err)
	}
	cfg.Run.Out, _ = os.MkdirTemp("", "scenes")
	defer os.RemoveAll(cfg.Run.Out)

	r, err := run.New(context.Background(), cfg, run.Options{Resume: run.Auto})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	result, err := r.Train(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Scores.Task(), "on", result.Split, "with", result.Scores.Size())
	// Output: retrieval on val with 20 images, 20 texts
}

// What was trained is opened by the folder of its run or of one checkpoint.
func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "scenes")
	defer os.RemoveAll(dir)
	train(dir)

	t, err := run.Open(dir, run.OpenOptions{Set: []string{"eval.batch_size=5"}})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	scores, err := t.Evaluate(context.Background(), probe.Name, "val", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(scores.Task(), "at step", t.Checkpoint.Step)
	// Output: probe at step 8
}

// train makes the run of testdata in a folder.
func train(dir string) {
	cfg, err := config.Load("testdata/scenes.toml", []string{"run.out=" + dir})
	if err != nil {
		log.Fatal(err)
	}
	r, err := run.New(context.Background(), cfg, run.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Train(context.Background()); err != nil {
		log.Fatal(err)
	}
}
