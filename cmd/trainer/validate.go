package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/run"
)

func newValidateCommand() *cobra.Command {
	var flags configFlags
	var out outputFlags
	var printConfig bool
	var ranks int
	c := &cobra.Command{
		Use:   "validate",
		Short: "Check a configuration and list every problem",
		Long: `validate reads a configuration as train would and lists every problem with its place, key and cure.
It also checks that the files and folders of the data exist, and that eval.folds divides the images
of its split. --ranks N checks it for N processes. The exit code is 0 without problems, else 2.`,
		Example: `  trainer validate --config configs/quickstart.toml
  trainer validate --config configs/quickstart.toml --set train.batch_size=64 --print
  trainer validate --config my.toml --json
  trainer validate --config my.toml --ranks 16`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := apart(c, "print", "json"); err != nil {
				return err
			}
			if ranks < 1 {
				return usageError{fmt.Errorf("--ranks must be > 0 (got %d)", ranks)}
			}
			cfg, err := flags.load(c)
			if n := max(ranks, groupOf(c).Size()); n > 1 && err == nil {
				cfg.Ranks = n
				err = cfg.Validate()
			}
			if err == nil {
				err = run.CheckInputs(cfg)
			}
			if err == nil {
				err = run.CheckFolds(c.Context(), cfg)
			}
			switch {
			case out.json:
				return validateJSON(c, cfg, err)
			case err != nil:
				return err
			case printConfig:
				text, err := cfg.Encode()
				if err != nil {
					return err
				}
				_, err = c.OutOrStdout().Write(text)
				return err
			}
			for _, a := range advice(cfg) {
				fmt.Fprintf(out.note(c), "note: %s\n", a)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: ok\n", cmp.Or(flags.file, "defaults"))
			return nil
		},
	}
	flags.add(c)
	flags.addOut(c)
	out.add(c)
	c.Flags().IntVar(&ranks, "ranks", 1, "check it as `N` processes would run it")
	c.Flags().BoolVar(&printConfig, "print", false, "print the resolved configuration as TOML")
	return c
}

// advice is that of a configuration, and whether this machine has the memory to train it,
// which another one may have.
func advice(cfg config.Config) []string {
	list := append(cfg.Advice(), run.ColumnCautions(cfg)...)
	if full := (*model.MemoryError)(nil); errors.As(model.Fits(cfg), &full) {
		list = append(list, full.Error())
	}
	return list
}

// problem is a config.Error in JSON.
type problem struct {
	Path    string `json:"path"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Where   string `json:"where,omitempty"`
	Text    string `json:"text"` // the line that a person sees
}

// validateJSON prints the outcome and passes the error on for the exit code.
func validateJSON(c *cobra.Command, cfg config.Config, failed error) error {
	result := struct {
		Valid    bool           `json:"valid"`
		Problems []problem      `json:"problems"`
		Advice   []string       `json:"advice"`
		Config   map[string]any `json:"config,omitempty"`
	}{Valid: failed == nil, Problems: []problem{}, Advice: []string{}}

	var list config.Errors
	if errors.As(failed, &list) {
		for _, e := range list {
			result.Problems = append(result.Problems, problem{e.Path, e.Msg, e.Hint, e.Where, e.Error()})
		}
	}
	if failed == nil {
		var err error
		if result.Config, err = configMap(cfg); err != nil {
			return err
		}
		result.Advice = append(result.Advice, advice(cfg)...)
	}
	if err := printJSON(c.OutOrStdout(), result); err != nil {
		return err
	}
	return failed
}
