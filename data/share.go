package data

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
)

// Several processes share each batch: rank r of R has the rows from r*B/R to (r+1)*B/R of the batch
// that one process would make.
//
// Which samples these are depends on which samples before them are bad, and only the rank that reads a
// sample knows that. So each takes all of them for good and reads ahead. With each batch the ranks tell each
// other what was bad, mostly nothing. Where something was, all lay out the rows anew without it, read
// the few samples that they have not yet, and tell again.

// layout appends which samples the batch from a position on is of, to dst, which is empty, and returns where the next
// batch begins. Samples that bad has are left out, and the next ones take their rows.
func (l *Loader) layout(dst []uint64, position uint64, bad map[uint64]error) (rows []uint64, end uint64) {
	epoch := uint64(l.stream.EpochSamples())
	for c := position; ; c++ {
		if l.cfg.DropLast && len(dst) > 0 && c%epoch == 0 {
			dst = dst[:0] // the rest of the epoch does not fill a batch
		}
		if bad[c] != nil {
			continue
		}
		if dst = append(dst, c); len(dst) == l.cfg.BatchSize {
			return dst, c + 1
		}
	}
}

// own are the rows of a layout that this process has.
func (l *Loader) own(layout []uint64) []uint64 {
	n := l.cfg.rows()
	return layout[l.cfg.Group.Rank()*n:][:n]
}

// dispatchShare is dispatch for the own rows of one batch after the other.
func (p *prefetch) dispatchShare(position uint64) {
	defer p.wg.Done()
	rows := make([]uint64, 0, p.l.cfg.BatchSize)
	for {
		rows, position = p.l.layout(rows[:0], position, nil)
		for _, c := range p.l.own(rows) {
			select {
			case <-p.quit:
				return
			case s := <-p.free:
				p.begin(s, c)
			}
		}
	}
}

// assembleShare is assemble for the own rows: those of bad samples stay unfilled.
func (p *prefetch) assembleShare(position uint64) {
	defer p.wg.Done()
	l := p.l
	rows := make([]uint64, 0, l.cfg.BatchSize)
	for {
		b := l.batch()
		r := result{batch: b}
		b.Counter = position
		rows, position = l.layout(rows[:0], position, nil)
		b.End = position
		for i := range b.Size {
			s := p.done()
			if s == nil {
				l.reuse(b)
				return
			}
			b.Counters[i] = s.counter
			switch {
			case s.err == nil:
				b.Row(i).Copy(s.row)
			case files.Exhausted(s.err):
				r.err = exhausted(s.err)
			default:
				r.lost = append(r.lost, BadSample{s.counter, words.Short(s.err)})
			}
			p.free <- s
		}
		select {
		case <-p.quit:
			l.reuse(b)
			return
		case p.out <- r:
		}
	}
}

// nextShared is Next of several processes.
func (l *Loader) nextShared(ctx context.Context) (*Batch, error) {
	var r result
	select {
	case <-ctx.Done():
		r.err = ctx.Err()
	default:
		select {
		case <-ctx.Done():
			r.err = ctx.Err()
		case r = <-l.run.out:
		}
	}
	bad := map[uint64]error(nil)
	var end uint64
	if r.batch != nil {
		end = r.batch.End
	}
	for {
		lost, err := l.tell(r)
		if err != nil {
			return nil, l.fail(r, err)
		}
		if bad == nil && lost != nil {
			bad = map[uint64]error{}
		}
		for _, x := range lost {
			bad[x.Counter] = x.Err
		}
		n, all, err := l.judge(bad, end)
		if err != nil {
			l.tally(n, all)
			return nil, l.fail(r, err)
		}
		if lost == nil {
			l.passed = n
			l.tally(n, all)
			break
		}
		var rows []uint64
		rows, end = l.layout(nil, l.pos, bad)
		if l.tooFar(end - l.pos - 1) {
			return nil, l.fail(r, fmt.Errorf("data: no batch of %d good samples in %d samples: %w", l.cfg.BatchSize,
				end-l.pos-1, lost[len(lost)-1].Err))
		}
		r = l.remake(r.batch, l.own(rows))
		r.batch.Counter, r.batch.End = l.pos, end
	}
	b := r.batch
	b.out.Store(true)
	l.pos, b.Epoch = b.End, float64(b.End)/float64(l.stream.EpochSamples())
	if bad != nil {
		l.Start(l.pos) // what was made ahead is of other rows
	}
	return b, nil
}

