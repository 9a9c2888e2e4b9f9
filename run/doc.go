// Package run makes whole runs: it places a run in a folder, opens its data, engine and session, trains with
// checkpoints, evaluations and logs, and resumes where an earlier process stopped. It opens what was trained, to
// evaluate it and to draw its page. It prints nothing but on the writer or the Reporter that it is given, apart from
// warnings about libraries and caches that cannot be used, on standard error.
//
//	cfg, err := config.Load("configs/quickstart.toml", nil)
//	...
//	r, err := run.New(ctx, cfg, run.Options{Log: os.Stderr})
//	...
//	defer r.Close()
//	result, err := r.Train(ctx) // result.Folder, result.Scores
//
// What else a person does with a checkpoint has a room of its own above this package: run/embed galleries, regions
// and queries, run/explain what scores rest on, run/convert models of other programs and runs made of others. Below it
// are run/setup (engine, tokenizer, towers, what fits a checkpoint), run/folder, run/record (which data it was) and
// run/console (what a person is told). The command trainer is these packages with flags and printing.
//
// With Options.Group several processes, ranks, are one run: all call New and Train with the same configuration, go
// through the same stages, and agree on the error of each (parallel.Agree). They are compared before the first step.
// Rank 0 writes the folder and reports; it decides what depends on the folder or on the time. Evaluations and
// embeddings share the encoding. No stage may exchange anything before an Agree on what can fail on one rank alone.
//
// Shape letters: N images, M texts, C channels of the features.
package run
