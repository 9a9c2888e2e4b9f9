package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/train/checkpoint"
)

func newInspectCommand() *cobra.Command {
	var out outputFlags
	var path, group string
	var printConfig, verify bool
	c := &cobra.Command{
		Use:   "inspect [PATH]",
		Short: "Show what a checkpoint holds: step, files, parameters, configuration",
		Long: `inspect shows what a checkpoint holds. PATH is a run folder (its latest checkpoint is
taken) or the folder of one step.

--verify reads every byte instead and compares it with the checksums that the checkpoint was
saved with: of a run folder all checkpoints, of a step folder that one. It exits with 1 where
one is damaged. Folders that were written before there were checksums are compared by their
sizes. train, eval, embed, report and finetune check the files that they read themselves, and
take the checkpoint before a damaged one, with a notice.`,
		Example: `  trainer inspect runs/quickstart
  trainer inspect runs/quickstart/checkpoints/step-00000100 --group momentum
  trainer inspect --checkpoint runs/quickstart --print-config
  trainer inspect runs/quickstart --verify
  trainer inspect runs/quickstart --json`,
		Args: func(c *cobra.Command, args []string) error {
			if path != "" {
				args = append(args, path)
			}
			if len(args) != 1 {
				return fmt.Errorf("%s needs one PATH, of a run or a step folder (got %d)", c.CommandPath(), len(args))
			}
			path = args[0]
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cmp.Or(apart(c, "verify", "print-config", "group"), apart(c, "print-config", "group", "json")); err != nil {
				return err
			}
			if verify {
				return verifyCheckpoints(c.OutOrStdout(), path, out.json)
			}
			r, err := run.Inspect(path, group)
			if err != nil {
				return err
			}
			switch {
			case out.json:
				return printJSON(c.OutOrStdout(), r)
			case printConfig:
				_, err := io.WriteString(c.OutOrStdout(), r.ConfigText)
				return err
			}
			if r.Notice != "" {
				fmt.Fprintln(out.note(c), r.Notice)
			}
			return printInspection(c.OutOrStdout(), r)
		},
	}
	out.add(c)
	c.Flags().StringVar(&path, "checkpoint", "", "same as `PATH`")
	c.Flags().StringVar(&group, "group", "", "file whose tensors are listed: model, momentum, optimizer, queue, graph or alignment; default: that of the model")
	c.Flags().BoolVar(&printConfig, "print-config", false, "print the configuration of the run as TOML")
	c.Flags().BoolVar(&verify, "verify", false, "compare every byte with the checksums of the checkpoints")
	return c
}

// verifyCheckpoints prints what a check of all checkpoints at path found, and returns an error
// if one is damaged.
func verifyCheckpoints(w io.Writer, path string, asJSON bool) error {
	list, err := checkpoint.Verify(path)
	if err != nil {
		return err
	}
	var damaged []string
	for _, v := range list {
		if v.Problem != "" {
			damaged = append(damaged, v.Problem)
		}
	}
	if asJSON {
		err = printJSON(w, map[string]any{"checkpoints": list, "damaged": len(damaged)})
	} else {
		err = printVerified(w, list)
	}
	if err == nil && damaged != nil {
		err = fmt.Errorf("%d of %s damaged: %s", len(damaged), words.Count(len(list), "checkpoint"), strings.Join(damaged, "; "))
	}
	return err
}

// printVerified writes for a person what Verify found.
func printVerified(w io.Writer, list []checkpoint.Verified) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, v := range list {
		if i > 0 {
			fmt.Fprintln(tw)
		}
		state := "whole"
		if v.Problem != "" {
			state = "damaged"
		}
		fmt.Fprintf(tw, "checkpoint\t%s\t%s\nfile\tbytes\tcrc32c\n", v.Path, state)
		for _, f := range v.Files {
			sum := f.Sum
			if sum == "" {
				sum = "-"
			}
			if f.Problem != "" {
				sum += "  damaged: " + f.Problem
			}
			fmt.Fprintf(tw, "%s\t%d\t%s\n", f.Name, f.Bytes, sum)
		}
	}
	return tw.Flush()
}

// printInspection writes what a checkpoint holds for a person.
func printInspection(w io.Writer, r *run.Inspection) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "checkpoint\t%s\nstep\t%d\n", r.Path, r.Step)
	if r.Metric != nil {
		fmt.Fprintf(tw, "metric\t%.2f %s\n", *r.Metric, r.Measure)
	}
	for _, key := range []string{"run.name", "run.seed", "model.system"} {
		section, name, _ := strings.Cut(key, ".")
		if m, ok := r.Config[section].(map[string]any); ok {
			fmt.Fprintf(tw, "%s\t%v\n", key, m[name])
		}
	}
	if r.Tokenizer != nil {
		fmt.Fprintf(tw, "tokenizer\t%s\n", r.Tokenizer)
	}
	if r.Data != nil {
		printData(tw, *r.Data)
	}
	fmt.Fprintf(tw, "\nfile\ttensors\tnumbers\tMB\n")
	for _, g := range r.Groups {
		fmt.Fprintf(tw, "%s\t%d\t%s\t%.1f\n", g.Name, g.Tensors, words.Thousands(g.Numbers), float64(g.Bytes)/1e6)
	}
	parts := map[string]int{}
	fmt.Fprintf(tw, "\n%s\tshape\tnumbers\n", r.Group)
	for _, t := range r.Tensors {
		first, _, _ := strings.Cut(t.Name, "/")
		parts[first] += t.Numbers
		fmt.Fprintf(tw, "%s\t%s\t%s\n", t.Name, shapeText(t.Shape), words.Thousands(t.Numbers))
	}
	fmt.Fprintf(tw, "\npart\tnumbers\n")
	for _, p := range slices.Sorted(maps.Keys(parts)) {
		fmt.Fprintf(tw, "%s\t%s\n", p, words.Thousands(parts[p]))
	}
	fmt.Fprintf(tw, "total\t%s\n", words.Thousands(r.Numbers))
	if r.Trained > 0 && r.Group == "model" {
		fmt.Fprintf(tw, "trained\t%s\n", words.Thousands(r.Trained))
	}
	return tw.Flush()
}

// printData writes what identifies the data of a run.
func printData(w io.Writer, d run.DataRecord) {
	fmt.Fprintf(w, "\ndata\tsamples\tsum of the list\tfiles\tMB\tsum of the files\n")
	for _, name := range slices.Sorted(maps.Keys(d.Splits)) {
		s := d.Splits[name]
		fmt.Fprintf(w, "%s\t%s\t%s\t", name, words.Thousands(s.Samples), s.List)
		if sum := s.Contents.Sum.String(); sum == "" {
			fmt.Fprintln(w, "-\t-\tnot read yet")
		} else {
			fmt.Fprintf(w, "%s\t%.1f\t%s\n", words.Thousands(s.Contents.Files), float64(s.Contents.Bytes)/1e6, sum)
		}
	}
}

// shapeText writes a shape as 768 x 3072, and that of a scalar as a dash.
func shapeText(shape []int) string {
	if len(shape) == 0 {
		return "-"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", " x "), "[]")
}
