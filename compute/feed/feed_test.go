package feed

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// machine records what inputs are tied to.
type machine struct {
	bound map[string]any
	count int
	fail  string // name of an input that it refuses
}

func newMachine() *machine { return &machine{bound: map[string]any{}} }

func (m *machine) SetInput(n *gorgonia.Node, data any) error {
	if n.Name() == m.fail {
		return errors.New("no " + m.fail)
	}
	m.bound[n.Name()] = data
	m.count++
	return nil
}

// same says whether two slices are one piece of memory.
func same[T any](a, b []T) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

var (
	images  = batch.Column{Name: "images", Shape: []int{3, 2, 2}}
	tokens  = batch.Column{Name: "tokens", Shape: []int{5}, Type: batch.Int32}
	lengths = batch.Column{Name: "lengths", Type: batch.Int32}
)

// TestColumnsAreTheMemoryOfTheBatch: a column is an input of the shape of its rows, a flat
// one is a vector, and every step ties both to its own batch without a copy.
func TestColumnsAreTheMemoryOfTheBatch(t *testing.T) {
	in := New(gorgonia.NewGraph())
	x, ids, n := in.Column(images, 4), in.Flat(tokens, 4), in.Column(lengths, 4)
	for node, want := range map[*gorgonia.Node]tensor.Shape{x: {4, 3, 2, 2}, ids: {20}, n: {4}} {
		if !node.Shape().Eq(want) {
			t.Errorf("%s has shape %v, want %v", node.Name(), node.Shape(), want)
		}
	}
	if x.Dtype() != tensor.Float32 || ids.Dtype() != tensor.Int32 || n.Dtype() != tensor.Int32 {
		t.Errorf("types %v, %v and %v", x.Dtype(), ids.Dtype(), n.Dtype())
	}
	if c := in.Columns(); len(c) != 3 || !c[0].Equal(images) || !c[1].Equal(tokens) || !c[2].Equal(lengths) {
		t.Errorf("columns %v", c)
	}
	m := newMachine()
	if err := in.Bind(m); err != nil || m.count != 0 {
		t.Errorf("%d inputs bound before a step, %v", m.count, err)
	}
	for range 2 {
		b := batch.New(4, images, tokens, lengths)
		if err := in.Fill(m, &Step{Batch: b}); err != nil {
			t.Fatal(err)
		}
		if !same(m.bound["images"].([]float32), b.Floats("images")) || !same(m.bound["tokens"].([]int32), b.Ints("tokens")) || !same(m.bound["lengths"].([]int32), b.Ints("lengths")) {
			t.Error("an input is not the memory of the batch")
		}
	}
}

// TestOneNameIsOneInput: whoever asks for a name again gets the same node, and nothing is
// filled or bound twice.
func TestOneNameIsOneInput(t *testing.T) {
	in := New(gorgonia.NewGraph())
	fills := 0
	fill := func(*Step, []float32) error { fills++; return nil }
	ints := func(*Step, []int32) error { fills++; return nil }
	for name, ask := range map[string]func() *gorgonia.Node{
		"images":  func() *gorgonia.Node { return in.Column(images, 2) },
		"tokens":  func() *gorgonia.Node { return in.Flat(tokens, 2) },
		"noise":   func() *gorgonia.Node { return in.Floats("noise", fill, 2, 2) },
		"key":     func() *gorgonia.Node { return in.Ints("key", ints, 2) },
		"batch":   func() *gorgonia.Node { return in.Count("batch", 0, 2, 1) },
		"ones":    func() *gorgonia.Node { return in.FixedInts("ones", []int32{1, 1}) },
		"queue":   func() *gorgonia.Node { return in.SharedFloats("queue", make([]float32, 6), 2, 3) },
		"filled":  func() *gorgonia.Node { return in.SharedInts("filled", make([]int32, 1)) },
		"unbound": func() *gorgonia.Node { return in.Unbound("unbound", batch.Int32, 3) },
	} {
		if first := ask(); first == nil || ask() != first || in.Node(name) != first {
			t.Errorf("%s is another input when it is asked for again", name)
		}
	}
	m := newMachine()
	if err := in.Bind(m); err != nil || m.count != 6 {
		t.Errorf("%d inputs bound, want 6 (%v)", m.count, err)
	}
	if err := in.Fill(m, &Step{Batch: batch.New(2, images, tokens)}); err != nil || m.count != 8 || fills != 2 {
		t.Errorf("%d inputs bound and %d fills, want 8 and 2 (%v)", m.count, fills, err)
	}
	if len(in.Columns()) != 2 || in.Node("nobody") != nil || in.Memory("nobody") != nil {
		t.Errorf("columns %v", in.Columns())
	}
}

