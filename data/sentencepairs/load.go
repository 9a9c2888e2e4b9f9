package sentencepairs

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
)

// Pair is two sentences with the class of their relation or the score of how alike they are.
type Pair struct {
	A, B  string
	Label int32   // number of the class; data.UnknownLabel of scores
	Score float64 // 0 of classes
}

// Part is pairs that stand together in a set, such as a file of STS12.
type Part struct {
	Name        string // empty where the set has no parts
	First, Last int    // pairs of the set from First to below Last
}

// Set is the pairs of some files, in their order.
type Set struct {
	Task   Task
	Pairs  []Pair
	Parts  []Part // at least one
	Counts Counts
}

// Counts say what was read and what was left out.
type Counts struct {
	table.Counts
	Ignored []string `json:"ignored,omitempty"` // files of scores without a file of sentences
}

// Thin keeps so many pairs at even distances; all with 0, or where there are no more. The parts are one then.
func (s *Set) Thin(most int) {
	if most == 0 || len(s.Pairs) <= most {
		return
	}
	some := make([]Pair, most) // the others are freed
	for k := range some {
		some[k] = s.Pairs[k*len(s.Pairs)/most]
	}
	s.Pairs, s.Parts = some, []Part{{Last: most}}
}

// String says what was left out, "" where nothing was.
func (c Counts) String() string {
	var list []string
	for _, x := range []struct {
		n    int
		what string
	}{{c.Unlabelled, "without a label"}, {c.Empty, "with an empty sentence"}, {c.Bad, "that cannot be read"}} {
		if x.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	if list == nil {
		return ""
	}
	return fmt.Sprintf("left out of %d rows: %s", c.Rows, strings.Join(list, ", "))
}

// Options say how files are read.
type Options struct {
	MaxBadShare float64 // of the rows may be bad; with more, reading is an error
}

// Load reads the pairs of files in their order. A path is a file that package table reads, or of STS12 to STS16 a
// folder with the layout of SentEval: STS.input.NAME.txt with two sentences a line and STS.gs.NAME.txt with a score a
// line. Names of columns are those of the task, or text_a, text_b and label. Rows that cannot be used are counted
// (Counts). A label that is not a class of the task is an error, as the files are then of another task.
func Load(t Task, paths []string, o Options) (*Set, error) {
	s := &Set{Task: t}
	if len(paths) == 0 {
		return nil, fmt.Errorf("data: no file of the task %s is named", t.Name)
	}
	for _, path := range paths {
		if err := s.load(path); err != nil {
			return nil, err
		}
	}
	c := s.Counts
	if c.TooBad(o.MaxBadShare) {
		return nil, fmt.Errorf("data: %s: %d of %d rows cannot be read, the first is %s: copy the file again, or "+
			"raise data.max_bad_share (%g)", paths[0], c.Bad, c.Rows, c.Examples[0], o.MaxBadShare)
	}
	if len(s.Pairs) == 0 {
		hint := ""
		if c.Unlabelled > 0 {
			hint = ": GLUE gives out the test files without labels: use the dev files"
		}
		return nil, fmt.Errorf("data: %s: none of %d rows is a pair of sentences with a label (%s)%s", paths[0], c.Rows,
			c, hint)
	}
	return s, nil
}

// load adds the pairs of a file, or of a folder of the STS layout.
func (s *Set) load(path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		if s.Task.layout {
			return s.loadLayout(path)
		}
		return fmt.Errorf("data: %s is a folder: name a file of the task %s", path, s.Task.Name)
	}
	first := len(s.Pairs)
	err := table.Read(path, s.Task.columns, s.Counts.Take(func(r table.Row) error {
		return s.add(r.Cells[0], r.Cells[1], r.Cells[2], r.Wrong)
	}))
	if err == nil {
		s.part("", first)
	}
	return err
}

// part ends a part that began at a pair. Parts without a name are one.
func (s *Set) part(name string, first int) {
	if n := len(s.Parts); name == "" && n > 0 && s.Parts[n-1].Name == "" {
		s.Parts[n-1].Last = len(s.Pairs)
		return
	}
	s.Parts = append(s.Parts, Part{name, first, len(s.Pairs)})
}

// errScore is a score that is not a number of the scale.
var errScore = errors.New("no score")

// add adds a pair, or counts why not; wrong tells the place of its label. An error is of a label that no file of the
// task has.
func (s *Set) add(a, b, label string, wrong func(error) error) error {
	p := Pair{A: strings.TrimSpace(a), B: strings.TrimSpace(b), Label: data.UnknownLabel}
	label = strings.TrimSpace(label)
	switch {
	case unlabelled(label):
		s.Counts.Unlabelled++
		return nil
	case p.A == "" || p.B == "":
		s.Counts.Empty++
		return nil
	}
	var err error
	if s.Task.Scored() {
		p.Score, err = s.Task.score(label)
	} else {
		p.Label, err = s.Task.class(label)
	}
	if err != nil {
		err = wrong(err)
	}
	switch {
	case errors.Is(err, errScore):
		s.Counts.Refuse(err)
		return nil
	case err != nil:
		return err
	}
	s.Pairs = append(s.Pairs, p)
	return nil
}

// unlabelled says whether files write a label so where there is none.
func unlabelled(label string) bool {
	switch label {
	case "", "-", "-1", "-1.0", "hidden":
		return true
	}
	return false
}

// score reads the score of a pair.
func (t Task) score(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < t.Low || v > t.High {
		return 0, fmt.Errorf("%w from %g to %g (got %.40q)", errScore, t.Low, t.High, text)
	}
	return v, nil
}

// class reads the class of a pair: its name in any case, or its number.
func (t Task) class(text string) (int32, error) {
	for i, name := range t.Classes {
		if strings.EqualFold(text, name) {
			return int32(i), nil
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < len(t.Classes) {
		return int32(n), nil
	}
	var others []string
	for _, x := range tasks {
		if slices.ContainsFunc(x.Classes, func(name string) bool { return strings.EqualFold(name, text) }) {
			others = append(others, x.Name)
		}
	}
	hint := "name the task that the file is of"
	if others != nil {
		hint = "it is one of " + strings.Join(others, ", ") + ": files of two tasks cannot be mixed"
	}
	return 0, fmt.Errorf("the label %.40q is not a class of the task %s, which has %s: %s", text, t.Name,
		strings.Join(t.Classes, ", "), hint)
}

// columns finds the columns of the task among those of a file.
func (t Task) columns(names []string) (table.Columns, error) {
	var c table.Columns
	var missing []string
	for k, known := range [][]string{t.a, t.b, t.label} {
		at := -1
		for _, name := range append(known, []string{"text_a", "text_b", "label"}[k]) {
			if at = slices.Index(names, name); at >= 0 {
				break
			}
		}
		if at < 0 {
			missing = append(missing, strconv.Quote(known[0]))
		}
		c.At = append(c.At, at)
	}
	switch {
	case missing == nil:
		return c, nil
	case t.headless != nil && len(missing) == 3 && len(names) > slices.Max(t.headless):
		return table.Columns{At: t.headless, Headless: true}, nil
	}
	hint := "name the columns in the first line as the task has them, or text_a, text_b and label"
	if len(missing) == 1 && c.At[2] < 0 {
		hint = "GLUE gives out the test files without labels: use the dev files"
	}
	return c, fmt.Errorf("there is no column %s of the task %s, only %q: %s", strings.Join(missing, ", "), t.Name,
		names, hint)
}
