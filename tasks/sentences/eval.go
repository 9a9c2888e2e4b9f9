package sentences

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	pairs "github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/source"
)

// Eval says on which pairs of sentences a text tower is evaluated without fine-tuning, and how: --task sentences, and
// eval.beside = ["sentences"] during training ([sentences.md](sentences.md)). Paths start from data.root.
type Eval struct {
	// tasks, such as "stsb", "mrpc" and "sts12", whose files are found in eval.sentences.folder by their names; or
	// with files, "mrpc=dev.tsv" or "mrpc=dev.tsv,train.tsv" (evaluated pairs, and those that rules are fitted to), or
	// with its folder, "mrpc=MRPC"; those of data.sentence_pairs.task are known
	Tasks []string `toml:"tasks"`
	// folder that has the folders of the tasks, such as MRPC and STS12-en-test
	Folder string `toml:"folder" when:"tasks"`
	// val | test: which files of a folder are evaluated; of a task that has one of them alone it is that one
	Split string `toml:"split" when:"tasks"`
	// what stands for a sentence: class (the class token before any head) | mean (mean of the states of its tokens) |
	// head (the feature of the shared space)
	Feature string `toml:"feature" when:"encoded sentences"`
	// how a class is told: fixed (thresholds of the cosine of 1/2, of three classes 1/3 and 2/3) | tuned (those that
	// are best on the training pairs) | kmeans (clusters of the cosines, matched with classes as it fits best) | probe
	// (a linear classifier on |u-v| and u*v of the training pairs)
	Rules []string `toml:"rules" when:"tasks"`
	// training pairs that rules are fitted to, taken at even distances; 0: all
	MaxTrain int `toml:"max_train" when:"tasks" max:"1000000000"`
	// pairs evaluated of a task with classes, likewise; 0: all
	MaxPairs int `toml:"max_pairs" when:"tasks" max:"1000000000"`
	// sentences of each task whose isotropy is measured: cosines, spectrum, uniformity and alignment; 0: none
	Isotropy int `toml:"isotropy" when:"tasks" max:"100000"`
}

// Defaults implements section.Defaulter.
func (s *Eval) Defaults() {
	*s = Eval{Folder: ".", Split: "val", Feature: ClassFeature,
		Rules: []string{FixedRule, TunedRule, KMeansRule, ProbeRule}, MaxTrain: 10000, Isotropy: 2000}
}

// Check implements section.Checked.
func (s *Eval) Check(k *section.Checker) {
	seen := map[string]bool{}
	for _, item := range s.Tasks {
		t, ok := source.ParseSentenceTask(item)
		k.Require("tasks", ok, fmt.Sprintf("has an item %q that is none", item),
			`write "mrpc", "mrpc=dev.tsv" or "mrpc=dev.tsv,train.tsv"`)
		k.Require("tasks", slices.Contains(pairs.Names(), t.Name), fmt.Sprintf("has an item %q of no task", item),
			"the tasks are "+strings.Join(pairs.Names(), ", "))
		k.Require("tasks", !seen[t.Name], "must name a task once")
		seen[t.Name] = true
	}
	k.Require("folder", s.Folder != "", "must name a folder")
	k.OneOf("split", "val", "test")
	k.OneOf("feature", ClassFeature, MeanFeature, HeadFeature)
	k.Require("feature", s.Feature != HeadFeature || k.Value("model.interaction.kind") == "",
		`must not be "head" with model.interaction.kind`, "the model compares tokens: it has no feature of a sentence")
	for i, rule := range s.Rules {
		k.Require("rules", slices.Contains([]string{FixedRule, TunedRule, KMeansRule, ProbeRule}, rule),
			"must be some of fixed, tuned, kmeans, probe")
		k.Require("rules", !slices.Contains(s.Rules[:i], rule), "must name a rule once")
	}
	k.NotNegative("max_train", "max_pairs", "isotropy")
	k.Require("isotropy", s.Isotropy != 1, "must be 0 or at least 2")
}

// Item is an item of eval.sentences.tasks.
type Item = source.SentenceTask

// Items are the tasks.
func (s *Eval) Items() (list []Item) {
	for _, item := range s.Tasks {
		t, _ := source.ParseSentenceTask(item)
		list = append(list, t)
	}
	return list
}

// Gives implements section.Giver.
func (s *Eval) Gives() []section.Fact {
	if len(s.Tasks) == 0 {
		return nil
	}
	return []section.Fact{section.Encoded}
}