// TestOneNameHasOneShape: a name that two readers mean two things by is refused.
func TestOneNameHasOneShape(t *testing.T) {
	in := New(gorgonia.NewGraph())
	in.Column(images, 2)
	in.Flat(tokens, 2)
	in.SharedInts("filled", make([]int32, 1))
	for want, ask := range map[string]func(){
		"input images: is float32 (2, 3, 2, 2) and is asked for as float32 (3, 3, 2, 2)": func() { in.Column(images, 3) },
		"input tokens: is int32 (10) and is asked for as int32 (2, 5)":                   func() { in.Column(tokens, 2) },
		"input filled: is int32 () and is asked for as int32 (1)":                        func() { in.FixedInts("filled", []int32{1}) },
		"input filled: is int32 () and is asked for as float32 ()":                       func() { in.SharedFloats("filled", make([]float32, 1)) },
	} {
		var err error
		func() {
			defer op.Catch(&err)
			ask()
		}()
		if err == nil || err.Error() != want+": give one of the two another name" {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestMemoryIsBoundOnce: inputs with memory of their own keep it, and what a fill or an owner
// writes is there without another call.
func TestMemoryIsBoundOnce(t *testing.T) {
	in := New(gorgonia.NewGraph())
	noise := in.Floats("noise", func(s *Step, dst []float32) error {
		for i := range dst {
			dst[i] = float32(10*s.Update + i)
		}
		return nil
	}, 2, 2)
	alpha := in.Floats("alpha", func(s *Step, dst []float32) error { dst[0] = float32(s.Update); return nil })
	key := in.Ints("key", func(s *Step, dst []int32) error { dst[1] = int32(s.Counter); return nil }, 2)
	queue := make([]float32, 6)
	ring := in.SharedFloats("queue", queue, 2, 3)
	filled := []int32{0}
	in.SharedInts("filled", filled)
	in.Count("every third", 4, 3, 3)
	for node, want := range map[*gorgonia.Node]tensor.Shape{noise: {2, 2}, alpha: tensor.ScalarShape(), key: {2}, ring: {2, 3}, in.Node("filled"): tensor.ScalarShape(), in.Node("every third"): {3}} {
		if !node.Shape().Eq(want) {
			t.Errorf("%s has shape %v, want %v", node.Name(), node.Shape(), want)
		}
	}
	m := newMachine()
	if err := in.Bind(m); err != nil {
		t.Fatal(err)
	}
	count := m.count
	for update := range 3 {
		queue[2], filled[0] = float32(update), int32(update)
		if err := in.Fill(m, &Step{Batch: batch.New(1), Update: update, Counter: 5 * update}); err != nil {
			t.Fatal(err)
		}
		u := float32(update)
		if got := m.bound["noise"].([]float32); !slices.Equal(got, []float32{10 * u, 10*u + 1, 10*u + 2, 10*u + 3}) {
			t.Errorf("noise %v at update %d", got, update)
		}
		if m.bound["alpha"].([]float32)[0] != u || m.bound["key"].([]int32)[1] != int32(5*update) || m.bound["queue"].([]float32)[2] != u || m.bound["filled"].([]int32)[0] != int32(update) {
			t.Errorf("update %d: %v", update, m.bound)
		}
	}
	if m.count != count {
		t.Errorf("%d inputs bound again", m.count-count)
	}
	if got := m.bound["every third"].([]int32); !slices.Equal(got, []int32{4, 7, 10}) {
		t.Errorf("counted %v", got)
	}
	if !same(in.Memory("queue").([]float32), queue) || !same(in.Memory("noise").([]float32), m.bound["noise"].([]float32)) {
		t.Error("Memory is not what the machine reads")
	}
}

// TestFillsRunInTheirOrder: a fill reads what an earlier one has written, and an error stops.
func TestFillsRunInTheirOrder(t *testing.T) {
	in := New(gorgonia.NewGraph())
	var order []string
	in.OnFill(func(*Step) error { order = append(order, "first"); return nil })
	in.Floats("second", func(*Step, []float32) error { order = append(order, "second"); return nil }, 1)
	in.OnFill(func(*Step) error {
		order = append(order, "third")
		if len(order) > 3 {
			return errors.New("stop")
		}
		return nil
	})
	in.Ints("fourth", func(*Step, []int32) error { order = append(order, "fourth"); return nil }, 1)
	s := &Step{Batch: batch.New(1)}
	if err := in.Fill(newMachine(), s); err != nil || strings.Join(order, " ") != "first second third fourth" {
		t.Errorf("%v, %v", order, err)
	}
	if err := in.Fill(newMachine(), s); err == nil || err.Error() != "stop" || len(order) != 7 {
		t.Errorf("%v, %v", order, err)
	}
}

// TestABatchThatDoesNotFit is refused by the name of the column before anything is filled,
// whether the column is an input or is read by a fill.
func TestABatchThatDoesNotFit(t *testing.T) {
	in := New(gorgonia.NewGraph())
	in.Column(images, 4)
	in.Flat(tokens, 4)
	in.Read(lengths)
	filled := false
	in.OnFill(func(*Step) error { filled = true; return nil })
	if c := in.Columns(); len(c) != 3 {
		t.Errorf("columns %v", c)
	}
	for want, change := range map[string]func(b *batch.Batch){
		"feed: images: got 36 values, want 4 rows of 12": func(b *batch.Batch) { b.SetFloats("images", make([]float32, 36)) },
		"feed: images: got 0 values, want 4 rows of 12":  func(b *batch.Batch) { b.SetFloats("images", nil) },
		"feed: tokens: got 21 values, want 4 rows of 5":  func(b *batch.Batch) { b.SetInts("tokens", make([]int32, 21)) },
		"feed: lengths: got 3 values, want 4 rows of 1":  func(b *batch.Batch) { b.SetInts("lengths", make([]int32, 3)) },
		"feed: lengths: got 0 values, want 4 rows of 1":  func(b *batch.Batch) { b.SetInts("lengths", nil) },
	} {
		b := batch.New(4, images, tokens, lengths)
		change(b)
		if err := in.Fill(newMachine(), &Step{Batch: b}); err == nil || err.Error() != want+": give batches with all its columns and as many rows as it was built for" || filled {
			t.Errorf("got %v (filled: %t), want %q", err, filled, want)
		}
	}
	if err := in.Fill(newMachine(), &Step{Batch: batch.New(4, images, tokens, lengths)}); err != nil || !filled {
		t.Errorf("a batch that fits: %v", err)
	}
	if err := in.Fill(newMachine(), &Step{Batch: batch.New(3, images, tokens, lengths)}); err == nil || !strings.Contains(err.Error(), "images: got 36 values") {
		t.Errorf("another number of rows: %v", err)
	}
	m := newMachine()
	m.fail = "tokens"
	if err := in.Fill(m, &Step{Batch: batch.New(4, images, tokens, lengths)}); err == nil || err.Error() != "no tokens" {
		t.Errorf("an input that is refused: %v", err)
	}
	in.FixedInts("ones", []int32{1})
	m.fail = "ones"
	if err := in.Bind(m); err == nil || err.Error() != "no ones" {
		t.Errorf("memory that is refused: %v", err)
	}
}

// TestShareAndStream: the ranks' shares of a global batch lie side by side in the order of
// the ranks and cover it, and no two global batches of a run draw from one stream, which is the same on all ranks. A single process
// may leave its rank out.
func TestShareAndStream(t *testing.T) {
	for _, s := range []Step{{Counter: 7}, {Counter: 7, Rank: 0, Ranks: 1}} {
		if lo, hi, all := s.Share(6); lo != 0 || hi != 6 || all != 6 || s.Stream() != 7 {
			t.Errorf("%+v: rows [%d, %d) of %d, stream %d", s, lo, hi, all, s.Stream())
		}
	}
	const ranks = 3
	next := 0
	for counter := range 5 {
		next = 0
		for rank := range ranks {
			s := Step{Counter: counter, Rank: rank, Ranks: ranks}
			lo, hi, all := s.Share(4)
			if lo != next || hi != lo+4 || all != 12 {
				t.Errorf("rank %d has rows [%d, %d) of %d", rank, lo, hi, all)
			}
			next = hi
			if s.Stream() != uint64(counter) {
				t.Errorf("rank %d draws from stream %d of batch %d", rank, s.Stream(), counter)
			}
		}
	}
}
