package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/tasks/captioning"
	"github.com/geoalign/geoalign/tasks/classes"
	"github.com/geoalign/geoalign/tasks/multimodal"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
	"github.com/geoalign/geoalign/tasks/vqa"

	"github.com/geoalign/geoalign/config/section"
)

// Objective weighs the losses; a weight of 0 switches a loss off.
//
// They are built and added up in the order of the fields. Contrasts stand before what draws negatives by their logits.
type Objective struct {
	ITC           objectives.ITC        `toml:"itc"`
	SwAV          objectives.SwAV       `toml:"swav" when:"prototypes"`
	TCL           objectives.TCL        `toml:"tcl"`
	GSSF          objectives.GSSF       `toml:"gssf" when:"metric"`
	Geodesic      objectives.Geodesic   `toml:"geodesic" when:"graph"`
	Distill       objectives.Distill    `toml:"distill"`
	MAFA          objectives.MAFA       `toml:"mafa"`
	Matryoshka    objectives.Matryoshka `toml:"matryoshka"`
	ADCL          objectives.ADCL       `toml:"adcl"`
	SigLIP        objectives.SigLIP     `toml:"siglip"`
	Hinge         objectives.Hinge      `toml:"hinge"`
	Triplet       objectives.Triplet    `toml:"triplet"`
	Softmax       objectives.Softmax    `toml:"softmax"`
	Poly          objectives.Poly       `toml:"poly"`
	CMPM          objectives.CMPM       `toml:"cmpm"`
	SimCSE        objectives.SimCSE     `toml:"simcse"`
	MCSE          objectives.MCSE       `toml:"mcse"`
	SentencePairs sentencepairs.Loss    `toml:"sentence_pairs"`
	Classes       classes.Loss          `toml:"classes"`
	KLOT          objectives.KLOT       `toml:"klot"`
	Structure     objectives.Structure  `toml:"structure"`
	WordPatch     objectives.WordPatch  `toml:"word_patch"`
	TokenImage    objectives.TokenImage `toml:"token_image"`
	TextSwap      objectives.TextSwap   `toml:"text_swap"`
	VQA           vqa.Loss              `toml:"vqa"`
	Captioning    captioning.Loss       `toml:"captioning"`

	// Losses over fused pairs, which pass the fusion layers together.
	ITM        objectives.ITM            `toml:"itm"`
	MLM        objectives.MLM            `toml:"mlm"`
	Entailment multimodal.EntailmentLoss `toml:"entailment"`
	NLVR       multimodal.NLVRLoss       `toml:"nlvr"`
	Multimodal multimodal.Loss           `toml:"multimodal"`
	Assignment multimodal.AssignmentLoss `toml:"assignment"`

	Geometric     objectives.Geometric     `toml:"geometric"`
	DistillScores objectives.DistillScores `toml:"distill_scores"`
}

// loss is a section of a loss.
type loss struct {
	at string // its path
	section.Switched
}

// key is the one that switches the loss on.
func (l loss) key() string {
	return l.at + "." + cmp.Or(append(section.Switches(l.Switched), "weight")...)
}

// name is that of its section.
func (l loss) name() string { return strings.TrimPrefix(l.at, "objective.") }

// gives says whether a loss gives a fact.
func (l loss) gives(f section.Fact) bool {
	g, ok := l.Switched.(section.Giver)
	return ok && slices.Contains(g.Gives(), f)
}

// losses are the sections of losses that c has, those of other modules last.
func (c *Config) losses() (list []loss) {
	for _, f := range c.sections() {
		if s, ok := f.pointer().(section.Switched); ok && strings.HasPrefix(f.path, "objective.") {
			list = append(list, loss{f.path, s})
		}
	}
	return list
}

// on are the losses that are on and give a fact, or all that are on without one.
func (c *Config) on(facts ...section.Fact) (list []loss) {
	return slices.DeleteFunc(c.losses(), func(l loss) bool {
		return !l.On() || slices.ContainsFunc(facts, func(f section.Fact) bool { return !l.gives(f) })
	})
}

// Losses returns copies of the sections of losses that are on, in the order in which they are built: pointers.
func (c *Config) Losses() (list []any) {
	v := c.View()
	for _, f := range c.sections() {
		if strings.HasPrefix(f.path, "objective.") && section.On(f.pointer()) && c.lacks(f.place, v) == "" {
			s := reflect.New(f.value.Type())
			s.Elem().Set(f.value)
			list = append(list, s.Interface())
		}
	}
	return list
}

// Check implements section.Checked.
func (o *Objective) Check(k *section.Checker) {
	c := section.Of[Config](k)
	c.checkTask(k)
	c.checkTowers(k)
	if len(c.on()) == 0 {
		hint := "set at least one objective weight above 0"
		for _, d := range c.NotDefault() {
			for _, l := range c.losses() {
				if around(d.Path) == l.at && l.at != "objective.itc" && d.Path != l.key() {
					hint += ", such as " + l.key() + ", since " + d.Path + " is set"
				}
			}
		}
		k.Require("objective.itc.weight", false, "no loss is on", hint)
	}
	if i, t := c.Model.Image, o.TCL; t.Local && (i.Patch > 0 || c.Has(section.Convolutions)) && t.Grid > 0 {
		k.Require("objective.tcl.grid", i.Grid()%t.Grid == 0,
			"must divide the patches along a side of an image (model.image.size / model.image.patch, of a residual network the places of its last layer)")
	}
}
