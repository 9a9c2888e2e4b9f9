// Package evalfiles opens what evaluations read besides the splits of the data.
package evalfiles

import (
	"os"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
)

// ZeroShotInputs lists the files and folders of eval.zeroshot.
func ZeroShotInputs(cfg config.Config) (list []source.Input) {
	switch z := cfg.Eval.ZeroShot; {
	case cfg.Has(section.Stored):
		return zeroShotInputs(cfg)
	case cfg.Has(section.ImagesAlone), cfg.Has(section.Sentences):
		return nil
	default:
		return slices.Concat(source.Named(cfg.Source(), "eval.zeroshot.images", z.Images, true), source.Named(cfg.Source(), "eval.zeroshot.classes", z.Classes, false),
			source.Named(cfg.Source(), "eval.zeroshot.templates_file", z.TemplatesFile, false))
	}
}

// TextProbeInputs lists the files of eval.textprobe.
func TextProbeInputs(cfg config.Config) []source.Input {
	if cfg.Has(section.Stored) || cfg.Has(section.ImagesAlone) {
		return nil
	}
	p := cfg.Eval.TextProbe
	return append(source.Named(cfg.Source(), "eval.textprobe.train", p.Train, false), source.Named(cfg.Source(), "eval.textprobe.test", p.Test, false)...)
}

// SentencesInputs lists the files and folders of eval.sentences.
func SentencesInputs(cfg config.Config) (list []source.Input) {
	const key = "eval.sentences."
	if cfg.Has(section.Stored) || cfg.Has(section.ImagesAlone) {
		return nil
	}
	found := false // below eval.sentences.folder
	for _, t := range cfg.Eval.Sentences.Items() {
		found = found || t.Test == ""
		for _, name := range []string{t.Test, t.Train} {
			st, err := os.Stat(source.Below(cfg.Data.Root, name))
			list = append(list, source.Named(cfg.Source(), key+"tasks", name, err == nil && st.IsDir())...)
		}
	}
	if found {
		list = append(list, source.Under(cfg.Source(), key+"folder", cfg.Eval.Sentences.Folder, true)...)
	}
	return list
}
