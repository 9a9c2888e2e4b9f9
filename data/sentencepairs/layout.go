package sentencepairs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/files"
)

// Names of the files of a folder of the STS layout, around the name of a part.
const (
	inputs = "STS.input."
	golds  = "STS.gs."
	ending = ".txt"
)

// loadLayout adds the pairs of a folder with STS.input.NAME.txt and STS.gs.NAME.txt, a part for each NAME, in the order
// of the names. A line of scores that is empty means a pair without a score. Scores without sentences, which SemEval
// may not give out, are left out and named in Counts.Ignored.
func (s *Set) loadLayout(dir string) error {
	found, err := parts(dir, inputs)
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("data: %s has no file %s*%s with the sentences of the task %s: name the folder that has, "+
			"such as %s", dir, inputs, ending, s.Task.Name, s.Task.folders[0])
	}
	scored, err := parts(dir, golds)
	if err != nil {
		return err
	}
	for _, name := range scored {
		if !slices.Contains(found, name) {
			s.Counts.Ignored = append(s.Counts.Ignored, golds+name+ending)
		}
	}
	for _, name := range found {
		if err := s.loadPart(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// parts lists the NAMEs of the files of a folder that begin alike.
func parts(dir, prefix string) (names []string, err error) {
	entries, err := filepath.Glob(filepath.Join(files.Literal(dir), prefix+"*"+ending))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(e), prefix), ending))
	}
	slices.Sort(names)
	return names, err
}

// loadPart adds the pairs of two files.
func (s *Set) loadPart(dir, name string) error {
	path, gold := filepath.Join(dir, inputs+name+ending), filepath.Join(dir, golds+name+ending)
	sentences, err := table.ReadLines(path)
	if err != nil {
		return err
	}
	scores, err := table.ReadLines(gold)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: every %s*%s needs its scores", err, inputs, ending)
	}
	if err != nil {
		return err
	}
	if len(sentences) != len(scores) {
		return table.Whole(gold, fmt.Errorf("it has %d lines and %s has %d: copy both again", len(scores),
			filepath.Base(path), len(sentences)))
	}
	first := len(s.Pairs)
	for i, line := range sentences {
		s.Counts.Rows++
		a, rest, ok := strings.Cut(line, "\t")
		if !ok {
			s.Counts.Refuse(&table.LineError{File: path, Line: i + 1,
				Err: errors.New("it has no tab between two sentences")})
			continue
		}
		b, _, _ := strings.Cut(rest, "\t") // STS16 has the sources behind
		wrong := func(err error) error { return &table.LineError{File: gold, Line: i + 1, Err: err} }
		if err := s.add(a, b, scores[i], wrong); err != nil {
			return err
		}
	}
	s.part(name, first)
	return nil
}
