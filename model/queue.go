package model

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/rng"
)

// NoID marks a queue entry that has no image id: it is never a positive (1.10.2).
const NoID = -100

// Queue is a pair of rings of momentum features, one per modality, with the ids of
// the images they came from. A batch of any size is written at the pointer and
// wraps around; the oldest entries are overwritten. A system of images alone has no
// ring of texts.
type Queue struct {
	Image, Text []float32 // (Q, C), unit rows; Text is nil in a system of images alone
	IDs         []int32   // (Q)
	Pointer     int       // next row to write
	Filled      int       // rows written so far, at most Q
	size, dim   int
	graphs      *Graphs // over the rings, or nil
}

// NewQueue returns a queue of random unit rows (1.4.6), none of them filled.
func NewQueue(size, dim int, seed uint64) *Queue {
	return newQueue(size, dim, seed, make([]float32, size*dim))
}

// NewImageQueue returns a queue like NewQueue's, for a system of images alone.
func NewImageQueue(size, dim int, seed uint64) *Queue { return newQueue(size, dim, seed, nil) }

func newQueue(size, dim int, seed uint64, text []float32) *Queue {
	q := &Queue{Image: make([]float32, size*dim), Text: text, IDs: make([]int32, size), size: size, dim: dim}
	r := rng.New(seed, rng.Queue, 0)
	for _, ring := range [][]float32{q.Image, q.Text} {
		for i := range ring {
			ring[i] = float32(r.NormFloat64())
		}
		for i := range len(ring) / dim {
			normalize(ring[i*dim:][:dim])
		}
	}
	for i := range q.IDs {
		q.IDs[i] = NoID
	}
	return q
}

// Size returns Q.
func (q *Queue) Size() int { return q.size }

// Push writes n rows of image and text features (n, C) with their ids; text is empty
// where the queue has no ring of texts.
func (q *Queue) Push(image, text []float32, ids []int32) error {
	n := len(ids)
	if n > q.size {
		return fmt.Errorf("model: queue of %d entries cannot take a batch of %d: make queue.size at least the batch size", q.size, n)
	}
	texts := n
	if q.Text == nil {
		texts = 0
	}
	if len(image) != n*q.dim || len(text) != texts*q.dim {
		return fmt.Errorf("model: queue takes %d features of %d channels (got %d image and %d text values)", n, q.dim, len(image), len(text))
	}
	for done := 0; done < n; {
		k := min(n-done, q.size-q.Pointer)
		copy(q.Image[q.Pointer*q.dim:], image[done*q.dim:(done+k)*q.dim])
		if q.Text != nil {
			copy(q.Text[q.Pointer*q.dim:], text[done*q.dim:(done+k)*q.dim])
		}
		copy(q.IDs[q.Pointer:], ids[done:done+k])
		if q.graphs != nil {
			q.graphs.pushed(q.Pointer, k)
		}
		done += k
		q.Pointer = (q.Pointer + k) % q.size
		q.Filled = min(q.size, q.Filled+k)
	}
	return nil
}
