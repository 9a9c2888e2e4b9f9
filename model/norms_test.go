package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"gorgonia.org/gorgonia"
)

// normBatches are batches of a host, with numbers behind the regions of an image, which are no part of it.
func normBatches(m *Trainer, n int) (list []*batch.Batch) {
	for s := range n {
		b := batch.New(m.cfg.Train.BatchSize, m.Columns()...)
		for i := range b.Rows() {
			row := b.Row(i)
			row.Set(batch.RegionLengths, int32(1+(i+s)%4))
			row.Set(batch.Lengths, int32(2+i))
			row.Set(batch.IDs, int32(i))
			for k := range row.Floats(batch.Regions) {
				row.Floats(batch.Regions)[k] = float32(math.Sin(float64(1000*s + 100*i + k)))
			}
			for k := range row.Ints(batch.Tokens) {
				row.Ints(batch.Tokens)[k] = int32(5 + (3*i+k+s)%15)
			}
		}
		list = append(list, b)
	}
	return list
}

// running are the running statistics of a model, one after the other.
func running(m *Trainer) (list []float32) {
	for _, q := range m.params.List() {
		if strings.Contains(q.Name, "running_") {
			list = append(list, m.params.Value(q)...)
		}
	}
	return list
}

// TestRunningStatistics: a step leaves them, the end of an update moves them by each micro-batch in turn, and a step
// that is dropped leaves no trace.
func TestRunningStatistics(t *testing.T) {
	for _, host := range []string{"vseinf_norm", "vsrn_norm"} {
		one, both := buildCLIP(t, tinyHost(host)), buildCLIP(t, tinyHost(host))
		start, data := running(one), normBatches(one, 3)
		if len(start) == 0 {
			t.Fatal("there are none")
		}
		for i, b := range data[:2] { // an update each, of which only the end changes anything
			stepOf(t, one, &feed.Step{Batch: b, Update: i, Counter: i})
			check.OK(t, one.After())
		}
		steps := []*feed.Step{{Batch: data[2]}, {Batch: data[0]}, {Batch: data[1], Micro: 1, Counter: 1}}
		for _, s := range steps { // the first is dropped
			stepOf(t, both, s)
		}
		if !sameBits(running(both), start) {
			t.Errorf("%s: a step moves running statistics", host)
		}
		check.OK(t, both.After())
		if got := running(both); sameBits(got, start) || !sameBits(got, running(one)) {
			t.Errorf("%s: running statistics %v, want %v", host, got, running(one))
		}
	}
}

// TestStatisticsOfProcesses: running statistics move to the mean over the processes, micro-batch by micro-batch.
func TestStatisticsOfProcesses(t *testing.T) {
	m := buildCLIP(t, tinyHost("vseinf_norm"))
	name := "image/bn1/running_mean"
	q, ok := m.params.Get(name)
	if !ok {
		t.Fatal("there is no " + name)
	}
	clear(m.params.Value(q))
	n := norms{[]statistic{{name: name, groups: gorgonia.Nodes{nil}, kept: []float32{1, 2, 3, 4, 3, 2, 1, 0, 10, 10, 10, 10, 20, 20, 20, 20}}}}
	n.move(m.params, 2)
	for i, got := range m.params.Value(q) {
		first := .1 * []float64{2, 2, 2, 2}[i]
		if want := first + .1*(15-first); !(math.Abs(float64(got)-want) <= 1e-6) {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
	if len(n.list[0].kept) != 0 {
		t.Error("what was kept counts twice")
	}
	g := gorgonia.NewGraph()
	node := func(name string) *gorgonia.Node {
		return gorgonia.NewVector(g, gorgonia.Float32, gorgonia.WithShape(4), gorgonia.WithName(name))
	}
	n, a, b := norms{}, encoders.Moments{Mean: node("a"), Variance: node("b")}, encoders.Moments{Mean: node("c"), Variance: node("d")}
	n.add(a, b)
	n.add(a, b)
	n.add(a, encoders.Moments{Mean: node("e"), Variance: node("f")})
	if len(n.list) != 4 {
		t.Errorf("%d statistics of two passes, one of them built twice", len(n.list))
	}
}

// TestNormsComputedAgain: a step that computes its blocks again has the same bits, running statistics included.
func TestNormsComputedAgain(t *testing.T) {
	cfg := tinyHost("vsrn_norm")
	plain := buildCLIP(t, cfg)
	cfg.Compute.Recompute = true
	again := buildCLIP(t, cfg)
	for i, b := range normBatches(plain, 2) {
		for _, m := range []*Trainer{plain, again} {
			stepOf(t, m, &feed.Step{Batch: b, Update: i, Counter: i})
			check.OK(t, m.After())
		}
		if !sameBits(plain.params.Grads(), again.params.Grads()) || !sameBits(running(plain), running(again)) {
			t.Fatalf("step %d differs", i)
		}
	}
}

// TestLockedNorms: of a frozen tower, batch norms are those of inference, and stay as they are.
func TestLockedNorms(t *testing.T) {
	cfg := tinyHost("vseinf_norm")
	cfg.Model.Image.Freeze = true
	m := buildCLIP(t, cfg)
	q, _ := m.params.Get("image/bn1/running_mean")
	copy(m.params.Value(q), []float32{1, -1, .5, 2})
	before := running(m)
	stepOf(t, m, &feed.Step{Batch: normBatches(m, 1)[0]})
	check.OK(t, m.After())
	if !sameBits(running(m), before) || len(m.step.norms.list) != 0 {
		t.Error("running statistics move")
	}
}

// TestNormsOfTwins: the teacher has running statistics of its own, which follow the student's as every twin does, and
// its passes move none.
func TestNormsOfTwins(t *testing.T) {
	cfg := tinyHost("vseinf_norm")
	cfg.Momentum.Enabled, cfg.Queue.Size, cfg.Objective.ITC.Weight = true, 20, 1
	m := buildCLIP(t, cfg)
	if n := len(m.step.norms.list); n != 2 {
		t.Errorf("%d statistics are kept of one batch norm", n)
	}
	var twins []string
	for _, q := range m.params.List() {
		if strings.Contains(q.Name, "running_") && q.Momentum && !m.Learnable(q.Name) {
			twins = append(twins, q.Name)
		}
	}
	if want := []string{"image/bn1/running_mean", "image/bn1/running_var"}; !slices.Equal(twins, want) {
		t.Errorf("twins are %v", twins)
	}
}
