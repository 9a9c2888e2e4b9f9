package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/files"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/train/runlog"
)

// taskTitles are tasks that tell classes, for people.
var taskTitles = map[string]string{TaskProbe: "Linear probe", TaskZeroShot: "Zero-shot classification", TaskTextProbe: "Linear probe of text pairs",
	TaskClassification: "Classification", TaskEntailment: "Visual entailment", TaskNLVR: "Statements about two pictures"}

// classesOf is what a page shows of a task that tells classes, false of another task. split is empty where there is none.
func classesOf(s Scores, step int, split string) (pages.Classes, bool) {
	c, ok := s.(Classified)
	if !ok {
		return pages.Classes{}, false
	}
	return pages.Classes{Title: taskTitles[s.Task()], Step: step, Split: split, Table: c.ClassTable()}, true
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

// CheckDrawn refuses a task that has no classes to draw; empty is that of the system.
func CheckDrawn(cfg config.Config, task string) error {
	if task = cmp.Or(task, DefaultTask(cfg)); taskTitles[task] != "" || picturedTasks[task] != "" || task == TaskSentences {
		return nil
	}
	drawn := append(slices.Collect(maps.Keys(taskTitles)), slices.Collect(maps.Keys(picturedTasks))...)
	drawn = append(drawn, TaskSentences)
	slices.Sort(drawn)
	return &ArgumentError{fmt.Errorf("the task %s has no classes and no examples to draw: --out is for the tasks %s", task, strings.Join(drawn, ", "))}
}

// DrawScores writes the outcome of a task that tells classes, of sentence pairs, or of examples with pictures, as a page; split is empty for a task that is not OfSplit. It fails for another
// task, and ends early with the error of ctx.
func DrawScores(ctx context.Context, path string, s Scores, step int, split, of string) error {
	facts := []pages.Fact{{Name: "model", Value: of}, {Name: "size", Value: s.Size()}, {Name: "outcome", Value: s.Line()}}
	var b bytes.Buffer
	if x, ok := s.(Pictured); ok {
		p, err := x.ExamplesPage(ctx)
		if err == nil {
			if p.Classes != nil {
				p.Classes.Step, p.Classes.Split = step, split
			}
			p.Title, p.Facts = cmp.Or(taskTitles[s.Task()], picturedTasks[s.Task()])+" on "+split, facts
			err = pages.WriteExamples(&b, p)
		}
		if err != nil {
			return err
		}
	} else if x, ok := s.(Sentences); ok {
		p, err := x.page(step, true, 0)
		if err == nil {
			err = pages.WriteSentences(&b, pages.SentencesPage{Title: "Sentence pairs", Facts: facts, Sentences: p})
		}
		if err != nil {
			return err
		}
	} else {
		c, ok := classesOf(s, step, split)
		if !ok {
			return fmt.Errorf("run: the task %s has no classes to draw", s.Task())
		}
		if err := pages.WriteClasses(&b, pages.ClassesPage{Title: c.Title, Facts: facts, Classes: c}); err != nil {
			return err
		}
	}
	if err := files.Replace(path, b.Bytes()); err != nil {
		return fmt.Errorf("%w: choose another file with --out", err)
	}
	return nil
}
