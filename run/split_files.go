package run

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/probe"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/tasks/sentiment"
	"github.com/geoalign/geoalign/tasks/zeroshot"
)

// readers open what tasks read beside or instead of images and texts of the split, by their names.
var readers = map[string]func(cfg config.Config) (any, error){
	probe.TextName:     func(cfg config.Config) (any, error) { return source.OpenTextProbe(cfg) },
	sentences.Name:     func(cfg config.Config) (any, error) { return source.OpenSentences(cfg) },
	sentiment.Name:     func(cfg config.Config) (any, error) { return source.OpenSentiment(cfg) },
	sentencepairs.Name: func(cfg config.Config) (any, error) { return source.SentencePairs(cfg, cfg.Eval.Split) },
	zeroshot.Name:      func(cfg config.Config) (any, error) { return source.ZeroShotSet(cfg) },
}

// open returns what a task reads beside or instead of images and texts. It is read when it is first asked for, and kept for the next
// evaluations of a run; a nil split keeps nothing.
func (s *Split) open(ctx context.Context, cfg config.Config, t tasks.Task, setup *tasks.Setup) (x any, err error) {
	if s != nil && s.kept[t.Name] != nil {
		return s.kept[t.Name], nil
	}
	read := readers[t.Name]
	switch {
	case t.Open != nil:
		x, err = t.Open(ctx, setup)
	case t.Samples != nil:
		x, err = setup.Samples(ctx)
	case read != nil:
		x, err = read(cfg)
	}
	if err == nil && s != nil && x != nil {
		s.keep(t.Name, x)
	}
	return x, err
}

// keep keeps what a task reads.
func (s *Split) keep(task string, x any) {
	if s.kept == nil {
		s.kept = map[string]any{}
	}
	s.kept[task] = x
}

// samples returns the samples of a downstream task that are kept, with its name; nil for none.
func (s *Split) samples() (data.Examples, string) {
	for name, x := range s.kept {
		if x, ok := x.(data.Examples); ok {
			return x, name
		}
	}
	return nil, ""
}

// candidates returns the candidate answers of questions. The error is that of source.Candidates.
func (s *Split) candidates(ctx context.Context, cfg config.Config) (list []string, err error) {
	const key = "candidates"
	if list, ok := s.kept[key].([]string); ok {
		return list, nil
	}
	if list, err = source.Candidates(ctx, cfg, source.Options{}); err == nil {
		s.keep(key, list)
	}
	return list, err
}

// openExamples returns the samples of a downstream task of eval.split, whose files were looked for. The error is that of source.Examples.
func openExamples(ctx context.Context, cfg config.Config) (data.Examples, error) {
	x, err := source.Examples(ctx, cfg, cfg.Eval.Split, source.Options{})
	if err != nil {
		return nil, err
	}
	if err := allowed(cfg, data.FindExampleFiles(ctx, x, findWorkers, nil)); err != nil {
		return nil, fmt.Errorf("eval.split %q: %w", cfg.Eval.Split, err)
	}
	return x, nil
}
