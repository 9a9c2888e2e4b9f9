package probe

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/tasks"
)

// meanModel tells the mean of red as its first class token, those of green and blue as its
// second: only both tell the classes of colours.
type meanModel struct{ runs, batch int }

var _ tasks.ClassEncoder = (*meanModel)(nil)

func (m *meanModel) Columns() []batch.Column {
	return []batch.Column{{Name: batch.Images, Shape: []int{3, 4, 4}}}
}

func (m *meanModel) EncodeClasses(_ context.Context, b *batch.Batch) ([]float32, error) {
	n, images := b.Rows(), b.Floats(batch.Images)
	m.runs, m.batch = m.runs+1, max(m.batch, n)
	classes := make([]float32, n*2*2)
	for i := range n {
		for c := range 3 {
			for _, v := range images[(i*3+c)*16:][:16] {
				classes[i*4+(c+1)%4] += v / 16 // (0, red), (green, blue)
			}
		}
	}
	return classes, nil
}

// colours is n plain images of three classes by colour, of which those in unknown have
// no class. With scramble classes have nothing to do with colours.
func colours(n int, scramble bool, unknown ...int) *data.Memory {
	m := &data.Memory{Classes: []string{"red", "green", "blue"}}
	for i := range n {
		img := transform.NewImage(4, 4)
		for p := range 16 {
			img.Pix[p*3+i%3] = uint8(200 + i%20)
		}
		class := int32(i % 3)
		if scramble {
			class = int32(i * i / 7 % 3)
		}
		m.Images, m.ClassOf, m.Texts = append(m.Images, img), append(m.ClassOf, class),
			append(m.Texts, []string{"a picture"})
	}
	for _, i := range unknown {
		m.ClassOf[i] = data.UnknownLabel
	}
	return m
}

// probeOf is a probe trained and tested on two sets.
func probeOf(t *testing.T, train, test *data.Memory) Probe {
	t.Helper()
	e := check.Get(kernel.New(kernel.Options{Backend: "builtin", Threads: 2}))(t)
	t.Cleanup(e.Close)
	stream, err := data.NewTrain(train, data.TrainConfig{Seed: 1, Transform: transform.Train{Size: 4, ScaleMin: 1}})
	if err != nil {
		t.Fatal(err)
	}
	set := check.Get(data.NewEval(test, data.EvalConfig{ImageSize: 4}))(t)
	return Probe{Model: &meanModel{}, Train: stream, Samples: 1000, Set: set, Classifier: Classifier{Engine: e, Decay: 1e-3, Neighbours: 5}, Encoding: tasks.Encoding{BatchSize: 8, Workers: 2}}
}

// TestProbe: classes that all class tokens tell are told apart without an error, over a
// short last batch and images without a class.
func TestProbe(t *testing.T) {
	p := probeOf(t, colours(61, false, 4, 5), colours(31, false, 0))
	s, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Top1 != 100 || s.Neighbours != 100 || s.Train != 59 || s.Test != 30 || s.Classes != 3 {
		t.Errorf("%+v", s)
	}
	// 31 images without one of class 0: 10 of each class.
	if want := 100. / 3; s.Chance < want-.1 || s.Chance > want+.1 {
		t.Errorf("chance %v", s.Chance)
	}
	if m := p.Model.(*meanModel); m.runs != 12 || m.batch != 8 { // 8 and 4 batches
		t.Errorf("%d runs of %d", m.runs, m.batch)
	}
	if m := s.Values(); m["top1"] != 100 || m["knn_top1"] != 100 {
		t.Errorf("%v", m)
	}
	if table := s.Table(); !strings.Contains(table, "linear       100.00") {
		t.Errorf("%s", table)
	}

	p.Samples = 10
	if s, err = p.Run(t.Context()); err != nil || s.Train > 10 {
		t.Errorf("%+v %v: more samples than asked for", s, err)
	}
	if s, err = probeOf(t, colours(60, true), colours(30, false)).Run(t.Context()); err != nil || s.Top1 > 80 {
		t.Errorf("classes that have nothing to do with pictures: %+v %v", s, err)
	}
}

// tornSet cannot read its image 11.
type tornSet struct{ LabelledSet }

func (s tornSet) Images() data.Gallery { return tornImages{s.LabelledSet.Images()} }

type tornImages struct{ data.Gallery }

func (g tornImages) Fill(i int, row batch.Row) error {
	if i == 11 {
		return errors.New("torn")
	}
	return g.Gallery.Fill(i, row)
}

func TestProbeMisuse(t *testing.T) {
	good := probeOf(t, colours(30, false), colours(30, false))
	plain := colours(30, false)
	plain.Classes = nil
	unknown := colours(3, false, 0, 1, 2)
	torn := probeOf(t, colours(30, false), colours(30, false, 3))
	torn.Set = tornSet{torn.Set}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		p    Probe
		want string
	}{
		"test without classes":     {t.Context(), probeOf(t, colours(9, false), plain), "needs images with classes"},
		"training without classes": {t.Context(), probeOf(t, plain, colours(9, false)), "needs images with classes"},
		"no known class":           {t.Context(), probeOf(t, unknown, colours(9, false)), "no image has a class"},
		"no batch":                 {t.Context(), Probe{Samples: 1, Classifier: Classifier{Neighbours: 1}}, "must be at least 1"},
		"unreadable":               {t.Context(), torn, "row 11 of all: torn"},
		"cancelled":                {cancelled, good, context.Canceled.Error()},
	} {
		_, err := c.p.Run(c.ctx)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "unreadable" && !strings.HasPrefix(err.Error(), "tasks: encoding test images: ") {
			t.Errorf("%v", err)
		}
		if name == "cancelled" && !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}
