package train

import (
	"errors"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// ErrNoAdapters says that a checkpoint has nothing that weights can take in.
var ErrNoAdapters = errors.New("train: the checkpoint has nothing to merge: model.lora.rank is 0 and model.tuning.ssf is false")

// Merge returns the checkpoint of a model that computes what the tuned model of c does without adapters of low rank,
// scales and shifts: the weights and biases of their layers have taken them in (Params). Bottlenecks and prompts stay
// as they are. It holds the parameters, the configuration and the tokenizer; the teacher, the optimiser and the queue
// of the run are left out, so that it can be used and trained from but not resumed. c must stay open until the snapshot
// is saved.
func Merge(c *checkpoint.Checkpoint) (checkpoint.Snapshot, config.Config, error) {
	cfg, _, err := OpenConfig(c, nil)
	var snap checkpoint.Snapshot
	if problems := (config.Errors)(nil); errors.As(err, &problems) {
		err = problems.Using()
	}
	if err != nil {
		return snap, cfg, err
	}
	if !cfg.Has(section.Foldable) {
		return snap, cfg, ErrNoAdapters
	}
	params, err := Params(c, "model", cfg.Model, nil)
	if err != nil {
		return snap, cfg, err
	}
	values := state.Values{Name: "model"}
	for _, p := range params {
		values.Memory = append(values.Memory, lazy(p.Name, p.Shape, p.Read))
	}
	own := &runPart{}
	if own.State, err = ReadState(c); err != nil {
		return snap, cfg, err
	}
	own.Values = nil
	if snap, err = checkpoint.Take([]state.Part{own, values}); err != nil {
		return snap, cfg, err
	}
	cfg.Model = cfg.Model.Folded()
	text, err := cfg.Encode()
	if err != nil {
		return snap, cfg, err
	}
	snap.Files, snap.Metric = map[string][]byte{configFile: text}, c.Metric
	for _, name := range []string{TokenizerFile, ClassesFile} {
		if c.HasFile(name) {
			if snap.Files[name], err = c.File(name); err != nil {
				return snap, cfg, err
			}
		}
	}
	return snap, cfg, nil
}
