package search

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/internal/words"
)

// The identity of a pool is that of the values of all its rows in float32: an exact copy of its files,
// in another format too, has the same. It is summed by blocks of rows, so that threads share the work and
// a message can say where rows differ.

const (
	mostBlocks = 1024 // of rows that are summed by themselves
	chunkRows  = 256  // rows that are read at a time; a block has a multiple of them
)

// blockRows returns how many rows a block of a pool of n rows has.
func blockRows(n int) int {
	each := (n + mostBlocks - 1) / mostBlocks
	return (each + chunkRows - 1) / chunkRows * chunkRows
}

// blocks returns how many blocks a pool of n rows has.
func blocks(n int) int { return (n + blockRows(n) - 1) / blockRows(n) }

// eachBlock calls body with the rows of a pool, as they are stored, some at a time: those of a block one after another
// on one thread. It sets sums (blocks) to the sums of the blocks. x (n, D) may be written to.
func eachBlock(ctx context.Context, e *compute.Engine, p Pool, sums []identity.Sum, progress func(done, of int),
	body func(worker, first, n int, x []float32) error) error {
	n, d := p.Rows(), p.Width()
	size := blockRows(n)
	rooms := make([][]float32, threads(e))
	return each(ctx, e, blocks(n), progress, func(worker, block int) error {
		if rooms[worker] == nil {
			rooms[worker] = make([]float32, chunkRows*d)
		}
		h := sha256.New()
		for first, end := block*size, min((block+1)*size, n); first < end; first += chunkRows {
			rows := min(chunkRows, end-first)
			x := rooms[worker][:rows*d]
			if err := readRows(p, first, rows, x); err != nil {
				return err
			}
			if err := safetensors.WriteFloats(h, x); err != nil {
				return err
			}
			if body != nil {
				if err := body(worker, first, rows, x); err != nil {
					return err
				}
			}
		}
		sums[block] = identity.Sum(h.Sum(nil)[:len(identity.Sum{})])
		return nil
	})
}

// fingerprintOf returns the sum of the rows of a pool whose blocks have these sums.
func fingerprintOf(rows, width int, sums []identity.Sum) string {
	l := identity.NewList()
	l.Add("rows", fmt.Sprint(rows, width))
	for _, s := range sums {
		l.Add(s.String())
	}
	return l.Sum().String()
}

// stamped is a pool that lies in files: Stamp says of which rows of which files it is, beginning with a path, and what
// the file system says of them.
type stamped interface {
	Stamp() (rows string, s identity.Stamp, err error)
}

// checkRows compares the rows of the pool with those that the index was built of. It reads them unless the stamps of
// their files prove that they are the same.
func (x *Index) checkRows(ctx context.Context, e *compute.Engine, path string, progress func(done, of int)) error {
	check := func() error {
		now := make([]identity.Sum, len(x.sums))
		if err := eachBlock(ctx, e, x.pool, now, progress, nil); err != nil {
			return err
		}
		if slices.Equal(now, x.sums) {
			return nil
		}
		return &StaleError{path, differing(now, x.sums, x.header.Rows)}
	}
	p, ok := x.pool.(stamped)
	if !ok {
		return check()
	}
	name, _, err := p.Stamp()
	if err != nil {
		return err
	}
	book := identity.User()
	if err := book.Check(checkName(name, x.header.Fingerprint), stampOf(p), check); err != nil {
		return err
	}
	_ = book.Save() // else the rows are read again another time
	return nil
}

// checkName is the name by which a book knows rows that have a fingerprint.
func checkName(rows, fingerprint string) string { return rows + " has the rows " + fingerprint }

// stampOf returns the stamp of a pool's files when it is called.
func stampOf(p stamped) func() (identity.Stamp, error) {
	return func() (identity.Stamp, error) {
		_, s, err := p.Stamp()
		return s, err
	}
}

// noteRows notes that the pool, whose stamp was this one before it was read, has the rows that the index was built of.
func (x *Index) noteRows(before identity.Stamp) {
	p, ok := x.pool.(stamped)
	if !ok {
		return
	}
	if name, after, err := p.Stamp(); err == nil && after == before {
		identity.User().NoteChecked(checkName(name, x.header.Fingerprint), before)
		_ = identity.User().Save()
	}
}

// namedBlocks is how many blocks a message names.
const namedBlocks = 4

// differing says which blocks of n rows have other sums now.
func differing(now, was []identity.Sum, n int) string {
	size, count := blockRows(n), 0
	var names []string
	for i := range was {
		if now[i] == was[i] {
			continue
		}
		if count++; count <= namedBlocks {
			names = append(names, fmt.Sprintf("%d to %d", i*size, min((i+1)*size, n)-1))
		}
	}
	if more := count - namedBlocks; more > 0 {
		names = append(names, fmt.Sprintf("in %s more", words.Count(more, "block")))
	}
	return fmt.Sprintf("rows differ among %s (%d of %s of rows)", strings.Join(names, ", "), count,
		words.Count(len(was), "block"))
}

// StaleError says that an index is of other rows than the pool that it was opened with.
type StaleError struct {
	Path   string
	Detail string
}

// Error says what differs and what to do.
func (e *StaleError) Error() string {
	return fmt.Sprintf("search: %s is the index of other rows: %s: build it again, or give the features that it was built of", e.Path, e.Detail)
}
