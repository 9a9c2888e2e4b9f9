package run

import (
	"strconv"

	"github.com/geoalign/geoalign/config"
)

// FinetuneConfig returns the configuration of a run that fine-tunes the checkpoint at path
// for retrieval as ALBEF does: contrast and matching without masked language modelling, and
// all captions of an image positives of each other. The settings are those of o.File, or
// where it is empty of the checkpoint, with o.Set over them.
func FinetuneConfig(path string, o OpenOptions) (config.Config, error) {
	ck, err := openInit(path)
	if err != nil {
		return config.Config{}, err
	}
	defer ck.Close()
	sets := []string{"objective.mlm.weight=0", "objective.itc.positives=id", config.Override("init.checkpoint", path), "init.image.path=''", "init.text.path=''"}
	if o.File == "" { // what belongs to the run that the configuration is from
		sets = append(sets, "run.name=finetune", "run.out=''", "queue.start_steps=0")
	}
	o.Set = append(sets, o.Set...)
	cfg, err := ConfigOver(ck, o)
	if err != nil {
		return cfg, err
	}
	if cfg.Init.Checkpoint != path {
		return cfg, config.Errors{{Path: "init.checkpoint", Value: cfg.Init.Checkpoint, Msg: "is what is fine-tuned, " + strconv.Quote(path),
			Hint: "leave it out, or name the other checkpoint with --checkpoint"}}
	}
	if err := sameSplits(ck, cfg); err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate() // of a stored one not everything is
}
