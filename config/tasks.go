package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/all"
	"github.com/geoalign/geoalign/tasks/classes"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
)

// Settings returns the sections of c for tasks.
func (c Config) Settings() (list tasks.Settings) {
	for _, f := range fields(&c) {
		if f.section() {
			list = append(list, f.value.Addr().Interface())
		}
	}
	return list
}

// taskLoss is the loss of a downstream task with the name of its section.
type taskLoss struct {
	name string
	tasks.Loss
}

// taskLosses lists the losses of downstream tasks that are on.
func (o Objective) taskLosses() (list []taskLoss) {
	for _, f := range fields(&Config{Objective: o}) {
		if l, ok := f.value.Addr().Interface().(tasks.Loss); ok && l.Trains() {
			list = append(list, taskLoss{strings.TrimPrefix(f.path, "objective."), l})
		}
	}
	return list
}

// task returns the loss of a downstream task that is on, nil for none.
func (o Objective) task() *taskLoss {
	if list := o.taskLosses(); len(list) > 0 {
		return &list[0]
	}
	return nil
}

// TaskLoss returns the section of the loss of a downstream task that has a weight; empty: none has.
func (o Objective) TaskLoss() string {
	if l := o.task(); l != nil {
		return "objective." + l.name
	}
	return ""
}

// Task returns the downstream task that a configuration trains and evaluates, by its loss or by its data; empty: none.
func (c Config) Task() string {
	switch l := c.Objective.task(); {
	case c.Has(section.Stored) || c.Has(section.Sentences):
		return ""
	case c.Has(section.Classes):
		return classes.Name
	case l != nil:
		if t, _ := tasks.Find(all.List, l.name); t.Evaluate != nil {
			return l.name
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
func (c Config) Pictures() int {
	if l := c.Objective.task(); l != nil {
		if x, ok := l.Loss.(tasks.TwoPictures); ok && x.ReadsTwo() {
			return 2
		}
	}
	return 1
}

// Writes says whether the model has the decoder that objective.vqa and objective.captioning train.
func (c Config) Writes() bool {
	return c.Objective.Captioning.Trains() || c.Objective.VQA.On()
}

// JointPairs says whether both sentences of a pair are one text.
func (c Config) JointPairs() bool { return c.Objective.SentencePairs.Joint() }

// checkTask checks that the loss of a downstream task stands alone and has its data.
func (c *Config) checkTask(k *checker) {
	losses := c.Objective.taskLosses()
	l := c.Objective.task()
	if t := taskOf(c.Data.Kind); t != nil {
		if _, own := c.sectionAt("objective." + t.Name); own {
			k.Training("data.kind", l != nil && l.name == t.Name, fmt.Sprintf("must not be %q", t.Kind),
				fmt.Sprintf("its samples are for objective.%s.weight > 0, as trainer finetune --task %s sets it",
					t.Name, t.Name))
		}
	}
	if l == nil {
		return
	}
	path := "objective." + l.name + ".weight"
	fusion := k.Has(section.Fusion)
	k.Require(path, k.Has(section.Captions) && !k.Has(section.Stored), "must be 0",
		k.Named()+" has no images with texts")
	k.Require(path, fusion, "must be 0", k.Named()+" has no fusion layers, which it reads")
	k.Require(path, !fusion || c.Model.Text.FusionLayers > 0, "must be 0 without fusion layers",
		"set model.text.fusion_layers")
	if t, _ := tasks.Find(all.List, l.name); t.Kind != "" {
		k.Training("data.kind", c.Data.Kind == t.Kind, fmt.Sprintf("must be %q", t.Kind),
			path+" > 0 is trained on these")
	}
	for _, x := range losses[1:] {
		k.Require(path, false, "must be 0", "one task is trained at a time: objective."+x.name+".weight is above 0")
	}
	alone := !slices.ContainsFunc(c.on(), func(x loss) bool {
		return x.at != "objective."+l.name &&
			!x.gives(section.Beside)
	})
	k.Require(path, alone, "must be 0 beside other losses",
		"a task is trained alone: set the weights of objective.itc, itm, mlm and others to 0, as trainer finetune --task "+l.name+" does")
}

// checkTowers checks what the losses of models of one side ask of their tower.
func (c *Config) checkTowers(k *checker) {
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
