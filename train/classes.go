package train

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/tasks/classes"
	"github.com/geoalign/geoalign/tasks/multimodal"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/weights"
)

// ClassesFile is the names of the classes that a model tells, in the order of their numbers, in a checkpoint of
// model.system "classes".
const ClassesFile = "class_names.json"

// classesOf are the names of the classes of a system, nil for one that tells none.
func classesOf(m any) []string {
	if c, ok := m.(interface{ Classifier() *model.Classifier }); ok && c.Classifier() != nil {
		return c.Classifier().Classes()
	}
	return nil
}

// trainingClasses are the names of the classes of training data, nil for a system that tells none.
func trainingClasses(cfg config.Config, s data.Stream) ([]string, error) {
	if !cfg.Has(section.NamedClasses) {
		return nil, nil
	}
	var names []string
	if l, ok := s.(data.LabelledStream); ok {
		names, _ = l.Labels()
	}
	if len(names) < 2 {
		return nil, config.Errors{{Path: "data.kind", Value: cfg.Data.Kind,
			Msg:  fmt.Sprintf("has %d classes, and model.system %q tells at least 2", len(names), cfg.Model.System),
			Hint: `use "folder", or "scenes"`}}
	}
	return names, nil
}

// OpenClasses returns the names of the classes that the model of a checkpoint tells, nil where it tells none.
func OpenClasses(c *checkpoint.Checkpoint) (names []string, err error) {
	if !c.HasFile(ClassesFile) {
		return nil, nil
	}
	text, err := c.File(ClassesFile)
	if err == nil {
		err = json.Unmarshal(text, &names)
	}
	if err != nil {
		return nil, fmt.Errorf("train: %s: %w", filepath.Join(c.Path, ClassesFile), err)
	}
	return names, nil
}

// sameClasses is the error of a checkpoint whose classes are not those of m.
func sameClasses(c *checkpoint.Checkpoint, m System) error {
	now := classesOf(m)
	if now == nil {
		return nil
	}
	was, err := OpenClasses(c)
	if err != nil || slices.Equal(was, now) {
		return err
	}
	const cure = "go on with the data that it was trained on, or start a run of these classes from it with trainer finetune --task " + classes.Name
	if len(was) != len(now) {
		return fmt.Errorf("train: %s was trained on %d classes, and the data has %d: %s", c.Path, len(was), len(now),
			cure)
	}
	i := 0
	for was[i] == now[i] {
		i++
	}
	return fmt.Errorf("train: class %d of %s is %q, and of the data %q: %s", i, c.Path, was[i], now[i], cure)
}

// dropClassHead leaves the classifier of a checkpoint out of its parameters where it tells other classes than m.
func dropClassHead(c *checkpoint.Checkpoint, m any, from map[string]weights.Param) error {
	was, err := OpenClasses(c)
	if err != nil || slices.Equal(was, classesOf(m)) {
		return err
	}
	for name := range from {
		if strings.HasPrefix(name, classes.HeadName+"/") || strings.HasPrefix(name, multimodal.HeadName+"/") {
			delete(from, name)
		}
	}
	return nil
}

// dropTaskHeads leaves the head of a task out of the parameters of a checkpoint where that of m is of other classes or
// reads other features.
func dropTaskHeads(m Trainable, from map[string]weights.Param) {
	for _, head := range []string{multimodal.HeadName, sentencepairs.HeadName} {
		of := func(name string) bool { return strings.HasPrefix(name, head+"/") }
		if slices.ContainsFunc(m.Params().List(), func(q *model.Param) bool {
			was, ok := from[q.Name]
			return ok && of(q.Name) && !slices.Equal(was.Shape, q.Shape)
		}) {
			maps.DeleteFunc(from, func(name string, _ weights.Param) bool { return of(name) })
		}
	}
}
