package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/run"
)

// configFlags are the flags of every command that reads a configuration.
type configFlags struct {
	file string
	sets []string
	out  string
	seed uint64
}

// add declares the flags on c.
func (f *configFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "config", "", fileUsage("the defaults hold"))
	c.Flags().StringArrayVar(&f.sets, "set", nil, "override one key, as in train.batch_size=64 (repeatable; `path=value`)")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the run; same as --set run.seed=`N`")
}

// overCheckpoint says what holds without --config in a command that starts from a checkpoint.
func overCheckpoint(c *cobra.Command) {
	c.Flags().Lookup("config").Usage = fileUsage("the checkpoint's own holds")
}

// fileUsage describes --config: otherwise says what holds without it.
func fileUsage(otherwise string) string {
	return "TOML `file` that describes the run; without it " + otherwise
}

// addOut declares --out as the run folder.
func (f *configFlags) addOut(c *cobra.Command) {
	c.Flags().StringVar(&f.out, "out", "", "run `folder`; same as --set run.out=DIR")
}

// load reads and checks the configuration. extra overrides come last.
func (f *configFlags) load(c *cobra.Command, extra ...string) (config.Config, error) {
	cfg, notices, err := config.LoadNoted(f.file, f.overrides(c, extra...))
	if quiet, _ := c.Flags().GetBool("quiet"); !quiet {
		tell(c.ErrOrStderr(), notices)
	}
	return cfg, err
}

// tell prints notices of a configuration.
func tell(note io.Writer, notices []string) {
	for _, n := range notices {
		fmt.Fprintf(note, "note: %s\n", n)
	}
}

// overrides returns what the flags say as dotted.path=value. extra come last.
func (f *configFlags) overrides(c *cobra.Command, extra ...string) []string {
	sets := append([]string{}, f.sets...)
	if c.Flags().Changed("seed") {
		sets = append(sets, fmt.Sprintf("run.seed=%d", f.seed))
	}
	if f.out != "" {
		sets = append(sets, "run.out="+f.out)
	}
	return append(sets, extra...)
}

// outputFlags are the flags that say how a command reports.
type outputFlags struct {
	json  bool
	quiet bool
}

func (f *outputFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.json, "json", false, "print the result as JSON on stdout and nothing else there")
	c.Flags().BoolVar(&f.quiet, "quiet", false, "no messages and no progress, only the result")
}

// note is where a command writes what is not its result.
func (f *outputFlags) note(c *cobra.Command) io.Writer {
	if f.quiet {
		return io.Discard
	}
	return c.ErrOrStderr()
}

// runFlags are the flags of a training run.
type runFlags struct {
	config   configFlags
	output   outputFlags
	resume   string
	maxSteps int
	dryRun   bool
}

func (f *runFlags) add(c *cobra.Command) {
	f.config.add(c)
	f.config.addOut(c)
	f.output.add(c)
	c.Flags().StringVar(&f.resume, "resume", "auto", "auto: go on with the run folder's latest checkpoint if it has one; never: start anew; `PATH`: go on from that checkpoint")
	c.Flags().IntVar(&f.maxSteps, "max-steps", 0, "length of the run in steps, instead of what the configuration says")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "build the model, print shapes, parameters, memory and the time of a step, and exit")
}

// extra returns the overrides that the flags of a run stand for.
func (f *runFlags) extra() []string {
	if f.maxSteps == 0 {
		return nil
	}
	return []string{fmt.Sprintf("train.max_steps=%d", f.maxSteps), "train.max_epochs=0", "train.max_samples=0", "train.max_minutes=0"}
}

// load reads --config with the flags' overrides.
func (f *runFlags) load(c *cobra.Command) (config.Config, error) {
	return f.config.load(c, f.extra()...)
}

// opening says how the command line opens a checkpoint.
func (f *runFlags) opening(c *cobra.Command) run.OpenOptions {
	return run.OpenOptions{File: f.config.file, Set: f.config.overrides(c, f.extra()...), Log: f.output.note(c)}
}

// printJSON writes v as indented JSON.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the result as JSON: %w", err)
	}
	return nil
}

// configMap returns a configuration under the names that its file uses, for JSON.
func configMap(c config.Config) (map[string]any, error) {
	text, err := c.Encode()
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := toml.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("read the encoded configuration: %w", err)
	}
	return m, nil
}
