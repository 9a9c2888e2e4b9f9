package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/train/checkpoint"
)

func newInspectCommand() *cobra.Command {
	var out outputFlags
	var path, group string
	var printConfig bool
	c := &cobra.Command{
		Use:   "inspect [PATH]",
		Short: "Show what a checkpoint holds: step, files, parameters, configuration",
		Long: `inspect shows what a checkpoint holds. PATH is a run folder (its latest checkpoint is
taken) or the folder of one step.`,
		Example: `  trainer inspect runs/quickstart
  trainer inspect runs/quickstart/checkpoints/step-00000100 --group momentum
  trainer inspect --checkpoint runs/quickstart --print-config
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
			r, err := inspect(path, group)
			if err != nil {
				return err
			}
			switch {
			case out.json:
				return printJSON(c.OutOrStdout(), r)
			case printConfig:
				_, err := io.WriteString(c.OutOrStdout(), r.configText)
				return err
			}
			if r.Notice != "" {
				fmt.Fprintln(out.note(c), r.Notice)
			}
			return r.print(c.OutOrStdout())
		},
	}
	out.add(c)
	c.Flags().StringVar(&path, "checkpoint", "", "same as `PATH`")
	c.Flags().StringVar(&group, "group", "model", "file whose tensors are listed: model, momentum, optimizer or queue")
	c.Flags().BoolVar(&printConfig, "print-config", false, "print the configuration of the run as TOML")
	return c
}

// inspection is what inspect reports.
type inspection struct {
	Path    string         `json:"path"`
	Step    int            `json:"step"`
	Metric  *float64       `json:"metric,omitempty"` // of the evaluation at this step
	Notice  string         `json:"notice,omitempty"`
	Groups  []groupInfo    `json:"groups"`
	Group   string         `json:"group"` // the one that Tensors lists
	Numbers int            `json:"numbers"`
	Tensors []tensorInfo   `json:"tensors"`
	Config  map[string]any `json:"config,omitempty"`

	configText string
}

type groupInfo struct {
	Name    string `json:"name"`
	Tensors int    `json:"tensors"`
	Numbers int    `json:"numbers"`
	Bytes   int64  `json:"bytes"`
}

type tensorInfo struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Shape   []int  `json:"shape"`
	Numbers int    `json:"numbers"`
}

// inspect reads the description of the checkpoint at path; no tensor is loaded.
func inspect(path, group string) (*inspection, error) {
	ckpt, err := checkpoint.Load(path)
	if err != nil {
		return nil, err
	}
	defer ckpt.Close()
	r := &inspection{Path: ckpt.Path, Step: ckpt.Step, Metric: ckpt.Metric, Notice: ckpt.Notice, Group: group, Tensors: []tensorInfo{}}

	files, err := filepath.Glob(filepath.Join(escapeGlob(ckpt.Path), "*.safetensors"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".safetensors"))
	}
	for _, name := range names {
		f, err := ckpt.Group(name)
		if err != nil {
			return nil, err
		}
		g := groupInfo{Name: name}
		for _, t := range f.Tensors() {
			g.Tensors++
			g.Numbers += t.Len()
			g.Bytes += t.Bytes()
			if name == group {
				r.Tensors = append(r.Tensors, tensorInfo{t.Name, string(t.DType), append([]int{}, t.Shape...), t.Len()})
			}
		}
		if name == group {
			r.Numbers = g.Numbers
		}
		r.Groups = append(r.Groups, g)
	}
	if !slices.Contains(names, group) {
		return nil, fmt.Errorf("%s has no group %q: it has %s", ckpt.Path, group, strings.Join(names, ", "))
	}
	slices.SortFunc(r.Tensors, func(a, b tensorInfo) int { return strings.Compare(a.Name, b.Name) })
	return r, r.readConfig(ckpt.Path)
}

// escapeGlob quotes the characters of a path that mean something to Glob.
func escapeGlob(path string) string {
	return strings.NewReplacer(`[`, `\[`, `*`, `\*`, `?`, `\?`).Replace(path)
}

// readConfig reads config.toml of the step folder or of the run folder two levels
// above it, if there is one.
func (r *inspection) readConfig(stepFolder string) error {
	for _, dir := range []string{stepFolder, filepath.Join(stepFolder, "..", "..")} {
		file := filepath.Join(dir, "config.toml")
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		r.configText = string(text)
		if err := toml.Unmarshal(text, &r.Config); err != nil {
			return fmt.Errorf("%s is damaged: %w", file, err)
		}
		return nil
	}
	return nil
}

// print writes the inspection for a person.
func (r *inspection) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "checkpoint\t%s\nstep\t%d\n", r.Path, r.Step)
	if r.Metric != nil {
		fmt.Fprintf(tw, "metric\t%.2f\n", *r.Metric)
	}
	for _, key := range []string{"run.name", "run.seed", "model.system"} {
		section, name, _ := strings.Cut(key, ".")
		if m, ok := r.Config[section].(map[string]any); ok {
			fmt.Fprintf(tw, "%s\t%v\n", key, m[name])
		}
	}
	fmt.Fprintf(tw, "\nfile\ttensors\tnumbers\tMB\n")
	for _, g := range r.Groups {
		fmt.Fprintf(tw, "%s\t%d\t%s\t%.1f\n", g.Name, g.Tensors, thousands(g.Numbers), float64(g.Bytes)/1e6)
	}
	parts := map[string]int{}
	fmt.Fprintf(tw, "\n%s\tshape\tnumbers\n", r.Group)
	for _, t := range r.Tensors {
		first, _, _ := strings.Cut(t.Name, "/")
		parts[first] += t.Numbers
		fmt.Fprintf(tw, "%s\t%s\t%s\n", t.Name, shapeText(t.Shape), thousands(t.Numbers))
	}
	fmt.Fprintf(tw, "\npart\tnumbers\n")
	for _, p := range slices.Sorted(maps.Keys(parts)) {
		fmt.Fprintf(tw, "%s\t%s\n", p, thousands(parts[p]))
	}
	fmt.Fprintf(tw, "total\t%s\n", thousands(r.Numbers))
	return tw.Flush()
}

// shapeText writes a shape as 768 x 3072, and that of a scalar as a dash.
func shapeText(shape []int) string {
	if len(shape) == 0 {
		return "-"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", " x "), "[]")
}

// thousands writes n with a comma every three digits.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
