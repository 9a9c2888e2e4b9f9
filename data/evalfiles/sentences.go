package evalfiles

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/source"
)

// Sentences are the pairs of a task that a model is evaluated on.
type Sentences struct {
	Test  *sentencepairs.Set
	Split string             // of Test: val or test, empty where files are named
	Train *sentencepairs.Set // that rules are fitted to; nil: there is none, or no rule is
	From  []string           // files of Test
}

// OpenSentences reads the files of eval.sentences.
func OpenSentences(cfg config.Config) (list []Sentences, err error) {
	const key = "eval.sentences.tasks"
	c := cfg.Eval.Sentences
	if len(c.Tasks) == 0 {
		return nil, config.Errors{{Path: key, Value: c.Tasks, Msg: "must name a task of sentence pairs", Hint: `such as "stsb", with its folder in eval.sentences.folder: docs/sentences.md says what there is`}}
	}
	for _, item := range c.Items() {
		s, err := openSentences(cfg, item)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", key, item.Name, source.RootHint(err, cfg.Data.Root))
		}
		list = append(list, s)
	}
	return list, nil
}

// openSentences reads the files of an item of eval.sentences.tasks.
func openSentences(cfg config.Config, item source.SentenceTask) (s Sentences, err error) {
	task, err := sentencepairs.TaskOf(item.Name)
	if err != nil {
		return s, err
	}
	found, folder := sentencepairs.Found{Paths: []string{source.Below(cfg.Data.Root, item.Test)}}, source.Below(cfg.Data.Root, cfg.Eval.Sentences.Folder)
	if item.Test != "" {
		folder = ""
		if st, err := os.Stat(found.Paths[0]); err == nil && st.IsDir() {
			folder = found.Paths[0]
		}
	}
	if folder != "" {
		if found, err = sentencepairs.Find(task, folder, cfg.Eval.Sentences.Split); err != nil {
			return s, err
		}
	}
	o := sentencepairs.Options{MaxBadShare: cfg.Data.MaxBadShare}
	s.Split, s.From = found.Split, found.Paths
	if s.Test, err = sentencepairs.Load(task, found.Paths, o); err != nil || task.Scored() {
		return s, err
	}
	s.Test.Thin(cfg.Eval.Sentences.MaxPairs)
	if c := cfg.Eval.Sentences; !slices.Contains(c.Rules, config.RuleTuned) && !slices.Contains(c.Rules, config.RuleProbe) {
		return s, nil
	}
	train := sentencepairs.Found{}
	switch {
	case item.Train != "":
		train.Paths = []string{source.Below(cfg.Data.Root, item.Train)}
	case folder != "":
		train, _ = sentencepairs.Find(task, folder, sentencepairs.Train) // rules that need one say so
	}
	if train.Paths == nil {
		return s, nil
	}
	if s.Train, err = sentencepairs.Load(task, train.Paths, o); err == nil {
		s.Train.Thin(cfg.Eval.Sentences.MaxTrain)
	}
	return s, err
}

// String names the files of a task, for people.
func (s Sentences) String() string {
	name := filepath.Base(s.From[0])
	if dir := filepath.Base(filepath.Dir(s.From[0])); dir != "." && dir != string(filepath.Separator) {
		name = filepath.ToSlash(filepath.Join(dir, name))
	}
	if n := len(s.From); n > 1 {
		name += fmt.Sprintf(" and %d more", n-1)
	}
	return name
}
