package record

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/usercache"
	"github.com/geoalign/geoalign/internal/words"
)

// Pass reads what the pictures and features of a run hold, beside its steps, and compares that with what they held
// when the run began. It takes a small share of one processor, and a file that stays as it is is read once on a
// machine.
type Pass struct {
	Splits []*OpenedSplit
	known  *Known // nil: there is nothing to compare with
	save   func(splits []*OpenedSplit) error
	book   *identity.Book
	rest   *throttle
	told   func(done, of int) // nil: nobody is

	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	found []Difference // what was found so far
	err   error        // why it could not go on
	whole bool         // all was read
}

// NewPass returns a pass. save keeps what was found out of the lists and then of the files, and may be nil.
func NewPass(d *Opened, known *Known, save func([]*OpenedSplit) error) *Pass {
	return &Pass{Splits: d.Splits, known: known, save: save, rest: newThrottle(), done: make(chan struct{})}
}

// Begin begins to read files below a folder.
func (p *Pass) Begin(root string) {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		p.book = identity.OpenBook(bookOf(root))
		p.book.Pace = func(work func() error) error { return p.rest.take(ctx, work) }
		err := p.run(ctx)
		_ = p.book.Save() // it is a cache
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.whole = err == nil; ctx.Err() == nil {
			p.err = err
		}
	}()
}

// bookOf is the file of the sums of what lies below a folder, on this machine; empty where there is no place for it.
func bookOf(root string) string {
	abs, err := filepath.Abs(root)
	if err != nil {
		return ""
	}
	return usercache.File("data-" + identity.OfBytes([]byte(abs)).String()[:16] + ".sums")
}

func (p *Pass) run(ctx context.Context) error {
	for _, s := range p.Splits {
		if err := s.list(ctx); err != nil {
			return err
		}
		if err := s.findFiles(ctx); err != nil {
			return err
		}
	}
	if err := p.keep(); err != nil {
		return err
	}
	unread := make([][]int, len(p.Splits)) // files that may have changed since they were read
	for k, s := range p.Splits {
		for i := range s.Files {
			if err := p.rest.take(ctx, func() error { return nil }); err != nil {
				return err
			}
			if !p.look(s, i) {
				unread[k] = append(unread[k], i)
			}
		}
	}
	for k, s := range p.Splits {
		for n, i := range unread[k] {
			if p.told != nil {
				p.told(n+1, len(unread[k]))
			}
			if err := p.read(ctx, s, i); err != nil {
				return err
			}
		}
	}
	for _, s := range p.Splits {
		c := &s.Record.Contents
		c.Files = len(s.Files)
		c.Sum, c.Bytes = sumOfFiles(s.sums)
	}
	return p.keep()
}

func (p *Pass) keep() error {
	if p.save == nil {
		return nil
	}
	return p.save(p.Splits)
}

// look takes size and sum of a file that is known, or not there. It is false for one that must be read.
func (p *Pass) look(s *OpenedSplit, i int) bool {
	st, err := identity.StampOf(s.Files[i])
	if err != nil {
		p.compare(s, i)
		return true
	}
	s.sums[i].Size = st.Size
	if sum, ok := p.book.Known(s.Files[i], st); ok {
		s.sums[i].Sum = shortSum(sum)
	}
	p.compare(s, i)
	return s.sums[i].Sum != 0
}

// read reads a file. One that cannot be read is as one that is not there: a bad sample, of which others tell.
func (p *Pass) read(ctx context.Context, s *OpenedSplit, i int) error {
	sum, err := p.book.Sum(ctx, s.Files[i])
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.sums[i].Size = -1
	} else {
		s.sums[i].Sum = shortSum(sum)
	}
	p.compare(s, i)
	return nil
}

// compare notes where a file is another one than it was.
func (p *Pass) compare(s *OpenedSplit, i int) {
	if p.known == nil {
		return
	}
	was, ok := p.known.sums[s.Name]
	if !ok || i >= len(was.Files) || len(was.Files) != len(s.Files) {
		return
	}
	a, b := was.Files[i], s.sums[i]
	if a.Size == b.Size && (a.Sum == b.Sum || a.Sum == 0 || b.Sum == 0) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.found {
		if p.found[k].Split == s.Name {
			return // the first is enough
		}
	}
	p.found = append(p.found, Difference{s.Name, fmt.Sprintf("%s %s (others may too)", s.Short(s.Files[i]),
		fileChanged(a, b))})
}

// fileChanged says in what a file differs.
func fileChanged(was, now fileSum) string {
	switch {
	case now.Size < 0:
		return "cannot be read any more"
	case was.Size < 0:
		return "can be read now and could not before"
	case was.Size != now.Size:
		return fmt.Sprintf("has %s bytes and had %s", words.Thousands(int(now.Size)), words.Thousands(int(was.Size)))
	}
	return fmt.Sprintf("has its %s bytes with another content than it had", words.Thousands(int(now.Size)))
}

// State is what was found so far.
func (p *Pass) State() (found []Difference, whole bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Difference(nil), p.found...), p.whole, p.err
}

// Finish waits for the end at full speed, no longer than so.
func (p *Pass) Finish(ctx context.Context, most time.Duration) {
	p.rest.hurry()
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
	case <-ctx.Done():
	}
}

// passEnd is how long Close waits for a read that is under way, which at a file system that hangs does not end.
const passEnd = time.Second

// Close ends it.
func (p *Pass) Close() error {
	p.cancel()
	t := time.NewTimer(passEnd)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
	}
	return nil
}

// throttle keeps work to a share of the time.
type throttle struct {
	fast chan struct{} // closed: no rest any more
	once sync.Once
	owed time.Duration // of rest
}

const (
	passShare = 20                     // of this many parts of the time one is work
	passStart = 100 * time.Millisecond // of work without rest
	passNap   = 20 * time.Millisecond  // shortest rest
)

func newThrottle() *throttle {
	return &throttle{fast: make(chan struct{}), owed: -passStart * (passShare - 1)}
}

func (t *throttle) hurry() { t.once.Do(func() { close(t.fast) }) }

// take works, and rests in proportion.
func (t *throttle) take(ctx context.Context, work func() error) error {
	begin := time.Now()
	err := work()
	t.owed += (passShare - 1) * time.Since(begin)
	if err != nil || ctx.Err() != nil || t.owed < passNap {
		return cmp.Or(err, ctx.Err())
	}
	timer := time.NewTimer(t.owed)
	defer timer.Stop()
	t.owed = 0
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-t.fast:
	}
	return ctx.Err()
}
