package convert

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/runlog"
	"github.com/geoalign/geoalign/weights"
)

// Export writes the model in the form of another program, see package export. With OpenOptions.Twin the momentum
// twins take the place of their parameters. Adapters of low rank, scales and shifts are taken in by the weights of
// their layers, but for PEFT, which has the adapters alone.
func Export(t *run.Trained, o export.Options) (export.Written, error) {
	m := export.Model{Config: t.Config}
	var err error
	var keep train.Kept // nothing is kept
	if o.To == export.PEFT {
		keep = func(string) (lora, ssf bool) { return true, true }
	}
	if m.Params, err = paramsOf(t, keep); err != nil {
		return export.Written{}, err
	}
	if o.To == export.ALBEF && !t.Twin {
		if m.Twins, err = teacherOf(t, m.Params); err != nil {
			return export.Written{}, err
		}
	}
	if t.Config.Tokenizes() {
		if m.Tokenizer, err = train.OpenTokenizer(t.Checkpoint); err != nil {
			return export.Written{}, err
		}
	}
	m.Metrics = measured(t)
	if keep == nil {
		m.Config.Model = m.Config.Model.Folded()
	}
	w, err := export.Write(m, o)
	if refused := (*export.RefusedError)(nil); errors.As(err, &refused) {
		err = &console.ArgumentError{Err: err}
	}
	if keep != nil {
		return w, err
	}
	if t.Config.Has(section.Adapters) {
		w.Notes = append(w.Notes, "adapters (model.lora) are merged into the weights of their layers")
	}
	if t.Config.Model.Tuning.SSF {
		w.Notes = append(w.Notes, "scales and shifts (model.tuning.ssf) are merged into the weights and biases of their layers")
	}
	return w, err
}

// measured are the numbers of the evaluation at the step of a checkpoint, none where the log of its run has not any.
func measured(t *run.Trained) map[string]float64 {
	rows, err := runlog.ReadMetrics(filepath.Join(folder.Of(t.Checkpoint), runlog.MetricsFile))
	if err != nil || t.Twin {
		return nil
	}
	values := map[string]float64{}
	for _, row := range rows {
		for name, v := range row.Values {
			if row.Step == t.Checkpoint.Step && strings.HasPrefix(name, "eval/") {
				values[name] = v
			}
		}
	}
	return values
}

// paramsOf are the parameters of the checkpoint: the weights of layers have taken their adapters in, but those that keep
// says.
func paramsOf(t *run.Trained, keep train.Kept) ([]weights.Param, error) {
	i := slices.IndexFunc(setup.ModelGroups, t.Checkpoint.Has)
	if i < 0 {
		return nil, fmt.Errorf("%s has no parameters", t.Checkpoint.Path)
	}
	list, err := train.Params(t.Checkpoint, setup.ModelGroups[i], t.Config.Model, keep)
	if err != nil || !t.Twin {
		return list, err
	}
	return withTwins(t, list, keep)
}

// withTwins returns parameters with twins instead of those that have one.
func withTwins(t *run.Trained, list []weights.Param, keep train.Kept) ([]weights.Param, error) {
	twins, err := train.Params(t.Checkpoint, train.MomentumGroup, t.Config.Model, keep)
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	for i, p := range list {
		if k := slices.IndexFunc(twins, func(q weights.Param) bool { return q.Name == p.Name }); k >= 0 {
			list[i] = twins[k]
		}
	}
	return list, nil
}

// teacherOf are the momentum twins, as momentum/NAME, and the features of the queue; none where there are none. What is
// locked of a tower is its own twin.
func teacherOf(t *run.Trained, params []weights.Param) (list []weights.Param, err error) {
	if t.Checkpoint.Has(train.MomentumGroup) {
		f, err := t.Checkpoint.Group(train.MomentumGroup)
		if err != nil {
			return nil, err
		}
		all, err := withTwins(t, params, nil)
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			_, twin := f.Lookup(p.Name)
			if tower := strings.HasPrefix(p.Name, "image/") || strings.HasPrefix(p.Name, "text/"); twin || tower {
				list = append(list, weights.Param{Name: "momentum/" + p.Name, Shape: p.Shape, Read: p.Read})
			}
		}
	}
	if t.Checkpoint.Has("queue") {
		f, err := t.Checkpoint.Group("queue")
		if err != nil {
			return nil, err
		}
		for _, side := range []string{"image", "text"} {
			if info, ok := f.Lookup(side); ok {
				list = append(list, weights.Param{Name: "queue/" + side, Shape: info.Shape,
					Read: func(dst []float32) error { return f.ReadFloat32(side, dst) }})
			}
		}
	}
	return list, nil
}
