package convert

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
	"github.com/geoalign/geoalign/weights"
	"gorgonia.org/tensor"
)

// AverageOptions say of which checkpoints of a run the mean is taken. One of Last and Best is above 0.
type AverageOptions struct {
	Last int // the newest so many
	Best int // the so many with the highest metric; earlier wins a tie
	Out  string
	Log  io.Writer // notes; nil: none
}

// Averaged is what Average wrote.
type Averaged struct {
	Path    string   `json:"path"`
	Steps   []int    `json:"steps"` // of the checkpoints
	Groups  []string `json:"groups"`
	Tensors int      `json:"tensors"`
	Numbers int      `json:"numbers"`
}

// averaged are the groups of a checkpoint that a mean is taken of: parameters and their momentum twins.
var averaged = []string{"model", train.MomentumGroup}

// Average writes the mean of the parameters of several checkpoints of the run at path to the run folder o.Out, as a
// checkpoint of the last one's step with its configuration and tokenizer. It is evaluated, embedded and exported as
// any; there is no optimiser in it, so training does not go on from it but may start from it (init.checkpoint).
// Memory holds the parameters once.
func Average(path string, o AverageOptions) (Averaged, error) {
	if (o.Last > 0) == (o.Best > 0) || o.Last < 0 || o.Best < 0 {
		return Averaged{}, console.Argument(
			"the mean of which checkpoints? Give one of --last and --best, above 0 (got %d and %d)", o.Last, o.Best)
	}
	if err := folder.Vacant(o.Out, console.Lines(o.Log).Say); err != nil {
		return Averaged{}, err
	}
	entries, err := chosen(path, o)
	if err != nil {
		return Averaged{}, err
	}
	a := averaging{groups: map[string][]state.Tensor{}}
	for _, e := range entries {
		if err := a.add(e); err != nil {
			return Averaged{}, err
		}
	}
	done := Averaged{Path: o.Out}
	var parts []state.Part
	for _, group := range averaged {
		list := a.groups[group]
		if len(list) == 0 {
			continue
		}
		for _, t := range list {
			done.Tensors, done.Numbers = done.Tensors+1, done.Numbers+len(t.Data.([]float32))
		}
		done.Groups = append(done.Groups, group)
		parts = append(parts, state.Values{Name: group, Memory: list})
	}
	for _, e := range entries {
		done.Steps = append(done.Steps, e.Step)
	}
	snap, err := checkpoint.Take(parts)
	if err != nil {
		return Averaged{}, err
	}
	snap.Files = a.files
	return done, newRun(o.Out, entries[len(entries)-1].Step, snap, console.Lines(o.Log).Say, nil)
}

// chosen lists the checkpoints of a run of which the mean is taken, by ascending step.
func chosen(path string, o AverageOptions) ([]checkpoint.Entry, error) {
	dir := path
	if folder.HasRun(path) {
		dir = filepath.Join(path, runlog.CheckpointsDir)
	}
	all, err := checkpoint.List(dir)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 && dir != path {
		return nil, console.Argument("%s has no checkpoint so far: train it first", path)
	}
	if len(all) == 0 {
		return nil, console.Argument("%s holds no checkpoints: give a run folder, not that of a step", path)
	}
	newest, err := checkpoint.Open(dir)
	if err != nil {
		return nil, err
	}
	defer newest.Close()
	if newest.Notice != "" {
		return nil, fmt.Errorf("%s: a mean without it would be another one: remove its folder to take that",
			newest.Notice)
	}
	// left by a run that went back
	all = slices.DeleteFunc(all, func(e checkpoint.Entry) bool { return e.Step > newest.Step })
	n, what, key := o.Last, "checkpoints", "train.keep_last"
	if o.Best > 0 {
		n, what, key = o.Best, "checkpoints with an evaluation", "train.keep_best"
		all = slices.DeleteFunc(all, func(e checkpoint.Entry) bool { return e.Metric == nil })
		if len(all) > 0 { // by the rule of the newest, train.keep_best_by
			by := all[len(all)-1].BestBy
			all = slices.DeleteFunc(all, func(e checkpoint.Entry) bool { return e.BestBy != "" && e.BestBy != by })
		}
		slices.SortStableFunc(all, func(a, b checkpoint.Entry) int { return cmp.Compare(*b.Metric, *a.Metric) })
		all = all[:min(n, len(all))]
		slices.SortFunc(all, func(a, b checkpoint.Entry) int { return a.Step - b.Step })
	}
	if len(all) < n {
		if cfg, err := setup.OwnConfig(newest); err == nil && cfg.Has(section.Fitted) {
			return nil, noMean(cfg)
		}
		return nil, console.Argument("%s has %d %s, and the mean of %d is wanted: take fewer, or keep more in training (%s)", path, len(all), what, n, key)
	}
	return all[len(all)-n:], nil
}

