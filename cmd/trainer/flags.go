package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/run"
)

// configFlags are the flags of every command that reads a configuration.
type configFlags struct {
	file string
	sets []string // of --set and of the flags that stand for keys, in their order
}

// add declares the flags on c.
func (f *configFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "config", "", fileUsage("the defaults hold"))
	f.addSet(c)
	f.key(c, "seed", "seed of the run; same as --set run.seed=`N`", func(value string) ([]string, error) {
		if _, err := strconv.ParseUint(value, 10, 64); err != nil {
			return nil, errors.New("must be a whole number >= 0")
		}
		return []string{"run.seed=" + value}, nil
	})
}

// addSet declares --set.
func (f *configFlags) addSet(c *cobra.Command) {
	f.key(c, "set", "override a key, as in --set train.batch_size=64; repeatable, the last `path=value` of a key wins", func(value string) ([]string, error) {
		return []string{value}, nil
	})
}

// key declares a flag that stands for keys of the configuration: it does what --set does with
// the overrides that as returns, at its place among the other flags, so that the last one of
// a key wins.
func (f *configFlags) key(c *cobra.Command, name, usage string, as func(value string) ([]string, error)) {
	c.Flags().Func(name, usage, func(value string) error {
		sets, err := as(value)
		f.sets = append(f.sets, sets...)
		return err
	})
}

// overCheckpoint says what holds without --config in a command that starts from a checkpoint.
func overCheckpoint(c *cobra.Command) {
	c.Flags().Lookup("config").Usage = fileUsage("the checkpoint's own holds")
}

// fileUsage describes --config: otherwise says what holds without it.
func fileUsage(otherwise string) string {
	return "TOML `file` that describes the run, or a built-in one by name (trainer configs); without it " + otherwise
}

// takesRun lets c take the run or step folder that it reads as its argument RUN, or by --checkpoint.
func takesRun(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "checkpoint", "", "run or step `folder`; same as RUN")
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) != 1 || strings.HasSuffix(args[0], ".toml") || strings.Contains(args[0], "="):
			return noArgs(c, args)
		case *path != "":
			return fmt.Errorf("RUN %q and --checkpoint %q do not go together: leave one out", args[0], *path)
		}
		*path = args[0]
		return nil
	}
}

// addOut declares --out as the run folder.
func (f *configFlags) addOut(c *cobra.Command) {
	f.key(c, "out", "run `folder`; same as --set run.out=DIR", func(value string) ([]string, error) {
		if value == "" {
			return nil, errors.New("must name a folder")
		}
		return []string{"run.out=" + value}, nil
	})
}

// addPrompt declares --prompt, the name of what stands before every text.
func (f *configFlags) addPrompt(c *cobra.Command) {
	f.key(c, "prompt", "`name` of the prompt before every text, of an encoder that has some; same as --set data.prompt=NAME",
		func(value string) ([]string, error) { return []string{config.Override("data.prompt", value)}, nil })
}

// load reads and checks the configuration. extra overrides come last.
func (f *configFlags) load(c *cobra.Command, extra ...string) (config.Config, error) {
	cfg, notices, err := config.LoadNoted(f.file, slices.Concat(f.sets, extra))
	if quiet, _ := c.Flags().GetBool("quiet"); !quiet {
		tell(c.ErrOrStderr(), notices)
	}
	return cfg, err
}

// apart refuses --flag together with one of others, which it would silence.
func apart(c *cobra.Command, flag string, others ...string) error {
	if !c.Flags().Changed(flag) {
		return nil
	}
	for _, other := range others {
		if c.Flags().Changed(other) {
			return usageError{fmt.Errorf("--%s and --%s do not go together: leave one out", flag, other)}
		}
	}
	return nil
}

// tell prints notices of a configuration.
func tell(note io.Writer, notices []string) {
	for _, n := range notices {
		fmt.Fprintf(note, "note: %s\n", n)
	}
}

// outputFlags are the flags that say how a command reports.
type outputFlags struct {
	json  bool
	quiet bool
}

func (f *outputFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.json, "json", false, "print the result, and nothing else, as JSON on stdout")
	c.Flags().BoolVar(&f.quiet, "quiet", false, "print only the result, no messages and no progress")
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
	config configFlags
	output outputFlags
	resume string
	dryRun bool
}

func (f *runFlags) add(c *cobra.Command) {
	f.config.add(c)
	f.config.addOut(c)
	f.output.add(c)
	c.Flags().StringVar(&f.resume, "resume", "auto",
		"auto: resume from the latest checkpoint of the run folder if it has one; never: start anew; `PATH`: resume from that checkpoint")
	f.config.key(c, "max-steps", "length of the run in `steps`, instead of what the configuration says", func(value string) ([]string, error) {
		if n, err := strconv.Atoi(value); err != nil || n < 1 {
			return nil, errors.New("must be a whole number > 0")
		}
		return []string{"train.max_steps=" + value, "train.max_epochs=0", "train.max_samples=0", "train.max_minutes=0"},
			nil
	})
	c.Flags().BoolVar(&f.dryRun, "dry-run", false,
		"build the model, print memory, time, parameters and shapes, and exit")
}

// opening says how the command line opens a checkpoint.
func (f *runFlags) opening(c *cobra.Command) run.OpenOptions {
	return opening(c, &f.config, f.output.quiet)
}

// opening says how a checkpoint is opened with the flags of a configuration.
func opening(c *cobra.Command, f *configFlags, quiet bool) run.OpenOptions {
	out := outputFlags{quiet: quiet}
	return run.OpenOptions{Group: groupOf(c), File: f.file, Set: f.sets, Log: out.note(c),
		Prepare: func(cfg config.Config) error { return convertData(c, cfg, quiet) }}
}

// convertData makes the copies of features that must be converted before they are read, with a bar.
func convertData(c *cobra.Command, cfg config.Config, quiet bool) error {
	bar := newPhaseBar(c.ErrOrStderr(), quiet)
	defer bar.done()
	return source.Convert(c.Context(), cfg.Source(), bar.show)
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
