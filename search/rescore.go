package search

import (
	"fmt"
	"runtime/debug"
)

// A search ranks by products that are rounded: of float32, or of codes. It keeps more hits than
// were asked for, scores them anew from the rows as they are stored, in float64, and returns the
// first. So scores depend on the two rows alone, and neither on the backend nor on what else is
// searched for.

// rescorer has the room of one thread.
type rescorer struct{ row []float32 }

// rescore replaces the scores of hits by those of query x, of squared length lengthX.
func (r *rescorer) rescore(p *points, x []float32, lengthX float64, t *top) error {
	if r.row == nil {
		r.row = make([]float32, p.pool.Width())
	}
	for i := range t.items {
		h := &t.items[i]
		length, err := p.raw(int(h.row), r.row)
		if err != nil {
			return err
		}
		h.score = p.metric.score(x, r.row, lengthX, length)
	}
	return nil
}

// guard makes an error of what happens when a file in memory got shorter or its disk fails, and
// sets the goroutine back. It is deferred with the result of debug.SetPanicOnFault(true).
func guard(err *error, before bool) {
	debug.SetPanicOnFault(before)
	switch p := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }: // a memory fault
		*err = fmt.Errorf("search: the index can no longer be read: its file was changed or its disk fails: build it again")
	default:
		panic(p)
	}
}