// fail ends what was made ahead. An error of all processes stays; that of one may be that it was asked to stop.
func (l *Loader) fail(r result, err error) error {
	l.stop()
	l.reuse(r.batch)
	if !errors.As(err, new(*parallel.Failure)) {
		l.failed = err
	}
	return err
}

// remake lays out a batch anew: it takes what b has, and makes the rest.
func (l *Loader) remake(b *Batch, rows []uint64) result {
	r := result{batch: l.batch()}
	defer l.reuse(b)
	copy(r.batch.Counters, rows)
	errs := make([]error, len(rows))
	var wg sync.WaitGroup
	for worker := range min(l.cfg.Workers, len(rows)) {
		wg.Go(func() {
			for i := worker; i < len(rows); i += l.cfg.Workers {
				if j := slices.Index(b.Counters, rows[i]); j >= 0 {
					r.batch.Row(i).Copy(b.Row(j))
				} else {
					errs[i] = safely(l.stream, rows[i], r.batch.Row(i))
				}
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		switch {
		case files.Exhausted(err):
			r.err = exhausted(err)
		case err != nil:
			r.lost = append(r.lost, BadSample{rows[i], words.Short(err)})
		}
	}
	return r
}

// told is what a process says of its rows of a batch, in JSON; nothing where all are good.
type told struct {
	Failed bool // something other than bad samples
	Bad    []toldSample
}

type toldSample struct {
	Counter uint64
	Text    string
}

// tell returns the bad samples of all processes among the rows of a batch, in their order. Where one has failed
// all get a *parallel.Failure.
func (l *Loader) tell(r result) ([]BadSample, error) {
	g := l.cfg.Group
	var own []byte
	if r.err != nil || r.lost != nil {
		t := told{Failed: r.err != nil}
		for _, x := range r.lost {
			t.Bad = append(t.Bad, toldSample{x.Counter, x.Err.Error()})
		}
		own, _ = json.Marshal(t) // which holds nothing that JSON lacks
	}
	all, err := g.GatherBytes(own)
	if err != nil {
		return nil, err
	}
	var lost []BadSample
	failed := false
	for rank, text := range all {
		if len(text) == 0 {
			continue
		}
		var t told
		if err := json.Unmarshal(text, &t); err != nil {
			return nil, fmt.Errorf("data: what rank %d says of its samples: %w", rank, err)
		}
		failed = failed || t.Failed
		for i, x := range t.Bad {
			if rank == g.Rank() {
				lost = append(lost, r.lost[i])
			} else {
				lost = append(lost, BadSample{x.Counter, errors.New(x.Text)})
			}
		}
	}
	if failed {
		return nil, parallel.Agree(g, r.err)
	}
	slices.SortFunc(lost, func(a, b BadSample) int { return cmp.Compare(a.Counter, b.Counter) })
	return lost, nil
}

// judge counts the samples of a batch that ends before end, of which bad is known, one after the other as assemble
// does, and judges at every bad one as it does. So the verdict is that of one process.
func (l *Loader) judge(bad map[uint64]error, end uint64) (n counts, all []BadSample, err error) {
	x := l.counting(l.pos)
	all = slices.Clone(l.examples)
	for c := l.pos; c < end; c++ {
		if !x.reads(c) {
			continue
		}
		why := bad[c]
		if why == nil {
			x.row++
			continue
		}
		x.bad++
		if len(all) < maxExamples {
			all = append(all, BadSample{c, why})
		}
		if l.tooBad(x.counts) {
			return x.counts, all, &BadShareError{Bad: x.bad, Read: x.read, Allowed: l.cfg.MaxBadShare, Examples: all}
		}
	}
	return x.counts, all, nil
}

// tally keeps what judge has counted.
func (l *Loader) tally(n counts, all []BadSample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts, l.examples = n, all
}
