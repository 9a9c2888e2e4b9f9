package train

import (
	"errors"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// ErrNoAdapters says that a checkpoint has no adapters to merge.
var ErrNoAdapters = errors.New("train: the checkpoint has no adapters: model.lora.rank is 0")

// Merge returns the checkpoint of a model without adapters that computes what the adapted model of
// c does: the weights of adapted layers have taken them in (model.MergeLoRA). It holds the
// parameters, the configuration and the tokenizer; the teacher, the optimiser and the queue of the
// run are left out, so that it can be used and trained from but not resumed. c must stay open until
// the snapshot is saved.
func Merge(c *checkpoint.Checkpoint) (checkpoint.Snapshot, config.Config, error) {
	cfg, _, err := OpenConfig(c)
	var snap checkpoint.Snapshot
	if problems := (config.Errors)(nil); errors.As(err, &problems) {
		err = problems.Using()
	}
	if err != nil {
		return snap, cfg, err
	}
	if !cfg.Model.Adapts() {
		return snap, cfg, ErrNoAdapters
	}
	f, err := c.Group("model")
	if err != nil {
		return snap, cfg, err
	}
	tensors, err := merged(f, cfg.Model.LoRA)
	if err != nil {
		return snap, cfg, err
	}
	own := &runPart{}
	if own.State, err = ReadState(c); err != nil {
		return snap, cfg, err
	}
	own.Values = nil
	if snap, err = checkpoint.Take([]state.Part{own, state.Values{Name: "model", Memory: tensors}}); err != nil {
		return snap, cfg, err
	}
	cfg.Model.LoRA = config.Default().Model.LoRA
	text, err := cfg.Encode()
	if err != nil {
		return snap, cfg, err
	}
	snap.Files, snap.Metric = map[string][]byte{configFile: text}, c.Metric
	if c.HasFile(TokenizerFile) {
		snap.Files[TokenizerFile], err = c.File(TokenizerFile)
	}
	return snap, cfg, err
}

// merged returns the parameters of a file with adapters taken in by their layers.
func merged(f *safetensors.File, l config.LoRA) (list []state.Tensor, err error) {
	for _, info := range f.Tensors() {
		if strings.HasSuffix(info.Name, "/"+encoders.LoRADown) || strings.HasSuffix(info.Name, "/"+encoders.LoRAUp) {
			continue
		}
		x, err := f.Float32(info.Name)
		if err != nil {
			return nil, err
		}
		layer, isWeight := strings.CutSuffix(info.Name, "/weight")
		if _, has := f.Lookup(layer + "/" + encoders.LoRADown); isWeight && has {
			down, err := f.Float32(layer + "/" + encoders.LoRADown)
			if err != nil {
				return nil, err
			}
			up, err := f.Float32(layer + "/" + encoders.LoRAUp)
			if err != nil {
				return nil, err
			}
			model.MergeLoRA(x, down, up, l.Rank, l.Alpha/float64(l.Rank))
		}
		list = append(list, state.Tensor{Name: info.Name, Shape: info.Shape, Data: x})
	}
	return list, nil
}
