package data

import (
	"fmt"
	"sync"

	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/internal/files"
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
	batch     *Batch
	err       error
	read, bad uint64
	examples  []BadSample // new ones
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
	bad, read, examples := l.Bad()
	p.wg.Add(2 + l.cfg.Workers)
	go p.dispatch(position)
	for range l.cfg.Workers {
		go p.worker()
	}
	go p.assemble(position, read, bad, examples)
	return p
}

// stop ends the goroutines and waits for them.
func (p *prefetch) stop() {
	close(p.quit)
	p.wg.Wait()
	for {
		select {
		case r := <-p.out:
			p.l.Recycle(r.batch)
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
			s.counter = counter
			counter++
			p.ordered <- s // both have room for every slot
			p.work <- s
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
			p.sample(s)
			s.done <- struct{}{}
		}
	}
}

// sample fills a slot. A panic in foreign code is a bad sample like any other.
func (p *prefetch) sample(s *slot) {
	defer func() {
		if v := recover(); v != nil {
			s.err = fmt.Errorf("data: sample %d: panic: %v", s.counter, v)
		}
	}()
	s.err = p.l.stream.Sample(s.counter, s.row)
}

// exhausted is the error of a machine that has run out of files or memory, which is no fault
// of the sample.
func exhausted(err error) error {
	return fmt.Errorf("data: %w: this is no bad sample but a limit of the machine: raise it (ulimit -n for open files) or lower data.workers", err)
}

func (p *prefetch) assemble(position, read, bad uint64, all []BadSample) {
	defer p.wg.Done()
	l := p.l
	epoch := uint64(l.stream.EpochSamples())
	b, row := l.batch(), 0
	b.Counter = position
	var examples []BadSample // not yet sent
	sent := position         // end of the last batch
	send := func(r result) bool {
		r.read, r.bad, r.examples = read, bad, examples
		examples = nil
		select {
		case <-p.quit:
			l.Recycle(r.batch)
			return false
		case p.out <- r:
			return true
		}
	}
	for {
		var s *slot
		select {
		case <-p.quit:
			return
		case s = <-p.ordered:
		}
		select {
		case <-p.quit:
			return
		case <-s.done:
		}
		read++
		if l.cfg.DropLast && row > 0 && s.counter%epoch == 0 {
			row = 0 // the rest of the epoch does not fill a batch
		}
		if files.Exhausted(s.err) {
			send(result{err: exhausted(s.err)})
			return
		}
		if s.err != nil {
			bad++
			if len(all) < maxExamples {
				all = append(all, BadSample{s.counter, s.err})
				examples = append(examples, BadSample{s.counter, s.err})
			}
			if float64(bad) > l.cfg.MaxBadShare*float64(read) && (read >= minReads || l.cfg.MaxBadShare == 0) {
				send(result{err: &BadShareError{Bad: bad, Read: read, Allowed: l.cfg.MaxBadShare, Examples: all}})
				return
			}
			// Without this a stream whose samples are all bad, within a share of
			// 1, would be read for ever.
			if s.counter-sent >= 3*epoch+uint64(l.cfg.BatchSize) {
				send(result{err: fmt.Errorf("data: no batch of %d good samples in %d samples: %w", l.cfg.BatchSize, s.counter-sent, s.err)})
				return
			}
		} else {
			b.Row(row).Copy(s.row)
			b.Counters[row] = s.counter
			row++
		}
		end := s.counter + 1
		p.free <- s
		if row == l.cfg.BatchSize {
			b.End, b.Epoch = end, float64(end)/float64(epoch)
			if !send(result{batch: b}) {
				return
			}
			b, row, sent = l.batch(), 0, end
			b.Counter = end
		}
	}
}
