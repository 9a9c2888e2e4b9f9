package run

import (
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/eval"
)

// tasksBeside lists the tasks that a run is evaluated on beside its own, without influence on
// which checkpoints are kept.
func tasksBeside(cfg config.Config, set *Split) (list []string) {
	if !cfg.Has(section.Stored) {
		if cfg.Has(section.ImagesAlone) || cfg.Has(section.Sentences) {
			return nil // both would read the other side; the probe of images alone is their own task
		}
		return cfg.Eval.Beside
	}
	if set.Len() > eval.PreservedNeighbours {
		list = append(list, TaskNeighbours)
	}
	if cfg.Eval.ZeroShot.Image != "" {
		list = append(list, TaskZeroShot)
	}
	return list
}

// checkBeside opens what these tasks read and looks for the number that compares checkpoints, so that nothing is found missing after
// hours of training.
func checkBeside(cfg config.Config, set *Split) error {
	if err := checkKeptBy(cfg, set); err != nil {
		return err
	}
	for _, task := range tasksBeside(cfg, set) {
		switch task {
		case TaskZeroShot:
			z, err := (Evaluation{Task: task, Config: cfg, Set: set}).openZeroShot()
			if err == nil {
				err = z.Close()
			}
			if err != nil {
				return err
			}
		case TaskSentences:
			if _, err := set.files().openSentences(cfg); err != nil {
				return err
			}
		case TaskSentiment:
			if _, _, err := set.files().openSentiment(cfg); err != nil {
				return err
			}
		case TaskProbe:
			labelled := false
			if set.Eval != nil { // examples are no split
				_, labelled = set.Eval.Labels()
			}
			if !labelled {
				return config.Errors{{Path: "eval.beside", Value: cfg.Eval.Beside, Msg: fmt.Sprintf("must not have %q, as data.kind %q has no classes", TaskProbe, cfg.Data.Kind), Hint: `use data.kind "folder" or "scenes"`}}
			}
		}
	}
	return nil
}
