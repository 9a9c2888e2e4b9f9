package run

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/tasks"
)

// open returns what a task reads beside or instead of images and texts. It is read when it is first asked for, and kept
// for the next evaluations of a run; a nil split keeps nothing.
func (s *Split) open(ctx context.Context, t tasks.Task, setup *tasks.Setup) (x any, err error) {
	if s != nil && s.kept[t.Name] != nil {
		return s.kept[t.Name], nil
	}
	if t.Open != nil {
		x, err = t.Open(ctx, setup)
	}
	if err == nil && s != nil && x != nil {
		s.files()[t.Name] = x
	}
	return x, err
}

// files are what tasks read, by their names, and what they keep.
func (s *Split) files() map[string]any {
	if s.kept == nil {
		s.kept = map[string]any{}
	}
	return s.kept
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

// openExamples returns the samples of a downstream task of eval.split, whose files were looked for. The error is that
// of source.Examples.
func openExamples(ctx context.Context, cfg config.Config) (data.Examples, error) {
	x, err := source.OpenExamples(ctx, cfg.Source(), cfg.Eval.Split, source.Options{})
	if err != nil {
		return nil, err
	}
	if err := allowed(cfg, data.FindExampleFiles(ctx, x, findWorkers, nil)); err != nil {
		return nil, fmt.Errorf("eval.split %q: %w", cfg.Eval.Split, err)
	}
	return x, nil
}
