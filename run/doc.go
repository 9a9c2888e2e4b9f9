// Package run makes and uses whole runs: it places a run in a folder, opens its data,
// engine and session, trains with checkpoints, evaluations and logs, goes on where an
// earlier process stopped, and opens what was trained to evaluate, embed, draw and query it.
// It prints nothing but on the writer or the Reporter that it is given, apart from
// warnings about libraries and caches that cannot be used, on standard error.
//
//	cfg, err := config.Load("configs/quickstart.toml", nil)
//	...
//	r, err := run.New(ctx, cfg, run.Options{Log: os.Stderr})
//	...
//	defer r.Close()
//	result, err := r.Train(ctx) // result.Path, result.Scores
//
// The command trainer is this package with flags and printing.
//
// With Options.Group several processes, ranks, are one run: all call New and Train with the same configuration, go through the
// same stages, and agree on the error of each (parallel.Agree). They are compared before the first step. Rank 0 writes the
// folder and reports; it decides what depends on the folder or on the time. Evaluations and embeddings share the encoding.
// No stage may exchange anything before an Agree on what can fail on one rank alone.
//
// Shape letters: N images, M texts, C channels of the features.
package run
