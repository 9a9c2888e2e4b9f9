package tasks_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/probe"
)

// numbers is texts that are numbers.
type numbers []int

func (n numbers) Len() int             { return len(n) }
func (numbers) Columns() []data.Column { return captions.Columns() }

func (n numbers) Fill(i int, row batch.Row) error {
	captions.Fill(strconv.Itoa(n[i]), row)
	return nil
}

// TestTextProbe: whether two numbers are near each other is in |u-v|, and not in the order of the two.
func TestTextProbe(t *testing.T) {
	part := func(n, step int) (p probe.LabelledTexts) {
		var a, b numbers
		for i := range n {
			x, y := (i*step)%40, (i*step)%40+2+i%2*30
			if i%3 == 0 {
				x, y = y, x
			}
			a, b, p.Labels = append(a, x), append(b, y), append(p.Labels, int32(i%2))
		}
		p.A, p.B = a, b
		return p
	}
	m := &fakeModel{}
	for range 80 {
		m.texts = append(m.texts, make([]float32, fakeDim))
	}
	p := probe.TextProbe{Model: fakeTexts{fakeSide{m}}, Train: part(60, 7), Test: part(30, 11), Classes: []string{"near", "far"},
		Classifier: probe.Classifier{Engine: engine, Decay: 1e-3}, Encoding: tasks.Encoding{BatchSize: 8, Workers: 2}}
	s, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Top1 != 100 || s.Chance != 50 || s.Train != 60 || s.Test != 30 || s.Voted || s.Chosen ||
		s.PerClass.Images[1] != 15 {
		t.Errorf("%+v", s)
	}
	if _, voted := s.Values()["knn_top1"]; voted || strings.Contains(s.Table(), "k-NN") {
		t.Errorf("there was no vote: %v", s.Values())
	}
	p.Hold = 0.2
	if s, err = p.Run(t.Context()); err != nil || !s.Chosen || s.Held != 100 || !strings.Contains(s.Table(), "was chosen, with 100.00") || s.Values()["decay"] != s.Decay {
		t.Errorf("%+v %v", s, err)
	}
	p.Test.B = numbers{1}
	check.Fails(p.Run(t.Context()))(t, "got 30 and 1 texts and 30 labels")
}

func TestRelate(t *testing.T) {
	got := probe.Relate([]float32{1, -2, 3, 4}, []float32{5, 6, -7, 8}, 2)
	if want := []float32{4, 8, 5, -12, 10, 4, -21, 32}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
