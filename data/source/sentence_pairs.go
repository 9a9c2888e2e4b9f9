package source

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/sentencepairs"
)

// SentencePairs names the files of data.kind = "sentence_pairs": pairs of sentences with a class or a score, in the
// forms in which the task is given out ([sentences.md](sentences.md)). A folder stands for the files of the task in it.
type SentencePairs struct {
	// mnli | mnli-mm | qnli | snli | qqp | mrpc | rte | stsb | sick | sick-e | sts12 | sts13 | sts14 | sts15 | sts16:
	// which columns a file has and which classes or scores
	Task string `toml:"task"`
	SplitFiles
}

// Defaults implements section.Defaulter.
func (s *SentencePairs) Defaults() { *s = SentencePairs{Task: "mnli"} }

// Check implements section.Checked.
func (s *SentencePairs) Check(k *section.Checker) {
	k.OneOf("data.sentence_pairs.task", sentencepairs.Names()...)
	splitFiles(k, SentencePairsKind, s.Split)
	if section.Of[Data](k).Kind == SentencePairsKind {
		k.Training("data.kind", k.Has(section.SentencePairs), `must not be "`+SentencePairsKind+`"`,
			k.Named()+" reads no pairs of sentences: evaluate on them with eval.sentences")
	}
}

// SentencePairsKind is the data.kind of pairs of sentences.
const SentencePairsKind = "sentence_pairs"

// Of returns the task, of whose name Check says whether there is one.
func (s SentencePairs) Of() sentencepairs.Task {
	t, _ := sentencepairs.TaskOf(s.Task)
	return t
}

// SentenceTask is an item of eval.sentences.tasks.
type SentenceTask struct {
	Name  string
	Test  string // file or folder of the pairs that are evaluated; empty: found in eval.sentences.folder
	Train string // file of those that rules are fitted to; empty: found where Test is a folder
}

// ParseSentenceTask reads "task", "task=test" or "task=test,train". ok is false for another form.
func ParseSentenceTask(item string) (t SentenceTask, ok bool) {
	name, paths, named := strings.Cut(item, "=")
	t.Name = strings.TrimSpace(name)
	test, train, fitted := strings.Cut(paths, ",")
	t.Test, t.Train = strings.TrimSpace(test), strings.TrimSpace(train)
	return t, (!named || t.Test != "") && (!fitted || t.Train != "" && !strings.Contains(t.Train, ","))
}

// sentencePairs is data.kind = "sentence_pairs": two sentences with a class or a score.
var sentencePairs = Kind{
	Splits:  having(func(d Data, split string) bool { return len(d.SentencePairs.Split(split)) > 0 }),
	MayLack: true,
	Inputs: func(cfg Setup, split string) (list []Input) {
		for _, name := range cfg.Data.SentencePairs.Split(split) {
			path := Below(cfg.Data.Root, name)
			st, err := os.Stat(path)
			if paths, bad := data.Expand(cfg.Data.Root, []string{name}); bad == nil && len(paths) > 0 {
				path = paths[0]
			}
			in := Under(cfg, sentenceFiles(split), name, err == nil && st.IsDir())
			in[len(in)-1].Path = path
			list = append(list, in...)
		}
		return list
	},
	Entries: func(_ context.Context, cfg Setup, split string, _ Options) (any, error) {
		return OpenSentencePairs(cfg, split)
	},
	Stream: func(_ context.Context, cfg Setup, o Options) (data.Stream, error) {
		set, err := OpenSentencePairs(cfg, "train")
		if err != nil {
			return nil, err
		}
		return sentencepairs.NewStream(set, SentenceColumns(cfg, o.Tokenizer))
	},
	Captions: func(_ context.Context, cfg Setup, _ Options) (out []string, err error) {
		set, err := OpenSentencePairs(cfg, "train")
		if err != nil {
			return nil, err
		}
		for _, p := range set.Pairs {
			out = append(out, data.Clean(cfg.Data.Clean, p.A, cfg.Data.MaxWords),
				data.Clean(cfg.Data.Clean, p.B, cfg.Data.MaxWords))
		}
		return out, nil
	},
}

// sentenceFiles is the key of the files of a split.
func sentenceFiles(split string) string { return "data.sentence_pairs." + split + "_files" }

// SentenceColumns says how pairs of sentences become columns; nil means no tokenizer.
func SentenceColumns(cfg Setup, tok data.Tokenizer) sentencepairs.StreamConfig {
	c := sentencepairs.StreamConfig{Seed: cfg.Seed, Clean: cfg.Data.Clean, MaxWords: cfg.Data.MaxWords,
		Joint: cfg.JointPairs}
	if tok != nil {
		c.Text = &data.Texts{Tokenizer: tok, Tokens: cfg.Data.Tokens}
	}
	return c
}

// OpenSentencePairs reads a split of data.kind = "sentence_pairs".
func OpenSentencePairs(cfg Setup, split string) (*sentencepairs.Set, error) {
	c := cfg.Data.SentencePairs
	names := c.Split(split)
	if len(names) == 0 {
		return nil, unnamed(sentenceFiles(split), "at least one file")
	}
	task, err := sentencepairs.TaskOf(c.Task)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		list, err := sentenceFile(cfg, task, name, split)
		if err != nil {
			return nil, RootHint(err, cfg.Data.Root)
		}
		paths = append(paths, list...)
	}
	set, err := sentencepairs.Load(task, paths, sentenceOptions(cfg))
	return set, RootHint(err, cfg.Data.Root)
}

// sentenceOptions say how the files of sentence pairs are read.
func sentenceOptions(cfg Setup) sentencepairs.Options {
	return sentencepairs.Options{MaxBadShare: cfg.Data.MaxBadShare}
}

// sentenceFile is the files that a name stands for: itself, what a pattern finds, or the files of a split in a folder.
func sentenceFile(cfg Setup, task sentencepairs.Task, name, split string) ([]string, error) {
	path := Below(cfg.Data.Root, name)
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return data.Expand(cfg.Data.Root, []string{name})
	}
	found, err := sentencepairs.Find(task, path, split)
	if err == nil && found.Split != split {
		err = fmt.Errorf("data: %s has no %s files of the task %s, only those of %s: name these", path, split,
			task.Name, found.Split)
	}
	return found.Paths, err
}

func (*SentencePairs) kind() Kind { return sentencePairs }
