package sentencepairs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
)

// Found is where a split of a task lies.
type Found struct {
	Split string
	Paths []string
}

// Find returns the files of a split of a task in a folder, by the names that GLUE, SentEval, the authors and the hub
// give them. The folder is that of the task, or one that has a folder of the task's name, such as MRPC, or
// STS/STS12-en-test. Of val and test the other one is found where a task has no files of one, as STS12 to STS16 have no
// val: Found says which.
func Find(t Task, dir, split string) (Found, error) {
	splits := []string{split}
	switch split {
	case Val:
		splits = append(splits, Test)
	case Test:
		splits = append(splits, Val)
	}
	folders := append(t.below(dir), t.below(filepath.Join(dir, "STS"))...)
	folders = append(folders, dir)
	for _, s := range splits {
		for _, folder := range folders {
			if list := t.in(folder, s); list != nil {
				return Found{s, list}, nil
			}
		}
	}
	if _, err := os.Stat(dir); err != nil {
		return Found{}, fmt.Errorf("data: %w", err)
	}
	return Found{}, fmt.Errorf("data: %s has no %s files of the task %s, in it or in a folder %s: name the file or "+
		"its folder", dir, split, t.Name, strings.Join(t.folders, ", "))
}

// below lists the folders in dir that are named after the task, whatever the case of the letters.
func (t Task) below(dir string) (list []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, name := range append(slices.Clone(t.folders), t.Name) {
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); strings.EqualFold(e.Name(), name) && !slices.Contains(list, path) {
				list = append(list, path)
			}
		}
	}
	return list
}

// in lists the files of a split in a folder.
func (t Task) in(folder, split string) []string {
	if t.layout && split == Test {
		if names, err := parts(folder, inputs); err == nil && names != nil {
			return []string{folder}
		}
	}
	patterns := slices.Clone(t.files[split])
	if split == Train || t.alone == "" || strings.EqualFold(filepath.Base(folder), t.alone) {
		patterns = append(patterns, common[split]...)
	}
	for _, pattern := range patterns {
		list, err := filepath.Glob(filepath.Join(files.Literal(folder), pattern))
		if err == nil && list != nil {
			return list
		}
	}
	return nil
}
