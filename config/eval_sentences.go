package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/source"
)

// Sentences says on which pairs of sentences a text tower is evaluated without fine-tuning, and how: --task sentences, and
// eval.beside = ["sentences"] during training ([sentences.md](sentences.md)). Paths start from data.root.
type Sentences struct {
	Tasks    []string `toml:"tasks"`                                            // tasks, such as "stsb", "mrpc" and "sts12", whose files are found in eval.sentences.folder by their names; or with files, "mrpc=dev.tsv" or "mrpc=dev.tsv,train.tsv" (evaluated pairs, and those that rules are fitted to), or with its folder, "mrpc=MRPC"; those of data.sentence_pairs.task are known
	Folder   string   `toml:"folder" read:"sentence tasks"`                     // folder that has the folders of the tasks, such as MRPC and STS12-en-test
	Split    string   `toml:"split" read:"sentence tasks"`                      // val | test: which files of a folder are evaluated; of a task that has one of them alone it is that one
	Feature  string   `toml:"feature" read:"sentence vectors"`                  // what stands for a sentence: class (the class token before any head) | mean (mean of the states of its tokens) | head (the feature of the shared space)
	Rules    []string `toml:"rules" read:"sentence tasks"`                      // how a class is told: fixed (thresholds of the cosine of 1/2, of three classes 1/3 and 2/3) | tuned (those that are best on the training pairs) | kmeans (clusters of the cosines, matched with classes as it fits best) | probe (a linear classifier on |u-v| and u*v of the training pairs)
	MaxTrain int      `toml:"max_train" read:"sentence tasks" max:"1000000000"` // training pairs that rules are fitted to, taken at even distances; 0: all
	MaxPairs int      `toml:"max_pairs" read:"sentence tasks" max:"1000000000"` // pairs evaluated of a task with classes, likewise; 0: all
	Isotropy int      `toml:"isotropy" read:"sentence tasks" max:"100000"`      // sentences of each task whose isotropy is measured: cosines, spectrum, uniformity and alignment; 0: none
}

// Values of eval.sentences.feature.
const (
	SentenceClass = "class"
	SentenceMean  = "mean"
	SentenceHead  = "head"
)

// Values of eval.sentences.rules.
const (
	RuleFixed  = "fixed"
	RuleTuned  = "tuned"
	RuleKMeans = "kmeans"
	RuleProbe  = "probe"
)

func (s *Sentences) defaults() {
	*s = Sentences{Folder: ".", Split: "val", Feature: SentenceClass, Rules: []string{RuleFixed, RuleTuned, RuleKMeans, RuleProbe}, MaxTrain: 10000, Isotropy: 2000}
}

func (s *Sentences) check(k *checker, c *Config) {
	const key = "eval.sentences."
	seen := map[string]bool{}
	for _, item := range s.Tasks {
		t, ok := source.ParseSentenceTask(item)
		k.Require(key+"tasks", ok, fmt.Sprintf("has an item %q that is none", item), `write "mrpc", "mrpc=dev.tsv" or "mrpc=dev.tsv,train.tsv"`)
		k.Require(key+"tasks", slices.Contains(sentencepairs.Names(), t.Name), fmt.Sprintf("has an item %q of no task", item), "the tasks are "+strings.Join(sentencepairs.Names(), ", "))
		k.Require(key+"tasks", !seen[t.Name], "must name a task once")
		seen[t.Name] = true
	}
	k.Require(key+"folder", s.Folder != "", "must name a folder")
	k.OneOf(key+"split", "val", "test")
	k.OneOf(key+"feature", SentenceClass, SentenceMean, SentenceHead)
	k.Require(key+"feature", s.Feature != SentenceHead || !c.Has(section.TokenScores), `must not be "head" with model.interaction.kind`, "the model compares tokens: it has no feature of a sentence")
	for i, rule := range s.Rules {
		k.Require(key+"rules", slices.Contains([]string{RuleFixed, RuleTuned, RuleKMeans, RuleProbe}, rule), "must be some of fixed, tuned, kmeans, probe")
		k.Require(key+"rules", !slices.Contains(s.Rules[:i], rule), "must name a rule once")
	}
	k.NotNegative(key+"max_train", key+"max_pairs", key+"isotropy")
	k.Require(key+"isotropy", s.Isotropy != 1, "must be 0 or at least 2")
}

// Items are the tasks.
func (s Sentences) Items() (list []source.SentenceTask) {
	for _, item := range s.Tasks {
		t, _ := source.ParseSentenceTask(item)
		list = append(list, t)
	}
	return list
}