// noMean refuses a mean of a closed form.
func noMean(c config.Config) error {
	return console.Argument("model.system = %q is fitted at once, and has one checkpoint: a mean is of others",
		c.Model.System)
}

// averaging is the mean of what was added, and the files of the last checkpoint.
type averaging struct {
	count  int // checkpoints added
	cfg    config.Config
	from   string
	groups map[string][]state.Tensor
	files  map[string][]byte
}

// add adds a checkpoint, which must be of the model of those before.
func (a *averaging) add(e checkpoint.Entry) error {
	ck, err := checkpoint.Open(e.Path, averaged...)
	if err != nil {
		return err
	}
	defer ck.Close()
	cfg, err := setup.OwnConfig(ck)
	if err != nil {
		return err
	}
	if cfg.Has(section.Fitted) {
		return noMean(cfg)
	}
	if a.from != "" {
		if err := setup.Conflicts(a.cfg, cfg, config.FixedModel, fmt.Sprintf("%s was made", a.from),
			"take fewer checkpoints"); err != nil {
			return err
		}
	}
	first := a.from == ""
	a.count, a.cfg, a.from, a.files = a.count+1, cfg, e.Path, map[string][]byte{}
	for _, name := range []string{runlog.ConfigFile, train.TokenizerFile, train.ClassesFile} {
		if ck.HasFile(name) {
			if a.files[name], err = ck.File(name); err != nil {
				return err
			}
		}
	}
	if cfg.Has(section.Foldable) { // a mean of products is not a product of means
		cfg.Model = cfg.Model.Folded()
		if a.files[runlog.ConfigFile], err = cfg.Encode(); err != nil {
			return err
		}
	}
	for _, group := range averaged {
		if !ck.Has(group) {
			delete(a.groups, group) // not all of them have twins
			continue
		}
		params, err := train.Params(ck, group, a.cfg.Model, nil)
		if err != nil {
			return err
		}
		if first {
			for _, p := range params {
				a.groups[group] = append(a.groups[group],
					state.Tensor{Name: p.Name, Shape: p.Shape,
						Data: make([]float32, tensor.Shape(p.Shape).TotalSize())})
			}
		}
		if err := mean(a.groups[group], params, a.count, e.Path); err != nil {
			return err
		}
	}
	return nil
}

// mean adds the nth parameters to the mean of those before them, a list of the same ones,
//
//	m <- m + (x - m)/n
//
// so that what all have, such as a frozen tower, keeps its bits. Of a sum a third of it may be another number.
func mean(list []state.Tensor, params []weights.Param, n int, path string) error {
	if len(list) > 0 && len(list) != len(params) {
		return fmt.Errorf("%s has %d parameters, and the checkpoints before it %d: they are of other models", path,
			len(params), len(list))
	}
	for i, t := range list {
		p := params[i]
		if p.Name != t.Name || !slices.Equal(p.Shape, t.Shape) {
			return fmt.Errorf("%s has %s of shape %v, and the checkpoints before it %s of shape %v: they are of other models", path, p.Name, p.Shape, t.Name, t.Shape)
		}
		x := make([]float32, len(t.Data.([]float32)))
		if err := p.Read(x); err != nil {
			return err
		}
		to := t.Data.([]float32)
		for k, v := range x {
			m := float64(to[k])
			to[k] = float32(m + (float64(v)-m)/float64(n))
		}
	}
	return nil
}
