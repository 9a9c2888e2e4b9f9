package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/bench"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/files"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	config        configFlags
	output        outputFlags
	steps, warmup int
	compare, save string
	failBelow     float64
	vary, against []string
	ranks         int
	encoding      inferenceFlags
	all           bool
	table         string
}

// peakTime is how long a matrix product is repeated for the peak. Tests shorten it.
var peakTime = time.Second

func newBenchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure a training step: samples per second, GFLOP/s, memory, time per phase and op",
		Long: `bench trains some steps on random data and shows where the time goes: samples per second, GFLOP/s
in matrix products and their share of the measured peak in the same precision, memory, and the
time of every phase and kind of op. The queue is full and distillation has its full weight, as in
the middle of a run. Graphs over the queue are timed separately, and a step is charged its share
of a rebuild (time of a rebuild / objective.geodesic.period_steps).

On a GPU (compute.device) it also lists the ops that run on the host, and the largest device
memory. Steps are replayed as a whole there; times of ops come from further steps, run op by op,
and may add up to more than a step.

  --save, --compare  store a result; show a later one beside it, with ratios
  --vary             a cost table with one row per value of batch, tokens, depth (of both
                     towers), queue, vocabulary, image, hidden (of alignment heads), threads,
                     precision, or any key of the configuration
  --against          compare two configurations step by step in turns, which shows differences of
                     a few per cent on a busy machine too
  --ranks            start several processes with mpirun and show, over all ranks, computation,
                     exchanges, what of them is hidden behind computation, and waiting. Ranks on
                     one machine share its processors and memory bandwidth. Started by mpirun or
                     srun itself, bench does the same on many machines
  --inference        encoding of images and texts of mixed lengths, as eval, embed and serve do
                     it: rows per second, and median and 95th percentile of the time of a batch
  --all              every configuration of configs/bench in every precision of the processor, and
                     matrix products on one thread. --save writes one file with machine, versions
                     and figures, which an interruption does not lose; --compare with --fail-below
                     finds training steps that became slower; --table prints the machines of a
                     folder of such files`,
		Example: `  trainer bench --config configs/bench/albef-small.toml
  trainer bench --config configs/bench/albef-base.toml --set compute.device=cuda --set compute.precision=bf16
  trainer bench --config configs/quickstart.toml --steps 20 --save before.json
  trainer bench --config configs/quickstart.toml --steps 20 --compare before.json --fail-below 0.95
  trainer bench --config configs/bench/albef-small.toml --set objective.itc.score=geodesic --against objective.itc.score=cosine
  trainer bench --config configs/bench/clip-small.toml --vary batch=32,64,128 --vary threads=1,2
  trainer bench --inference --config configs/bench/encode-base.toml --precisions fp32,bf16
  trainer bench --config configs/bench/clip-small.toml --ranks 2
  trainer bench --all --save docs/machines/zen5.json
  trainer bench --all --compare docs/machines/zen5.json --fail-below 0.9
  trainer bench --table docs/machines
  mpirun -n 16 --hostfile hosts trainer bench --config configs/bench/clip-small.toml --set train.batch_size=2048`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.config.add(c)
	f.output.add(c)
	f.encoding.add(c)
	c.Flags().IntVar(&f.steps, "steps", 5, "steps that are measured")
	c.Flags().IntVar(&f.warmup, "warmup", 2, "steps before that")
	c.Flags().StringVar(&f.save, "save", "", "write the result as JSON to `FILE`")
	c.Flags().StringVar(&f.compare, "compare", "", "set the result beside the one in `FILE`, which --save wrote")
	c.Flags().Float64Var(&f.failBelow, "fail-below", 0,
		"with --compare: exit with 1 if samples per second are less than `RATIO` of the earlier ones")
	c.Flags().IntVar(&f.ranks, "ranks", 0, "start `N` processes on this machine, by mpirun, and measure their steps")
	c.Flags().BoolVar(&f.all, "all", false, "measure all that is known of a machine")
	c.Flags().StringVar(&f.table, "table", "", "print the table over the machines whose files lie in `DIR`")
	c.Flags().StringArrayVar(&f.vary, "vary", nil,
		"make a table of what steps cost as one quantity grows, as in batch=8,16,32 (repeatable; `name=list`)")
	c.Flags().StringArrayVar(&f.against, "against", nil,
		"measure in turns with the configuration that has this override (repeatable; `KEY=VALUE`)")
	return c
}

