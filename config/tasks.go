package config

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/all"
	"github.com/geoalign/geoalign/tasks/classes"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
)

// Settings returns the sections of c for tasks.
func (c Config) Settings() (list tasks.Settings) {
	for _, f := range c.sections() {
		list = append(list, f.pointer())
	}
	return list
}

// taskLosses lists the losses of downstream tasks that are on.
func (c *Config) taskLosses() []loss { return c.on(section.Downstream) }

// taskLoss returns the loss of a downstream task that is on; false: none is.
func (c *Config) taskLoss() (loss, bool) {
	if list := c.taskLosses(); len(list) > 0 {
		return list[0], true
	}
	return loss{}, false
}

// TaskLoss returns the section of the loss of a downstream task that has a weight; empty: none has.
func (c *Config) TaskLoss() string {
	l, _ := c.taskLoss()
	return l.at
}

// Task returns the downstream task that a configuration trains and evaluates, by its loss or by its data; empty: none.
func (c *Config) Task() string {
	switch l, trained := c.taskLoss(); {
	case c.Has(section.Stored) || c.Has(section.Sentences):
		return ""
	case c.Has(section.Classes):
		return classes.Name
	case trained:
		if t, _ := tasks.Find(all.List, l.name()); t.Evaluate != nil {
			return l.name()
		}
	}
	if t := taskOf(c.Data.Kind); t != nil {
		return t.Name
	}
	return ""
}

// taskOf returns the downstream task whose samples are of a kind of data, nil for none.
func taskOf(kind string) *tasks.Task {
	for _, t := range all.List {
		if t.Kind == kind && (source.Data{Kind: kind}).ReadsExamples() {
			return &t
		}
	}
	return nil
}

// Pictures is the number of pictures of a text in the fusion layers, 1 or 2.
func (c *Config) Pictures() int {
	if len(c.on(section.TwoPictures)) > 0 {
		return 2
	}
	return 1
}

// Writes says whether the model has the decoder that objective.vqa and objective.captioning train.
func (c *Config) Writes() bool { return len(c.on(section.Decoder)) > 0 }

// JointPairs says whether both sentences of a pair are one text.
func (c *Config) JointPairs() bool { return c.Objective.SentencePairs.Joint() }

// checkTask checks that the loss of a downstream task stands alone and has its data.
func (c *Config) checkTask(k *section.Checker) {
	losses := c.taskLosses()
	l, trained := c.taskLoss()
	if t := taskOf(c.Data.Kind); t != nil {
		if _, own := c.at("objective." + t.Name); own {
			k.Training("data.kind", l.name() == t.Name, fmt.Sprintf("must not be %q", t.Kind),
				fmt.Sprintf("its samples are for objective.%s.weight > 0, as trainer finetune --task %s sets it",
					t.Name, t.Name))
		}
	}
	if !trained {
		return
	}
	path := l.at + ".weight"
	fusion := k.Has(section.Fusion)
	k.Require(path, k.Has(section.Captions) && !k.Has(section.Stored), "must be 0",
		k.Named()+" has no images with texts")
	k.Require(path, fusion, "must be 0", k.Named()+" has no fusion layers, which it reads")
	k.Require(path, !fusion || c.Model.Text.FusionLayers > 0, "must be 0 without fusion layers",
		"set model.text.fusion_layers")
	if t, _ := tasks.Find(all.List, l.name()); t.Kind != "" {
		k.Training("data.kind", c.Data.Kind == t.Kind, fmt.Sprintf("must be %q", t.Kind),
			path+" > 0 is trained on these")
	}
	for _, x := range losses[1:] {
		k.Require(path, false, "must be 0", "one task is trained at a time: "+x.at+".weight is above 0")
	}
	alone := !slices.ContainsFunc(c.on(), func(x loss) bool {
		return x.at != l.at && !x.gives(section.Beside)
	})
	k.Require(path, alone, "must be 0 beside other losses",
		"a task is trained alone: set the weights of objective.itc, itm, mlm and others to 0, as trainer finetune --task "+l.name()+" does")
}

// checkTowers checks what the losses of models of one side ask of their tower.
func (c *Config) checkTowers(k *section.Checker) {
	if c.Has(section.Classes) {
		k.Require("model.head.dim", c.Model.Head.Dim == c.Model.Image.TokenWidth(),
			fmt.Sprintf("must be %d, the width of what the image tower gives", c.Model.Image.TokenWidth()),
			"features of "+k.Named()+" are that, without a projection")
		k.Training("model.image.freeze", !c.Model.Image.Freeze, "must be false",
			k.Named()+" trains the image tower: trainer eval --task probe fits a classifier to a frozen one")
	}
	if k.Has(section.SentencePairs) {
		k.Require("objective.sentence_pairs.encoding", c.Objective.SentencePairs.Encoding != sentencepairs.Joint ||
			c.Model.Text.MasksWords() && c.Model.Text.Pooling() == "class", `must be "separate" with this text tower`,
			"joint reads the first token of BERT or RoBERTa: set model.text.style and model.text.pool")
	}
}
