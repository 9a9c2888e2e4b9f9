package model

import (
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

func TestQueueWrapsAnyBatch(t *testing.T) {
	const size, dim = 7, 2
	q := newQueue(queueArgs{size: size, dim: dim, spheres: 1, seed: 1})
	next := int32(0)
	var history []int32
	for _, n := range []int{3, 3, 3, 5, 7, 1} {
		img, txt, ids := make([]float32, n*dim), make([]float32, n*dim), make([]int32, n)
		for i := range n {
			ids[i] = next
			history = append(history, next)
			for d := range dim {
				img[i*dim+d], txt[i*dim+d] = float32(next), -float32(next)
			}
			next++
		}
		check.OK(t, q.Push(Keys{Image: img, Text: txt}, ids))
		if want := min(size, len(history)); q.Filled != want {
			t.Fatalf("filled %d, want %d", q.Filled, want)
		}
		// The oracle: row (k mod size) holds the newest k.
		for k := max(0, len(history)-size); k < len(history); k++ {
			row := k % size
			if q.IDs[row] != history[k] || q.Image[row*dim] != float32(history[k]) || q.Text[row*dim+1] != -float32(history[k]) {
				t.Fatalf("row %d holds id %d, want %d", row, q.IDs[row], history[k])
			}
		}
	}
	if err := q.Push(Keys{Image: make([]float32, 8*dim), Text: make([]float32, 8*dim)}, make([]int32, 8)); err == nil {
		t.Error("a batch larger than the queue was accepted")
	}
}

func TestQueueStartsUnfilledWithUnitRows(t *testing.T) {
	q := newQueue(queueArgs{size: 5, dim: 3, spheres: 1, seed: 1})
	if q.Filled != 0 || q.IDs[4] != NoID {
		t.Fatalf("filled %d, id %d", q.Filled, q.IDs[4])
	}
	for i := range 5 {
		var s float64
		for _, v := range q.Image[i*3:][:3] {
			s += float64(v) * float64(v)
		}
		if s < .9999 || s > 1.0001 {
			t.Errorf("row %d has squared norm %v", i, s)
		}
	}
}
