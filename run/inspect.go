package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// Inspection is what a checkpoint holds.
type Inspection struct {
	Path    string         `json:"path"`
	Step    int            `json:"step"`
	Metric  *float64       `json:"metric,omitempty"` // of the evaluation at this step
	Notice  string         `json:"notice,omitempty"`
	Groups  []GroupInfo    `json:"groups"`
	Group   string         `json:"group"` // the one that Tensors lists
	Numbers int            `json:"numbers"`
	Tensors []TensorInfo   `json:"tensors"`
	Config  map[string]any `json:"config,omitempty"`

	ConfigText string `json:"-"` // of the run
}

// GroupInfo is one file of a checkpoint.
type GroupInfo struct {
	Name    string `json:"name"`
	Tensors int    `json:"tensors"`
	Numbers int    `json:"numbers"`
	Bytes   int64  `json:"bytes"`
}

// TensorInfo is one tensor of a file.
type TensorInfo struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Shape   []int  `json:"shape"`
	Numbers int    `json:"numbers"`
}

// Inspect reads the description of the checkpoint at path, with the tensors of one of its
// files, such as model; no tensor is loaded.
func Inspect(path, group string) (*Inspection, error) {
	ckpt, err := checkpoint.Load(path)
	if err != nil {
		return nil, err
	}
	defer ckpt.Close()
	r := &Inspection{Path: ckpt.Path, Step: ckpt.Step, Metric: ckpt.Metric, Notice: ckpt.Notice, Group: group, Tensors: []TensorInfo{}}

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
		g := GroupInfo{Name: name}
		for _, t := range f.Tensors() {
			g.Tensors++
			g.Numbers += t.Len()
			g.Bytes += t.Bytes()
			if name == group {
				r.Tensors = append(r.Tensors, TensorInfo{t.Name, string(t.DType), append([]int{}, t.Shape...), t.Len()})
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
	slices.SortFunc(r.Tensors, func(a, b TensorInfo) int { return strings.Compare(a.Name, b.Name) })
	return r, r.readConfig(ckpt.Path)
}

// escapeGlob quotes the characters of a path that mean something to Glob.
func escapeGlob(path string) string {
	return strings.NewReplacer(`[`, `\[`, `*`, `\*`, `?`, `\?`).Replace(path)
}

// readConfig reads config.toml of the step folder or of the run folder two levels
// above it, if there is one.
func (r *Inspection) readConfig(stepFolder string) error {
	for _, dir := range []string{stepFolder, filepath.Join(stepFolder, "..", "..")} {
		file := filepath.Join(dir, runlog.ConfigFile)
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		r.ConfigText = string(text)
		if err := toml.Unmarshal(text, &r.Config); err != nil {
			return fmt.Errorf("%s is damaged: %w", file, err)
		}
		return nil
	}
	return nil
}