// check refuses flags that do not go together and reads what --vary says.
func (f *benchFlags) check(c *cobra.Command) ([]bench.Axis, error) {
	switch {
	case f.steps < 1:
		return nil, fmt.Errorf("--steps must be > 0 (got %d)", f.steps)
	case f.warmup < 0:
		return nil, fmt.Errorf("--warmup must be >= 0 (got %d)", f.warmup)
	case c.Flags().Changed("fail-below") && !(f.failBelow > 0):
		return nil, fmt.Errorf("--fail-below must be > 0 (got %g)", f.failBelow)
	case f.failBelow > 0 && f.compare == "":
		return nil, errors.New("--fail-below needs --compare: the result to be no slower than")
	case c.Flags().Changed("ranks") && f.ranks < 1:
		return nil, fmt.Errorf("--ranks must be > 0 (got %d)", f.ranks)
	case len(f.against) > 0 && (f.ranks > 1 || groupOf(c).Size() > 1):
		return nil, errors.New("--against is measured by one process: start one, without --ranks")
	case f.all && (f.config.file != "" || len(f.vary)+len(f.against) > 0 || c.Flags().Changed("ranks") ||
		groupOf(c).Size() > 1):
		return nil, errors.New("--all goes with none of --config, --vary, --against and --ranks: it has a list of configurations and one process")
	case f.table != "" && (f.all || f.config.file != "" || len(f.config.sets) > 0 || f.save != "" || f.compare != "" ||
		len(f.vary)+len(f.against) > 0 || c.Flags().Changed("ranks")):
		return nil, errors.New("--table measures nothing: it goes with none of --all, --config, --set, --seed, --save, --compare, --vary, --against and --ranks")
	case f.compare != "" && len(f.vary) > 0:
		return nil, errors.New("--compare and --vary do not go together: compare one configuration at a time")
	}
	if len(f.against) > 0 && (f.compare != "" || len(f.vary) > 0) {
		return nil, errors.New("--against goes with neither --compare nor --vary: it compares one configuration with another by itself")
	}
	var list []bench.Axis
	for _, s := range f.vary {
		a, err := bench.ParseAxis(s)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

func (f *benchFlags) run(c *cobra.Command) error {
	list, err := f.check(c)
	if err == nil {
		err = f.encoding.check(c)
	}
	if err != nil {
		return usageError{err}
	}
	if f.encoding.on {
		return f.inference(c)
	}
	if f.table != "" {
		return f.machines(c)
	}
	if f.ranks > 1 {
		return launch(c, f.ranks, without(argsOf(c), "--ranks"))
	}
	var before bench.Result
	if f.compare != "" && !f.all {
		if before, err = bench.Read(f.compare); err != nil {
			return err
		}
	}
	bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet)
	defer bar.done()
	o := bench.Options{Steps: f.steps, Warmup: f.warmup, Peak: peakTime, Group: groupOf(c), Progress: bar.show}
	o.Say = func(format string, args ...any) { fmt.Fprintf(f.output.note(c), format+"\n", args...) }
	if f.all {
		return f.measureAll(c, o, bar.done)
	}
	load := func(sets ...string) (config.Config, error) { return f.config.load(c, sets...) }
	if len(list) > 0 {
		o.Peak /= 4
		if terminalOf(c.ErrOrStderr()) == nil { // where there is no bar
			o.Row = func(line string) { fmt.Fprintln(f.output.note(c), line) }
		}
		tables, err := bench.Tables(c.Context(), list, load, o)
		bar.done()
		if err != nil && len(tables) == 0 {
			return err
		}
		return errors.Join(f.tables(c, tables, err == nil), err) // what was measured before an interruption
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	if len(f.against) > 0 {
		other, err := load(f.against...)
		if err != nil {
			return err
		}
		d, err := bench.Against(c.Context(), cfg, other, f.against, o)
		bar.done()
		if err != nil {
			return err
		}
		return f.duel(c, d)
	}
	r, err := bench.Measure(c.Context(), cfg, o)
	bar.done()
	if err != nil {
		return err
	}
	return f.result(c, before, r)
}

// tables reports cost tables. Those that are not whole are kept and shown, but are not a result in JSON.
func (f *benchFlags) tables(c *cobra.Command, tables []bench.Table, whole bool) error {
	result := map[string]any{"tables": tables}
	kept := f.keep(c, result)
	w := c.OutOrStdout()
	switch {
	case f.output.json && whole:
		return errors.Join(printJSON(w, result), kept)
	case f.output.json:
		return kept
	}
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printTable(w, t)
	}
	return kept
}

// duel reports one configuration against another.
func (f *benchFlags) duel(c *cobra.Command, d bench.Duel) error {
	kept := f.keep(c, d)
	if f.output.json {
		return errors.Join(printJSON(c.OutOrStdout(), d), kept)
	}
	printDuel(c.OutOrStdout(), d)
	return kept
}

// result reports one result, beside an earlier one if there is one.
func (f *benchFlags) result(c *cobra.Command, before, r bench.Result) error {
	kept := f.keep(c, r)
	w := c.OutOrStdout()
	if f.compare == "" {
		if f.output.json {
			return errors.Join(printJSON(w, r), kept)
		}
		printResult(w, r)
		return kept
	}
	beside := bench.Compare(f.compare, before, r)
	for _, warning := range beside.Warnings {
		fmt.Fprintf(f.output.note(c), "note: %s\n", warning)
	}
	if f.output.json {
		err := printJSON(w, struct {
			bench.Result
			Comparison bench.Comparison `json:"comparison"`
		}{r, beside})
		if err != nil {
			return errors.Join(err, kept)
		}
	} else {
		printResult(w, r)
		fmt.Fprintln(w)
		printComparison(w, beside)
	}
	if s := beside.Speed(); s < f.failBelow {
		return errors.Join(fmt.Errorf("bench: %.2f of the samples per second of %s, less than --fail-below %g", s,
			f.compare, f.failBelow), kept)
	}
	return kept
}

// keep writes a result to --save, whole or not at all. One that cannot be written is printed all the same: it took
// its time to measure.
func (f *benchFlags) keep(c *cobra.Command, result any) error {
	if f.save == "" || groupOf(c).Rank() > 0 {
		return nil
	}
	var text bytes.Buffer
	if err := printJSON(&text, result); err != nil {
		return err
	}
	if err := files.Replace(f.save, text.Bytes()); err != nil {
		return fmt.Errorf("%w: choose another file with --save", err)
	}
	return nil
}
