package model

import (
	"slices"

	"github.com/geoalign/geoalign/config"
)

// checkTrained refuses a step that trains no parameter.
func (b *builder) checkTrained() error {
	if slices.ContainsFunc(b.params.list, func(q *Param) bool { return !q.Frozen && !q.Locked }) {
		return nil
	}
	key, m := "model.text.freeze", b.cfg.Model
	if m.Image.Freeze && !m.Text.Freeze {
		key = "model.image.freeze"
	}
	return config.Errors{{Path: key, Value: true, Msg: "leaves no parameter to train: no head, score or loss of this model has any",
		Hint: "set it to false, or tune the tower by model.tuning or model.lora without it"}}
}
