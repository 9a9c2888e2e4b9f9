package train

import (
	"errors"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/weights"
)

// Params lists the tensors of a group of a checkpoint, the parameters or the momentum twins
// (TwinsGroup), each of which is read when it is asked for. Weights take in the adapters of l beside
// them (model.MergeLoRA) but those of the layers that keep says, nil for none: so the list is of a
// model without these adapters that computes the same. Among the twins a weight has the twins of its
// adapter; it is locked itself, so it has none. c must stay open.
func Params(c *checkpoint.Checkpoint, group string, l config.LoRA, keep func(layer string) bool) ([]weights.Param, error) {
	f, err := c.Group(group)
	if err != nil {
		return nil, err
	}
	base := f
	if group == TwinsGroup {
		if base, err = c.Group("model"); err != nil {
			return nil, err
		}
	}
	merges := func(layer, of string) bool {
		_, has := f.Lookup(layer + "/" + of)
		return has && l.Rank > 0 && (keep == nil || !keep(layer))
	}
	var list []weights.Param
	for _, info := range f.Tensors() {
		layer, name := "", info.Name
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			layer, name = name[:i], name[i+1:]
		}
		switch {
		case name == encoders.LoRAUp && merges(layer, name), name == "weight" && merges(layer, encoders.LoRADown):
		case name == encoders.LoRADown && merges(layer, name):
			p, err := merged(base, f, layer, l)
			if err != nil {
				return nil, fmt.Errorf("train: %s: %w", c.Path, err)
			}
			list = append(list, p)
		default:
			list = append(list, weights.Param{Name: info.Name, Shape: info.Shape, Read: func(dst []float32) error { return f.ReadFloat32(info.Name, dst) }})
		}
	}
	return list, nil
}

// merged is the weight of a layer in base that takes in the adapter in f.
func merged(base, f *safetensors.File, layer string, l config.LoRA) (weights.Param, error) {
	name := layer + "/weight"
	info, ok := base.Lookup(name)
	if !ok {
		return weights.Param{}, fmt.Errorf("%s has an adapter and no weight", layer)
	}
	return weights.Param{Name: name, Shape: info.Shape, Read: func(dst []float32) error {
		down, err := f.Float32(layer + "/" + encoders.LoRADown)
		if err != nil {
			return err
		}
		up, err := f.Float32(layer + "/" + encoders.LoRAUp)
		if err := errors.Join(err, base.ReadFloat32(name, dst)); err != nil {
			return err
		}
		if rank := l.Rank; len(down)%rank != 0 || len(up)%rank != 0 || len(down)/rank*(len(up)/rank) != len(dst) {
			return fmt.Errorf("the adapter of %s is not of rank %d (model.lora.rank) beside a weight of %v", layer, rank, info.Shape)
		}
		model.MergeLoRA(dst, down, up, l.Rank, l.Alpha/float64(l.Rank))
		return nil
	}}, nil
}
