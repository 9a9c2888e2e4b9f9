package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/files"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/all"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/train/runlog"
)

// classesOf is what a page shows of a task that tells classes, false of another task. split is empty where there is
// none.
func classesOf(s Scores, step int, split string) (pages.Classes, bool) {
	c, ok := s.(tasks.Classified)
	if !ok {
		return pages.Classes{}, false
	}
	return pages.Classes{Title: titleOf(s.Task()), Step: step, Split: split, Table: c.ClassTable()}, true
}

// writeClasses keeps what the last evaluation took the images of each class for, for the page of the run.
func (r *Run) writeClasses() error {
	var list []pages.Classes
	for _, s := range append([]Scores{r.scores}, r.beside...) {
		if s == nil {
			continue
		}
		split := ""
		if OfSplit(r.cfg, s.Task()) {
			split = r.cfg.Eval.Split
		}
		if c, ok := classesOf(s, r.scoreStep, split); ok {
			list = append(list, c)
		}
	}
	if list == nil {
		return nil
	}
	return writePart(filepath.Join(r.dir, runlog.ClassesFile), list)
}

// readClasses reads what writeClasses wrote; nil without it.
func readClasses(dir string) (list []pages.Classes, err error) {
	_, err = readPart(filepath.Join(dir, runlog.ClassesFile), &list, func() error {
		for _, c := range list {
			if c.Table == nil {
				return errors.New("a task has no table")
			}
			if err := c.Table.Check(); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

// titleOf is the title of the page of a task; empty: it draws none.
func titleOf(task string) string {
	t, _ := tasks.Find(all.List, task)
	return t.Title
}

// CheckDrawn refuses a task that has no classes to draw; empty is that of the system.
func CheckDrawn(cfg config.Config, task string) error {
	t, err := taskOf(cfg, task)
	if err != nil || t.Title != "" {
		return err
	}
	drawn := tasks.Names(all.List, func(t tasks.Task) bool { return t.Title != "" })
	slices.Sort(drawn)
	return console.Argument("the task %s has no classes and no examples to draw: --out is for the tasks %s", t.Name,
		strings.Join(drawn, ", "))
}

// DrawScores writes the outcome of a task that has a page; split is empty for a task that is not OfSplit. It fails for
// another task, and ends early with the error of ctx.
func DrawScores(ctx context.Context, path string, s Scores, step int, split, of string) error {
	facts := []pages.Fact{{Name: "model", Value: of}, {Name: "size", Value: s.Size()},
		{Name: "outcome", Value: s.Line()}}
	var b bytes.Buffer
	var err error
	switch x := s.(type) {
	case tasks.Pictured:
		var p pages.ExamplesPage
		if p, err = x.ExamplesPage(ctx); err == nil {
			if p.Classes != nil {
				p.Classes.Step, p.Classes.Split = step, split
			}
			p.Title, p.Facts = titleOf(s.Task())+" on "+split, facts
			err = pages.WriteExamples(&b, p)
		}
	case tasks.Drawn:
		err = x.WritePage(&b, titleOf(s.Task()), step, facts)
	default:
		c, ok := classesOf(s, step, split)
		if !ok {
			return fmt.Errorf("run: the task %s has no classes to draw", s.Task())
		}
		err = pages.WriteClasses(&b, pages.ClassesPage{Title: c.Title, Facts: facts, Classes: c})
	}
	if err != nil {
		return err
	}
	if err := files.Replace(path, b.Bytes()); err != nil {
		return fmt.Errorf("%w: choose another file with --out", err)
	}
	return nil
}

// CheckResulted refuses a task whose answers have no form of results; empty is that of the system.
func CheckResulted(cfg config.Config, task string) error {
	t, err := taskOf(cfg, task)
	if err != nil || t.Results {
		return err
	}
	return console.Argument("the task %s has no file of results: use --results with a model and the task that it was "+
		"fine-tuned for", t.Name)
}

// WriteResults writes the answers of a task to a file.
func WriteResults(path string, s Scores) error {
	r, ok := s.(tasks.Resulted)
	if !ok {
		return fmt.Errorf("run: the task %s has no file of results", s.Task())
	}
	var b bytes.Buffer
	if err := r.WriteResults(&b); err != nil {
		return err
	}
	if err := files.Replace(path, b.Bytes()); err != nil {
		return fmt.Errorf("%w: choose another file with --results", err)
	}
	return nil
}

// writeSentences keeps what the last evaluation on sentence pairs found, for the page of the run.
func (r *Run) writeSentences(places bool) error {
	for _, s := range append([]Scores{r.scores}, r.beside...) {
		x, ok := s.(sentences.Scores)
		if !ok {
			continue
		}
		p, err := x.Page(r.scoreStep, places, r.cfg.Run.Seed)
		if err != nil {
			return err
		}
		return writePart(filepath.Join(r.dir, runlog.SentencesFile), p)
	}
	return nil
}

// readSentences reads what writeSentences wrote; nil without it.
func readSentences(dir string) (*pages.Sentences, error) {
	var s pages.Sentences
	if found, err := readPart(filepath.Join(dir, runlog.SentencesFile), &s, nil); !found {
		return nil, err
	}
	return &s, nil
}
