package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/record"
	"github.com/geoalign/geoalign/run/verify"
	"github.com/geoalign/geoalign/train/checkpoint"
)

func newInspectCommand() *cobra.Command {
	var out outputFlags
	var path, group string
	var printConfig, checked bool
	var sets []string
	c := &cobra.Command{
		Use:   "inspect [PATH]",
		Short: "Show what a checkpoint, gallery or other file holds, and verify it",
		Long: `inspect shows what a folder or file holds: a run (its latest checkpoint) or one step folder in
full; a gallery (embed), an index (.search), a file of features (.npy, .npz, .safetensors, .pt,
.pth, .parquet), an export, an ablation or a cache folder (data.cache_dir) in short.

--verify reads every byte and compares it with the checksums noted when it was written: all
checkpoints of a run, its log, configuration, galleries and data (--set data.root=FOLDER if these
have moved), or all runs of an ablation. Each file is whole, damaged, or without a checksum, in
which case its format is checked as far as possible; checkpoints older than checksums are compared
by size. The exit code is 1 if anything is damaged. Nothing found earlier is trusted, so damage of
the disk shows too.

train, eval, embed, report, finetune and search check the files they read by themselves. The first
five use the checkpoint before a damaged one, with a notice.`,
		Example: `  trainer inspect runs/quickstart
  trainer inspect runs/quickstart/checkpoints/step-00000100 --group momentum
  trainer inspect --checkpoint runs/quickstart --print-config
  trainer inspect runs/quickstart --verify
  trainer inspect runs/quickstart/embeddings-test --verify
  trainer inspect image.npz --verify
  trainer inspect runs/quickstart --json`,
		Args: func(c *cobra.Command, args []string) error {
			if path != "" {
				args = append(args, path)
			}
			if len(args) != 1 {
				return fmt.Errorf("%s needs one PATH, of a folder or a file that this program wrote (got %d)",
					c.CommandPath(), len(args))
			}
			path = args[0]
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cmp.Or(apart(c, "verify", "print-config", "group"),
				apart(c, "print-config", "group", "json")); err != nil {
				return err
			}
			kind, err := verify.Kind(path)
			if err != nil {
				return err
			}
			if checked {
				return verifyPath(c, path, kind, sets, out)
			}
			if len(sets) > 0 {
				return usageError{errors.New(
					"--set says where the data of a run lie, for --verify: add it, or leave --set out")}
			}
			if kind != verify.Run && kind != verify.Step {
				if err := cmp.Or(notOf(c, kind, "group"), notOf(c, kind, "print-config")); err != nil {
					return err
				}
				return describe(c, path, out.json)
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
	c.Flags().StringVar(&group, "group", "",
		"file whose tensors are listed: model, momentum, optimizer, queue, graph or alignment; default: that of the model")
	c.Flags().BoolVar(&printConfig, "print-config", false, "print the configuration of the run as TOML")
	c.Flags().BoolVar(&checked, "verify", false, "compare every byte with the checksums")
	c.Flags().StringArrayVar(&sets, "set", nil,
		"with --verify of a run, where its data lie now (repeatable; `path=value`, such as data.root=FOLDER)")
	return c
}

// notOf refuses a flag that is of checkpoints.
func notOf(c *cobra.Command, kind, flag string) error {
	if !c.Flags().Changed(flag) {
		return nil
	}
	return usageError{fmt.Errorf("--%s is of a run or a step folder, and this is of the kind %q: leave it out", flag,
		kind)}
}

// verifyPath prints what a check of everything at path found, and returns an error if something is damaged.
func verifyPath(c *cobra.Command, path, kind string, sets []string, out outputFlags) error {
	r, err := verify.Path(c.Context(), path, true)
	if err != nil {
		return err
	}
	var d *dataVerified
	if kind == verify.Run {
		if d, err = verifyData(c, path, sets, out); err != nil {
			return err
		}
	}
	switch {
	case out.json && d != nil:
		err = printJSON(c.OutOrStdout(), withField{r, "data", d})
	case out.json:
		err = printJSON(c.OutOrStdout(), r)
	default:
		err = printReport(c.OutOrStdout(), r)
		if d != nil {
			err = errors.Join(err, d.print(c.OutOrStdout()))
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(r.Err(), d.err())
}

// describe prints what a folder or file is that is not a checkpoint.
func describe(c *cobra.Command, path string, asJSON bool) error {
	r, err := verify.Path(c.Context(), path, false)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(c.OutOrStdout(), r)
	}
	return printReport(c.OutOrStdout(), r)
}

// printReport writes for a person what was found.
func printReport(w io.Writer, r *verify.Report) error {
	if r.Checkpoints != nil {
		if err := printVerified(w, r.Checkpoints); err != nil {
			return err
		}
		if len(r.Files) == 0 {
			return nil
		}
		fmt.Fprintln(w)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "kind\t%s\n", r.Kind)
	for _, f := range r.Facts {
		fmt.Fprintf(tw, "%s\t%s\n", f.What, words.Inline(f.Is))
	}
	if len(r.Files) > 0 {
		fmt.Fprintf(tw, "\nfile\tbytes\tchecksum\tstate\t\n")
	}
	for _, f := range r.Files {
		sum, state := cmp.Or(f.Sum, "-"), string(f.State)
		if f.Problem != "" {
			state += ": " + f.Problem
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%s\n", words.Inline(f.Name), f.Bytes, sum, cmp.Or(words.Inline(state), "-"),
			words.Inline(f.Holds))
	}
	return tw.Flush()
}

// printVerified writes for a person what Verify found.
func printVerified(w io.Writer, list []checkpoint.Verified) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, v := range list {
		if i > 0 {
			fmt.Fprintln(tw)
		}
		state := verify.NoSum // written before there were any: the sizes are those that were noted
		if slices.ContainsFunc(v.Files, func(f checkpoint.FileCheck) bool { return f.Sum != "" }) {
			state = verify.Whole
		}
		if v.Problem != "" {
			state = verify.Damaged
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
func printData(w io.Writer, d record.Data) {
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

// dataVerified is what a comparison of the data of a run with its record found.
type dataVerified struct {
	State string   `json:"state"` // same | changed | not compared
	Why   []string `json:"why,omitempty"`
}

// verifyData compares the data of a run with what the run recorded of them, nil for a run without a record. Data that
// cannot be opened, as on another machine, are not a fault of the run.
func verifyData(c *cobra.Command, dir string, sets []string, out outputFlags) (*dataVerified, error) {
	list, err := shown(c, out, func(ctx context.Context,
		progress func(phase string, done, of int)) ([]record.Difference, error) {
		return record.Verify(ctx, dir, sets, progress)
	})
	switch {
	case c.Context().Err() != nil:
		return nil, c.Context().Err()
	case errors.Is(err, fs.ErrNotExist):
		if _, missing := record.Read(dir); errors.Is(missing, fs.ErrNotExist) {
			return nil, nil
		}
		fallthrough
	case err != nil:
		return &dataVerified{"not compared",
			[]string{err.Error() + ": name the folder where the data lie with --set data.root=FOLDER"}}, nil
	}
	v := &dataVerified{State: "same"}
	for _, d := range list {
		v.State, v.Why = "changed", append(v.Why, d.String())
	}
	return v, nil
}

// print writes it for a person.
func (v *dataVerified) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "\ndata\t%s\n", v.State)
	for _, s := range v.Why {
		fmt.Fprintf(tw, "\t%s\n", words.Inline(s))
	}
	return tw.Flush()
}

// err is an error where the data have changed.
func (v *dataVerified) err() error {
	if v == nil || v.State != "changed" {
		return nil
	}
	return fmt.Errorf("the data are not those that the run was trained on: %s", strings.Join(v.Why, "; "))
}
