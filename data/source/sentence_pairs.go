package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/tasks/sentences"
)

// sentencePairs is data.kind = "sentence_pairs": two sentences with a class or a score.
var sentencePairs = Kind{
	Splits: func(cfg config.Config) (list []string) {
		for _, split := range Splits {
			if len(cfg.Data.SentencePairs.Split(split)) > 0 {
				list = append(list, split)
			}
		}
		return list
	},
	MayLack: true,
	Inputs: func(cfg config.Config, split string) (list []Input) {
		for _, name := range cfg.Data.SentencePairs.Split(split) {
			path := Below(cfg.Data.Root, name)
			st, err := os.Stat(path)
			if paths, bad := data.Expand(cfg.Data.Root, []string{name}); bad == nil && len(paths) > 0 {
				path = paths[0]
			}
			in := below(cfg, sentenceFiles(split), name, err == nil && st.IsDir())
			in[len(in)-1].Path = path
			list = append(list, in...)
		}
		return list
	},
	Entries: func(_ context.Context, cfg config.Config, split string, _ Options) (any, error) {
		return SentencePairs(cfg, split)
	},
	Stream: func(_ context.Context, cfg config.Config, o Options) (data.Stream, error) {
		set, err := SentencePairs(cfg, "train")
		if err != nil {
			return nil, err
		}
		return sentencepairs.NewStream(set, SentenceColumns(cfg, o.Tokenizer))
	},
	Captions: func(_ context.Context, cfg config.Config, _ Options) (out []string, err error) {
		set, err := SentencePairs(cfg, "train")
		if err != nil {
			return nil, err
		}
		for _, p := range set.Pairs {
			out = append(out, data.Clean(cfg.Data.Clean, p.A, cfg.Data.MaxWords), data.Clean(cfg.Data.Clean, p.B, cfg.Data.MaxWords))
		}
		return out, nil
	},
}

// sentenceFiles is the key of the files of a split.
func sentenceFiles(split string) string { return "data.sentence_pairs." + split + "_files" }

// SentenceColumns says how pairs of sentences become columns; nil is no tokenizer.
func SentenceColumns(cfg config.Config, tok data.Tokenizer) sentencepairs.StreamConfig {
	c := sentencepairs.StreamConfig{Seed: cfg.Run.Seed, Clean: cfg.Data.Clean, MaxWords: cfg.Data.MaxWords, Joint: cfg.JointPairs()}
	if tok != nil {
		c.Text = &data.Texts{Tokenizer: tok, Tokens: cfg.Data.Tokens}
	}
	return c
}

// SentencePairs reads a split of data.kind = "sentence_pairs".
func SentencePairs(cfg config.Config, split string) (*sentencepairs.Set, error) {
	c := cfg.Data.SentencePairs
	names := c.Split(split)
	if len(names) == 0 {
		return nil, config.Errors{{Path: sentenceFiles(split), Msg: "must name at least one file", Hint: "or choose another split"}}
	}
	task, err := sentencepairs.TaskOf(c.Task)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		list, err := sentenceFile(cfg, task, name, split)
		if err != nil {
			return nil, rootHint(err, cfg.Data.Root)
		}
		paths = append(paths, list...)
	}
	set, err := sentencepairs.Load(task, paths, sentenceOptions(cfg))
	return set, rootHint(err, cfg.Data.Root)
}

// sentenceOptions say how the files of sentence pairs are read.
func sentenceOptions(cfg config.Config) sentencepairs.Options {
	return sentencepairs.Options{MaxBadShare: cfg.Data.MaxBadShare}
}

// sentenceFile is the files that a name stands for: itself, what a pattern finds, or the files of a split in a folder.
func sentenceFile(cfg config.Config, task sentencepairs.Task, name, split string) ([]string, error) {
	path := Below(cfg.Data.Root, name)
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return data.Expand(cfg.Data.Root, []string{name})
	}
	found, err := sentencepairs.Find(task, path, split)
	if err == nil && found.Split != split {
		err = fmt.Errorf("data: %s has no %s files of the task %s, only those of %s: name these", path, split, task.Name, found.Split)
	}
	return found.Paths, err
}

// OpenSentences reads the files of eval.sentences.
func OpenSentences(cfg config.Config) (list sentences.Tasks, err error) {
	const key = "eval.sentences.tasks"
	c := cfg.Eval.Sentences
	if len(c.Tasks) == 0 {
		return nil, config.Errors{{Path: key, Value: c.Tasks, Msg: "must name a task of sentence pairs", Hint: `such as "stsb", with its folder in eval.sentences.folder: docs/sentences.md says what there is`}}
	}
	for _, item := range c.Items() {
		s, err := openSentences(cfg, item)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", key, item.Name, rootHint(err, cfg.Data.Root))
		}
		list = append(list, s)
	}
	return list, nil
}

// openSentences reads the files of an item of eval.sentences.tasks.
func openSentences(cfg config.Config, item sentences.Item) (s sentences.PairTask, err error) {
	task, err := sentencepairs.TaskOf(item.Name)
	if err != nil {
		return s, err
	}
	found, folder := sentencepairs.Found{Paths: []string{Below(cfg.Data.Root, item.Test)}}, Below(cfg.Data.Root, cfg.Eval.Sentences.Folder)
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
	o := sentenceOptions(cfg)
	s.Split, s.Files = found.Split, filesNamed(found.Paths)
	if s.Test, err = sentencepairs.Load(task, found.Paths, o); err != nil || task.Scored() {
		return s, err
	}
	s.Test.Thin(cfg.Eval.Sentences.MaxPairs)
	if c := cfg.Eval.Sentences; !slices.Contains(c.Rules, sentences.TunedRule) && !slices.Contains(c.Rules, sentences.ProbeRule) {
		return s, nil
	}
	train := sentencepairs.Found{}
	switch {
	case item.Train != "":
		train.Paths = []string{Below(cfg.Data.Root, item.Train)}
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

// filesNamed names the files of a task, for people.
func filesNamed(from []string) string {
	name := filepath.Base(from[0])
	if dir := filepath.Base(filepath.Dir(from[0])); dir != "." && dir != string(filepath.Separator) {
		name = filepath.ToSlash(filepath.Join(dir, name))
	}
	if n := len(from); n > 1 {
		name += fmt.Sprintf(" and %d more", n-1)
	}
	return name
}
