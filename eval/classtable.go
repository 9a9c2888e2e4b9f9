package eval

import (
	"fmt"
	"slices"
	"strings"
)

// MostConfused is the largest number of classes of which a ClassTable keeps the confusion matrix.
const MostConfused = 1000

// ClassTable counts for each of K classes what its images were taken for.
type ClassTable struct {
	Names  []string `json:"names"`
	Images []int    `json:"images"` // (K) of each class
	Right  []int    `json:"right"`  // (K) of them that got their class
	// Confused is (K, K): Confused[i*K+j] images of class i were taken for class j. It is nil with
	// more than MostConfused classes.
	Confused []int32 `json:"confused,omitempty"`
}

// NewClassTable returns the table of some classes without images.
func NewClassTable(names []string) *ClassTable {
	t := &ClassTable{Names: names, Images: make([]int, len(names)), Right: make([]int, len(names))}
	if k := len(names); k <= MostConfused {
		t.Confused = make([]int32, k*k)
	}
	return t
}

// TableOf counts predictions, one for each label.
func TableOf(names []string, predicted, labels []int32) *ClassTable {
	t := NewClassTable(names)
	for i, p := range predicted {
		t.Add(labels[i], p)
	}
	return t
}

// Add counts an image of the class own that was taken for another, or for its own.
func (t *ClassTable) Add(own, taken int32) {
	t.Images[own]++
	if own == taken {
		t.Right[own]++
	}
	if t.Confused != nil {
		t.Confused[int(own)*len(t.Names)+int(taken)]++
	}
}

// Check says what is wrong with a table that was read.
func (t *ClassTable) Check() error {
	k := len(t.Names)
	if len(t.Images) != k || len(t.Right) != k || t.Confused != nil && len(t.Confused) != k*k {
		return fmt.Errorf("eval: a table of %d classes has %d numbers of images, %d of right ones and %d of confused ones", k, len(t.Images), len(t.Right), len(t.Confused))
	}
	return nil
}

// All is the number of images.
func (t *ClassTable) All() (n int) {
	for _, m := range t.Images {
		n += m
	}
	return n
}

// Empty is the number of classes without an image.
func (t *ClassTable) Empty() (n int) {
	for _, m := range t.Images {
		if m == 0 {
			n++
		}
	}
	return n
}

// Top1 is the percentage of images that got their class, 0 without images.
func (t *ClassTable) Top1() float64 {
	right := 0
	for _, r := range t.Right {
		right += r
	}
	return 100 * float64(right) / float64(max(1, t.All()))
}

// MeanOfClasses is the mean of the accuracies of the classes that have images, in percent.
func (t *ClassTable) MeanOfClasses() (mean float64) {
	for k, n := range t.Images {
		if n > 0 {
			mean += 100 * float64(t.Right[k]) / float64(n)
		}
	}
	return mean / float64(max(1, len(t.Names)-t.Empty()))
}

// ClassAccuracy is a line of the table for people and programs.
type ClassAccuracy struct {
	Class  string  `json:"class"`
	Images int     `json:"images"`
	Top1   float64 `json:"top1"`                // percentage of them that got their class
	Most   string  `json:"taken_for,omitempty"` // wrong class that most of them were taken for, the first of several
	Wrong  int     `json:"taken,omitempty"`     // how many were
}

// Classes lists the classes that have images, in their order.
func (t *ClassTable) Classes() (list []ClassAccuracy) {
	for k, n := range t.Images {
		if n == 0 {
			continue
		}
		c := ClassAccuracy{Class: t.Names[k], Images: n, Top1: 100 * float64(t.Right[k]) / float64(n)}
		if t.Confused != nil {
			row := slices.Clone(t.Confused[k*len(t.Names):][:len(t.Names)])
			row[k] = 0
			if most := slices.Max(row); most > 0 {
				c.Most, c.Wrong = t.Names[slices.Index(row, most)], int(most)
			}
		}
		list = append(list, c)
	}
	return list
}

// Hardest returns the classes, or where there are more than most those of the lowest accuracies, the lowest first.
func (t *ClassTable) Hardest(most int) []ClassAccuracy {
	list := t.Classes()
	if len(list) <= most {
		return list
	}
	slices.SortStableFunc(list, func(a, b ClassAccuracy) int {
		switch {
		case a.Top1 < b.Top1:
			return -1
		case a.Top1 > b.Top1:
			return 1
		}
		return 0
	})
	return list[:most]
}

// Matrix returns the rows of Confused, nil without it.
func (t *ClassTable) Matrix() (rows [][]int32) {
	for k := len(t.Names); t.Confused != nil && len(rows) < k; {
		rows = append(rows, t.Confused[len(rows)*k:][:k])
	}
	return rows
}

// Table formats the classes for people, the hardest of many.
func (t *ClassTable) Table() string {
	const most, widest = 20, 24
	list := t.Hardest(most)
	head := "class"
	if n := len(t.Names) - t.Empty(); n > most {
		head = fmt.Sprintf("hardest %d of %d", most, n)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s  %6s  %6s  %s\n", head, "number", "top-1", "most often taken for")
	for _, c := range list {
		line := fmt.Sprintf("%-24s  %6d  %6.2f", cut(c.Class, widest), c.Images, c.Top1)
		if c.Wrong > 0 {
			line += fmt.Sprintf("  %s (%d)", cut(c.Most, widest), c.Wrong)
		}
		b.WriteString(line + "\n")
	}
	if n := t.Empty(); n > 0 {
		fmt.Fprintf(&b, "%d of %d classes have no image.\n", n, len(t.Names))
	}
	return b.String()
}

// cut shortens a name to n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "~"
	}
	return s
}
