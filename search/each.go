package search

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/files"
)

// stepParts is how many parts a thread does between two looks at the context.
const stepParts = 8

// each calls body for the parts 0 to n-1 on the threads of e, or on this goroutine where e is nil.
// It ends early with the error of a part or of ctx. progress may be nil.
func each(ctx context.Context, e *compute.Engine, n int, progress func(done, of int),
	body func(worker, part int) error) error {
	threads := threads(e)
	first, errs := 0, make([]error, threads)
	step := func(worker, lo, hi int) {
		defer files.RecoverFault(&errs[worker], errGone, debug.SetPanicOnFault(true))
		for part := first + lo; part < first+hi && errs[worker] == nil; part++ {
			errs[worker] = body(worker, part)
		}
	}
	for first < n {
		if err := ctx.Err(); err != nil {
			return err
		}
		count := min(stepParts*threads, n-first)
		if e == nil {
			step(0, 0, count)
		} else {
			e.For(count, 1, step)
		}
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		if first += count; progress != nil {
			progress(first, n)
		}
	}
	return nil
}

// threads is on how many threads each works.
func threads(e *compute.Engine) int {
	if e == nil {
		return 1
	}
	return e.Threads()
}

// errGone says that a mapped index cannot be read any more.
var errGone = errors.New("search: the file of the index can no longer be read: it was changed or its disk fails: build it again")
