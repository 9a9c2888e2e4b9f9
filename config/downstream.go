package config

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
)

// EntailmentKind is the data.kind and the task of visual entailment.
const EntailmentKind = "entailment"

// ClassificationTask is the task of model.system "classes", which tells the classes of images without texts.
const ClassificationTask = "classification"

// downstream is a task that a model of pairs is fine-tuned for, over examples of its own or with a loss of its own.
type downstream struct {
	name  string                     // of the task, and of its loss in [objective]
	kind  string                     // data.kind that has its examples; empty: any kind of captions
	loss  func(o *Objective) float64 // weight of its loss, which stands alone; nil: the losses of retrieval are its own
	fuses bool                       // its loss reads fused pairs
	soft  bool                       // its loss has soft targets where objective.distill.alpha is above 0
	start bool                       // it is trained for another task to start from, and has no evaluation
}

// tasks are the downstream tasks: each is a row here, a group of keys, a loss, a kind of data and an evaluation.
var tasks = []downstream{
	{name: "entailment", kind: EntailmentKind, loss: func(o *Objective) float64 { return o.Entailment.Weight }, fuses: true, soft: true},
	{name: source.GroundingKind, kind: source.GroundingKind}, // by the losses of retrieval
	{name: "nlvr", kind: NLVRKind, loss: func(o *Objective) float64 { return o.NLVR.Weight }, fuses: true, soft: true},
	{name: "assignment", loss: func(o *Objective) float64 { return o.Assignment.Weight }, fuses: true, start: true},
	{name: "vqa", kind: source.VQAKind, loss: func(o *Objective) float64 { return o.VQA.Weight }, fuses: true, soft: true},
	{name: "captioning", loss: func(o *Objective) float64 { return o.Captioning.byTransformer() }, fuses: true, soft: true},
}

// task returns the downstream task whose loss has a weight, nil for none.
func (o *Objective) task() *downstream {
	for i := range tasks {
		if t := &tasks[i]; t.loss != nil && t.loss(o) > 0 {
			return t
		}
	}
	return nil
}

// TaskLoss returns the section of the loss of a downstream task that has a weight; empty: none has.
func (o *Objective) TaskLoss() string {
	if t := o.task(); t != nil {
		return "objective." + t.name
	}
	return ""
}

// Task returns the downstream task that a configuration trains and evaluates, by its loss or by its data; empty: none.
func (c Config) Task() string {
	if c.Has(section.Stored) || c.Has(section.Sentences) {
		return ""
	}
	if c.Has(section.Classes) {
		return ClassificationTask
	}
	if t := c.Objective.task(); t != nil && !t.start {
		return t.name
	}
	for _, t := range tasks {
		if t.kind != "" && t.kind == c.Data.Kind {
			return t.name
		}
	}
	return ""
}

// checkTask checks that the loss of a downstream task stands alone and has its data.
func (c *Config) checkTask(k *checker) {
	t := c.Objective.task()
	for _, x := range tasks {
		if x.kind != "" && x.kind == c.Data.Kind && x.loss != nil {
			k.Training("data.kind", t != nil && t.name == x.name, fmt.Sprintf("must not be %q", x.kind), fmt.Sprintf("its samples are for objective.%s.weight > 0, as trainer finetune --task %s sets it", x.name, x.name))
		}
	}
	if t == nil {
		return
	}
	path := "objective." + t.name + ".weight"
	k.Require(path, k.Has(section.Captions) && !k.Has(section.Stored), "must be 0", k.Named()+" has no images with texts")
	k.Require(path, !t.fuses || k.Has(section.Fusion), "must be 0", k.Named()+" has no fusion layers, which it reads")
	k.Require(path, !t.fuses || !k.Has(section.Fusion) || c.Model.Text.FusionLayers > 0, "must be 0 without fusion layers", "set model.text.fusion_layers")
	if t.kind != "" {
		k.Training("data.kind", c.Data.Kind == t.kind, fmt.Sprintf("must be %q", t.kind), path+" > 0 is trained on these")
	}
	for _, x := range tasks {
		k.Require(path, x.name == t.name || x.loss == nil || x.loss(&c.Objective) == 0, "must be 0", "one task is trained at a time: objective."+x.name+".weight is above 0")
	}
	alone := !slices.ContainsFunc(c.on(), func(l loss) bool { return l.at != "objective."+t.name && !l.gives(section.Beside) })
	k.Require(path, alone, "must be 0 beside other losses", "a task is trained alone: set the weights of objective.itc, itm, mlm and others to 0, as trainer finetune --task "+t.name+" does")
}
