package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/eval/ablation"
	"github.com/geoalign/geoalign/run/ablate"
	"github.com/geoalign/geoalign/train/runlog"
)

// suiteFlags are the flags of a suite of ablations.
type suiteFlags struct {
	file, from, page string
}

func (f *suiteFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "suite", "", "suite `file`: several matrices and what they are to tell (instead of --config)")
	c.Flags().StringVar(&f.from, "from", "", "with --suite: train nothing, and read the result files in `folder`")
	c.Flags().StringVar(&f.page, "page", "", "with --suite: write the table between the marks of a `file` of Markdown")
}

// check refuses flags of a suite without one.
func (f *suiteFlags) check(c *cobra.Command) error {
	for _, name := range []string{"from", "page"} {
		if c.Flags().Changed(name) {
			return usageError{fmt.Errorf("--%s is of a suite: name its file with --suite", name)}
		}
	}
	return nil
}

// run makes the features and the runs of a suite, or reads its result files, and prints the table.
func (f *suiteFlags) run(c *cobra.Command, of *ablateFlags) error {
	if err := errors.Join(apart(c, "suite", "config"), apart(c, "from", "dry-run", "set", "only", "seeds", "retry")); err != nil {
		return err
	}
	o, err := of.options(c)
	if err != nil {
		return err
	}
	if f.from == "" && !of.dryRun {
		if err := f.features(c, of); err != nil {
			return err
		}
	}
	s, err := ablate.OpenSuite(f.file, f.from, o)
	if err != nil {
		return err
	}
	if of.dryRun {
		for _, a := range s.Matrices {
			listRuns(c.OutOrStdout(), a)
			fmt.Fprintln(c.OutOrStdout())
		}
		return nil
	}
	var made error
	if f.from == "" {
		if made = s.Run(c.Context()); s.Results == nil {
			return made
		}
	}
	if f.page != "" {
		if err := s.WritePage(f.page); err != nil {
			return errors.Join(made, err)
		}
	}
	if of.output.json {
		return errors.Join(made, printJSON(c.OutOrStdout(), s.Results))
	}
	fmt.Fprint(c.OutOrStdout(), s.Markdown())
	if f.from == "" {
		fmt.Fprintf(of.output.note(c), "\n%s, %s and the folder %s are in %s\n", ablate.TableFile, runlog.ReportFile,
			ablate.ResultsFolder, s.Out)
	}
	return made
}

// features makes the files of features that are not there yet, as trainer embed does.
func (f *suiteFlags) features(c *cobra.Command, of *ablateFlags) error {
	list, err := ablate.SuiteFeatures(f.file)
	if err != nil || list == nil {
		return err
	}
	root := ""
	for _, s := range of.sets {
		if key, value, ok := strings.Cut(s, "="); ok && strings.TrimSpace(key) == "data.root" {
			root = strings.TrimSpace(value)
		}
	}
	if root == "" {
		return usageError{errors.New("a suite with [[features]] needs the folder of its files: --set data.root=FOLDER")}
	}
	for _, x := range ablate.MissingFeatures(root, list) {
		fmt.Fprintf(of.output.note(c), "making %s with %s\n", x.Out, x.Model)
		e := newEmbedCommand()
		e.SetArgs(embedArgs(root, x))
		e.SetOut(of.output.note(c))
		e.SetErr(c.ErrOrStderr())
		e.SilenceUsage, e.SilenceErrors = true, true
		if err := e.ExecuteContext(c.Context()); err != nil {
			return fmt.Errorf("features %s: %w", x.Out, err)
		}
	}
	return nil
}

// embedArgs are the arguments of trainer embed for a file of features.
func embedArgs(root string, x ablation.Feature) []string {
	side, input := "--images", x.Images
	if x.Texts != "" {
		side, input = "--texts", x.Texts
	}
	return []string{"--model", x.Model, side, filepath.Join(root, input), "--out", filepath.Join(root, x.Out)}
}
