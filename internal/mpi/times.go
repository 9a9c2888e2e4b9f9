package mpi

import (
	"sync/atomic"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
)

// times are sums over the exchanges so far.
type times struct{ exchanges, bytes, spent atomic.Int64 }

var _ parallel.Timed = (*World)(nil)

// add counts an exchange that began at a time of clock and ends now.
func (t *times) add(began int64, bytes int) {
	t.exchanges.Add(1)
	t.bytes.Add(int64(bytes))
	t.spent.Add(clock() - began)
}

// Times implements parallel.Timed. The time of an exchange runs from its turn on this rank to its end, so the wait for
// ranks that come later is a part of it, and waiting behind other exchanges is not.
func (w *World) Times() parallel.Times {
	t := &w.times
	return parallel.Times{Exchanges: int(t.exchanges.Load()), Bytes: t.bytes.Load(),
		Exchange: time.Duration(t.spent.Load())}
}

// bytes is how much this rank gives.
func (c call) bytes() int {
	switch c.kind {
	case sumHalf:
		return 2 * len(c.x)
	case sum, sumShare:
		return 4 * len(c.x)
	default:
		return len(c.give)
	}
}
