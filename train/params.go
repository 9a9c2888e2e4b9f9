package train

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/weights"
)

// Kept says of a layer whether its adapter of low rank and its scale and shift stay beside it; nil: none do.
type Kept func(layer string) (lora, ssf bool)

// Params lists the tensors of a group of a checkpoint, the parameters or the momentum encoder
// (MomentumGroup), each of which is read when it is asked for. Weights and biases take in the adapters of low rank,
// scales and shifts of m beside them (model.MergeLoRA, model.MergeSSF), but those that keep says: so the list is of a
// model without them that computes the same (config.Model.Folded). Among the twins a weight has the twins of what it
// takes in; it may be locked itself and have none. c must stay open.
func Params(c *checkpoint.Checkpoint, group string, m config.Model, keep Kept) ([]weights.Param, error) {
	f, err := c.Group(group)
	if err != nil {
		return nil, err
	}
	base := f
	if group == MomentumGroup {
		if base, err = c.Group("model"); err != nil {
			return nil, err
		}
	}
	var list []weights.Param
	done := map[string]bool{} // layers that have taken something in
	for _, info := range f.Tensors() {
		layer, name := splitName(info.Name)
		x := foldOf(f, layer, m, keep)
		switch {
		case !x.lora && !x.ssf, x.keeps(name):
			list = append(list, weights.Param{Name: info.Name, Shape: info.Shape,
				Read: func(dst []float32) error { return f.ReadFloat32(info.Name, dst) }})
		case !done[layer]:
			done[layer] = true
			params, err := x.params(base)
			if err != nil {
				return nil, fmt.Errorf("train: %s: %w", c.Path, err)
			}
			list = append(list, params...)
		}
	}
	return list, nil
}

// splitName cuts a parameter's name into that of its layer and its own.
func splitName(name string) (layer, own string) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}

// fold is what the weight and the bias of a layer take in of f.
type fold struct {
	f         *safetensors.File
	layer     string
	lora, ssf bool
	of        encoders.LoRA
}

// foldOf returns the fold of a layer.
func foldOf(f *safetensors.File, layer string, m config.Model, keep Kept) fold {
	x := fold{f: f, layer: layer, of: m.LoRA}
	has := func(name string) bool {
		_, ok := f.Lookup(layer + "/" + name)
		return ok
	}
	x.lora, x.ssf = has(encoders.LoRADown) && m.LoRA.Rank > 0, has(encoders.SSFScale) && m.Tuning.SSF
	if keep != nil {
		lora, ssf := keep(layer)
		x.lora, x.ssf = x.lora && !lora, x.ssf && !ssf
	}
	return x
}

// keeps says whether a parameter of the layer stays as it is.
func (x fold) keeps(name string) bool {
	switch name {
	case "weight":
		return false
	case "bias":
		return !x.ssf
	case encoders.LoRADown, encoders.LoRAUp, encoders.LoRAMetric:
		return !x.lora
	case encoders.SSFScale, encoders.SSFShift:
		return !x.ssf
	}
	return true
}

// params are the weight and, where it takes something in, the bias of the layer, of f or of base where f has not got
// them.
func (x fold) params(base *safetensors.File) (list []weights.Param, err error) {
	for _, name := range []string{"weight", "bias"} {
		path, from := x.layer+"/"+name, x.f
		info, ok := from.Lookup(path)
		if !ok {
			from = base
			info, ok = from.Lookup(path)
		}
		switch {
		case !ok && name == "weight":
			return nil, fmt.Errorf("%s has an adapter, or a scale, and no weight", x.layer)
		case !ok || x.keeps(name):
			continue
		}
		list = append(list, weights.Param{Name: path, Shape: info.Shape, Read: func(dst []float32) error {
			if err := from.ReadFloat32(path, dst); err != nil {
				return err
			}
			if name == "bias" {
				return x.scale(nil, dst)
			}
			if err := x.merge(dst, info.Shape); err != nil {
				return err
			}
			return x.scale(dst, nil)
		}})
	}
	return list, nil
}

