package sentences

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/source"
)

// Open reads the files of the tasks.
func (e *Eval) Open(in source.Setup) (list Tasks, err error) {
	const key = "eval.sentences.tasks"
	if len(e.Tasks) == 0 {
		return nil, section.Errors{{Path: key, Value: e.Tasks, Msg: "must name a task of sentence pairs",
			Hint: `such as "stsb", with its folder in eval.sentences.folder: docs/sentences.md says what there is`}}
	}
	for _, item := range e.Items() {
		s, err := e.open(in, item)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", key, item.Name, source.RootHint(err, in.Data.Root))
		}
		list = append(list, s)
	}
	return list, nil
}

// open reads the files of an item.
func (e *Eval) open(in source.Setup, item Item) (s PairTask, err error) {
	task, err := sentencepairs.TaskOf(item.Name)
	if err != nil {
		return s, err
	}
	found, folder := sentencepairs.Found{Paths: []string{source.Below(in.Data.Root, item.Test)}},
		source.Below(in.Data.Root, e.Folder)
	if item.Test != "" {
		folder = ""
		if st, err := os.Stat(found.Paths[0]); err == nil && st.IsDir() {
			folder = found.Paths[0]
		}
	}
	if folder != "" {
		if found, err = sentencepairs.Find(task, folder, e.Split); err != nil {
			return s, err
		}
	}
	o := sentencepairs.Options{MaxBadShare: in.Data.MaxBadShare}
	s.Split, s.Files = found.Split, filesNamed(found.Paths)
	if s.Test, err = sentencepairs.Load(task, found.Paths, o); err != nil || task.Scored() {
		return s, err
	}
	s.Test.Thin(e.MaxPairs)
	if !slices.Contains(e.Rules, TunedRule) && !slices.Contains(e.Rules, ProbeRule) {
		return s, nil
	}
	train := sentencepairs.Found{}
	switch {
	case item.Train != "":
		train.Paths = []string{source.Below(in.Data.Root, item.Train)}
	case folder != "":
		train, _ = sentencepairs.Find(task, folder, sentencepairs.Train) // rules that need one say so
	}
	if train.Paths == nil {
		return s, nil
	}
	if s.Train, err = sentencepairs.Load(task, train.Paths, o); err == nil {
		s.Train.Thin(e.MaxTrain)
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

// Inputs lists the files and folders of the tasks.
func (e *Eval) Inputs(in source.Setup) (list []source.Input) {
	found := false // below eval.sentences.folder
	for _, t := range e.Items() {
		found = found || t.Test == ""
		for _, name := range []string{t.Test, t.Train} {
			st, err := os.Stat(source.Below(in.Data.Root, name))
			list = append(list, source.Named(in, "eval.sentences.tasks", name, err == nil && st.IsDir())...)
		}
	}
	if found {
		list = append(list, source.Under(in, "eval.sentences.folder", e.Folder, true)...)
	}
	return list
}
