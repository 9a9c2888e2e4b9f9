package data

import (
	"fmt"
	"sync"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
)

// prefetch is one run of the loader's goroutines from a position on.
//
// dispatch hands slots with rising counters to the workers and, in the same
// order, to assemble; assemble waits for each slot in turn, so the batches come
// out in the order of the counters whatever worker was faster.
type prefetch struct {
	l    *Loader
	quit chan struct{}
	wg   sync.WaitGroup

	free, work, ordered chan *slot
	out                 chan result
}

// slot is one sample under way.
type slot struct {
	counter uint64
	row     batch.Row
	err     error
	done    chan struct{} // of capacity 1: the sample is ready
}

// result is a batch or the error that ends the run, with the counts up to it.
type result struct {
	batch *Batch
	err   error
	counts
	examples []BadSample // new ones

	// Of a share: the samples of the batch that are bad, whose rows are not filled.
	lost []BadSample
}

func (l *Loader) startPrefetch(position uint64) *prefetch {
	// Workers can be ahead of the slot that assemble waits for by this much.
	n := 2*l.cfg.Workers + 2
	p := &prefetch{
		l:       l,
		quit:    make(chan struct{}),
		free:    make(chan *slot, n),
		work:    make(chan *slot, n),
		ordered: make(chan *slot, n),
		out:     make(chan result, l.cfg.Prefetch),
	}
	for range n {
		p.free <- &slot{row: batch.New(1, l.cfg.Columns...).Row(0), done: make(chan struct{}, 1)}
	}
	_, _, examples := l.Bad()
	p.wg.Add(2 + l.cfg.Workers)
	for range l.cfg.Workers {
		go p.worker()
	}
	if l.cfg.Group.Size() > 1 {
		go p.dispatchShare(position)
		go p.assembleShare(position)
		return p
	}
	go p.dispatch(position)
	go p.assemble(position, l.counting(position), examples)
	return p
}

// stop ends the goroutines and waits for them.
func (p *prefetch) stop() {
	close(p.quit)
	p.wg.Wait()
	for {
		select {
		case r := <-p.out:
			p.l.reuse(r.batch)
		default:
			return
		}
	}
}

func (p *prefetch) dispatch(counter uint64) {
	defer p.wg.Done()
	for {
		select {
		case <-p.quit:
			return
		case s := <-p.free:
			p.begin(s, counter)
			counter++
		}
	}
}

// begin has a slot filled with a sample.
func (p *prefetch) begin(s *slot, counter uint64) {
	s.counter = counter
	p.ordered <- s // both have room for every slot
	p.work <- s
}

// done waits for the next slot in order, nil where the run ends.
func (p *prefetch) done() *slot {
	select {
	case <-p.quit:
		return nil
	case s := <-p.ordered:
		select {
		case <-p.quit:
			return nil
		case <-s.done:
			return s
		}
	}
}

func (p *prefetch) worker() {
	defer p.wg.Done()
	for {
		select {
		case <-p.quit:
			return
		case s := <-p.work:
			s.err = safely(p.l.stream, s.counter, s.row)
			s.done <- struct{}{}
		}
	}
}

// safely makes a sample of a stream. A panic in foreign code is a bad sample like any other.
func safely(s Stream, counter uint64, row batch.Row) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("data: sample %d: panic: %v", counter, v)
		}
	}()
	return s.Sample(counter, row)
}

// exhausted is the error of a machine that has run out of files or memory, which is not a fault
// of the sample.
func exhausted(err error) error {
	return fmt.Errorf("data: %w: this is not a bad sample but a limit of the machine: raise it (ulimit -n for open "+
		"files) or lower data.workers", err)
}

// counting counts samples in their order. Where the rest of an epoch fills no batch it is dropped as soon as that is
// known, as layout does it: several processes do not read it, so it does not count as read.
type counting struct {
	l *Loader
	counts
	row    int    // of the batch, that the next good sample is
	need   uint64 // up to where samples are needed for the batch, as far as is known
	border uint64 // end of the epoch
	rest   uint64 // end of what is dropped
	epoch  uint64 // samples
}

// counting begins at a position.
func (l *Loader) counting(position uint64) counting {
	epoch := uint64(l.stream.EpochSamples())
	return counting{l: l, counts: l.passed, need: position, border: (position/epoch + 1) * epoch, epoch: epoch}
}

// reads counts sample c as read, unless it is dropped.
func (x *counting) reads(c uint64) bool {
	for x.l.cfg.DropLast && c == x.need {
		if x.need += uint64(x.l.cfg.BatchSize - x.row); x.need > x.border {
			x.read, x.row = x.read-uint64(x.row), 0
			x.need, x.rest, x.border = x.border, x.border, x.border+x.epoch
		}
	}
	if c < x.rest {
		return false
	}
	x.read++
	return true
}

func (p *prefetch) assemble(position uint64, x counting, all []BadSample) {
	defer p.wg.Done()
	l := p.l
	b := l.batch()
	b.Counter = position
	var examples []BadSample // not yet sent
	sent := position         // end of the last batch
	send := func(r result) bool {
		r.counts, r.examples = x.counts, examples
		examples = nil
		select {
		case <-p.quit:
			l.reuse(r.batch)
			return false
		case p.out <- r:
			return true
		}
	}
	for {
		s := p.done()
		if s == nil {
			return
		}
		if !x.reads(s.counter) {
			p.free <- s
			continue
		}
		if files.Exhausted(s.err) {
			send(result{err: exhausted(s.err)})
			return
		}
		if s.err != nil {
			x.bad++
			if len(all) < maxExamples {
				all = append(all, BadSample{s.counter, words.Short(s.err)})
				examples = append(examples, BadSample{s.counter, words.Short(s.err)})
			}
			if l.tooBad(x.counts) {
				send(result{err: &BadShareError{Bad: x.bad, Read: x.read, Allowed: l.cfg.MaxBadShare, Examples: all}})
				return
			}
			// Without this a stream whose samples are all bad, within a share of
			// 1, would be read for ever.
			if l.tooFar(s.counter - sent) {
				send(result{err: fmt.Errorf("data: no batch of %d good samples in %d samples: %w", l.cfg.BatchSize,
					s.counter-sent, s.err)})
				return
			}
		} else {
			b.Row(x.row).Copy(s.row)
			b.Counters[x.row] = s.counter
			x.row++
		}
		end := s.counter + 1
		p.free <- s
		if x.row == l.cfg.BatchSize {
			b.End, b.Epoch = end, float64(end)/float64(x.epoch)
			if !send(result{batch: b}) {
				return
			}
			b, x.row, sent = l.batch(), 0, end
			b.Counter = end
		}
	}
}

// tooBad says whether more samples are bad than is allowed.
func (l *Loader) tooBad(n counts) bool {
	return float64(n.bad) > l.cfg.MaxBadShare*float64(n.read) && (n.read >= minReads || l.cfg.MaxBadShare == 0)
}

// tooFar says whether so many samples should have filled a batch.
func (l *Loader) tooFar(samples uint64) bool {
	return samples >= 3*uint64(l.stream.EpochSamples())+uint64(l.cfg.BatchSize)
}
