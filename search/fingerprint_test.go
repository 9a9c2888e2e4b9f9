package search

import (
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/identity"
)

// filePool is a pool in memory that says to lie in a file, and counts what is read of it.
type filePool struct {
	*memory
	stamp identity.Stamp
	read  atomic.Int64
}

func (p *filePool) Stamp() (string, identity.Stamp, error) { return "/a file", p.stamp, nil }

func (p *filePool) ReadRows(first int, dst []float32) error {
	p.read.Add(int64(len(dst)))
	return p.memory.ReadRows(first, dst)
}

// TestKnownRows: rows whose stamp proves that they are those of the build are not read, and others are, once.
func TestKnownRows(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const n, d = 600, 8
	_, x := built(t, Cosine, n, d, BuildOptions{})
	old := time.Now().Add(-time.Hour).UnixNano()
	p := &filePool{memory: &memory{x, d}, stamp: identity.Stamp{Size: 1, Modified: old, Changed: old, File: 1}}
	index := check.Get(Build(t.Context(), engine(t, 2), p, BuildOptions{Metric: Cosine}))(t)
	path := filepath.Join(t.TempDir(), "x.search")
	check.OK(t, index.Save(path))
	read := func() (int64, error) {
		p.read.Store(0)
		x, err := Open(t.Context(), nil, path, p, nil)
		if err == nil {
			err = x.Close()
		}
		return p.read.Load(), err
	}
	now := time.Now().UnixNano()
	for i, step := range []struct {
		stamp identity.Stamp
		read  int64
	}{
		{p.stamp, 0}, // the build noted them
		{identity.Stamp{Size: 1, Modified: old, Changed: old, File: 2}, n * d},
		{identity.Stamp{Size: 1, Modified: old, Changed: old, File: 2}, 0},
		{identity.Stamp{Size: 1, Modified: old, Changed: now, File: 3}, n * d},
		{identity.Stamp{Size: 1, Modified: old, Changed: now, File: 3}, n * d}, // it may change again with this stamp
	} {
		p.stamp = step.stamp
		if got, err := read(); got != step.read || err != nil {
			t.Errorf("step %d: %d numbers are read, want %d: %v", i, got, step.read, err)
		}
	}
	p.x = slices.Clone(p.x)
	p.x[n*d/2]++
	if _, err := read(); err == nil {
		t.Error("other rows are taken")
	}
	p.stamp.File, p.stamp.Changed = 4, old
	for range 2 { // and not noted
		if _, err := read(); err == nil {
			t.Error("other rows are taken")
		}
	}
}

// TestDiffering: a message names the first blocks that differ, and counts them.
func TestDiffering(t *testing.T) {
	was := make([]identity.Sum, blocks(2000))
	now := slices.Clone(was)
	for i := range now {
		now[i] = identity.Sum{1}
	}
	now[1] = was[1]
	if got, want := differing(now, was, 2000),
		"rows differ among 0 to 255, 512 to 767, 768 to 1023, 1024 to 1279, in 3 blocks more (7 of 8 blocks of rows)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