// read returns a parameter of the layer.
func (x fold) read(name string) ([]float32, error) { return x.f.Float32(x.layer + "/" + name) }

// merge adds the adapter to a weight.
func (x fold) merge(weight []float32, shape []int) error {
	if !x.lora {
		return nil
	}
	down, err := x.read(encoders.LoRADown)
	if err != nil {
		return err
	}
	up, err := x.read(encoders.LoRAUp)
	if err != nil {
		return err
	}
	rank := x.of.Rank
	if len(down)%rank != 0 || len(up)%rank != 0 || len(down)/rank*(len(up)/rank) != len(weight) {
		return fmt.Errorf("the adapter of %s is not of rank %d (model.lora.rank) beside a weight of %v", x.layer, rank,
			shape)
	}
	if info, ok := x.f.Lookup(x.layer + "/" + encoders.LoRAMetric); ok {
		m, err := x.read(encoders.LoRAMetric)
		if err != nil {
			return err
		}
		block := 1 // of a diagonal
		if n := len(info.Shape); n > 1 {
			block = info.Shape[n-1]
		}
		if in := len(down) / rank; block < 1 || in*block != len(m) || in%block != 0 {
			return fmt.Errorf("the metric of %s of shape %v does not fit %d inputs (model.tuning.metric)", x.layer,
				info.Shape, in)
		}
		model.MergeMetric(down, m, rank, block)
	}
	model.MergeLoRA(weight, down, up, rank, x.of.Alpha/float64(rank))
	return nil
}

// scale scales a weight, and scales and shifts a bias.
func (x fold) scale(weight, bias []float32) error {
	if !x.ssf {
		return nil
	}
	scale, err := x.read(encoders.SSFScale)
	if err != nil {
		return err
	}
	var shift []float32
	if bias != nil {
		if shift, err = x.read(encoders.SSFShift); err != nil {
			return err
		}
	}
	if n := len(scale); n == 0 || len(weight)%n != 0 || len(bias)%n != 0 || len(bias) != len(shift) {
		return fmt.Errorf("the scale and shift of %s, of %d and %d values, do not fit its weight and bias", x.layer, n,
			len(shift))
	}
	model.MergeSSF(weight, bias, scale, shift)
	return nil
}

// folded returns the configuration of a checkpoint and what of its tuning stays in the parameters p of a model that is
// tuned as now says: adapters of the same rank, scale and metric, or without one, scales and shifts where the model has
// them.
func folded(c *checkpoint.Checkpoint, p *model.Params, now config.Model) (was config.Model, keep Kept, err error) {
	f, err := c.Group("model")
	if err != nil || !slices.ContainsFunc(f.Tensors(), func(x safetensors.Info) bool { return foldable(x.Name) }) {
		return was, nil, err
	}
	cfg, _, err := OpenConfig(c, nil)
	if problems := (config.Errors)(nil); errors.As(err, &problems) {
		err = problems.Using()
	}
	was = cfg.Model
	return was, func(layer string) (lora, ssf bool) {
		has := func(name string) bool { _, ok := p.Get(layer + "/" + name); return ok }
		_, scaled := f.Lookup(layer + "/" + encoders.SSFScale)
		ssf = has(encoders.SSFScale)
		lora = has(encoders.LoRADown) && was.LoRA.Rank == now.LoRA.Rank && was.LoRA.Alpha == now.LoRA.Alpha &&
			(ssf || !scaled)
		if metric, ok := f.Lookup(layer + "/" + encoders.LoRAMetric); ok {
			q, ok := p.Get(layer + "/" + encoders.LoRAMetric)
			lora = lora && ok && slices.Equal(q.Shape, metric.Shape)
		}
		return lora, ssf
	}, err
}

// foldable says whether a parameter is what weights can take in.
func foldable(name string) bool {
	_, own := splitName(name)
	return own == encoders.LoRADown || own == encoders.SSFScale
}
