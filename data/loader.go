package data

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/identity"
)

// Batch is B training samples as columns, of several processes this one's share of a global batch. Its
// memory belongs to the loader again after Recycle.
type Batch struct {
	*batch.Batch
	Size     int      // rows, B
	Counters []uint64 // (B), which sample of the stream a row is
	Counter  uint64   // position before the global batch
	End      uint64   // position after the global batch
	Epoch    float64  // End in epochs

	owner *Loader
	out   atomic.Bool // the caller has it: from Next to Recycle
}

// LoaderConfig sizes a loader.
type LoaderConfig struct {
	BatchSize int      // rows of a batch, of several processes those of all
	Columns   []Column // of a batch: what the model reads
	Workers   int      // goroutines that make samples; 0: the number of processors
	Prefetch  int      // batches prepared ahead; 0: 2
	Held      int      // batches that the caller keeps at a time; 0: 1
	// stop when more than this share of the samples read since the loader was made is bad, judged from 50 on; 0: at the
	// first
	MaxBadShare float64
	Overfit     int // only the first N samples, over and over; 0: all
	// leave out the samples at the end of an epoch that do not fill a batch; else batches run across the border of
	// epochs
	DropLast bool
	// Lengths are numbers of tokens, rising: batches are of samples whose longest texts have at most one of them and more
	// than the one before, see byLength. nil: of samples in their order.
	Lengths []int
	Seed    uint64 // of the order of such batches
	// Group is the processes that share the batches, each by an equal number of rows in the order of the
	// ranks; nil: this one alone. All have the same stream.
	Group parallel.Group
}

// rows returns the rows of a batch that this process has.
func (c LoaderConfig) rows() int { return c.BatchSize / c.Group.Size() }

// minReads is the number of samples after which the share of bad ones is judged.
const minReads = 50

// maxExamples is the number of reasons for bad samples that are kept.
const maxExamples = 20

// BadSample is a sample that could not be made.
type BadSample struct {
	Counter uint64
	Err     error
}

// BadShareError stops a run whose data is damaged beyond LoaderConfig.MaxBadShare.
type BadShareError struct {
	Bad, Read uint64
	Allowed   float64
	Examples  []BadSample
}

// Error names the share and the first reasons.
func (e *BadShareError) Error() string {
	s := fmt.Sprintf("data: %d of %d samples are bad, more than data.max_bad_share = %g allows: mend the data "+
		"(trainer data check lists what is wrong) or raise the limit", e.Bad, e.Read, e.Allowed)
	for i, x := range e.Examples {
		if i == 3 {
			break
		}
		s += fmt.Sprintf("\n  sample %d: %v", x.Counter, x.Err)
	}
	return s
}

// Unwrap gives the reasons.
func (e *BadShareError) Unwrap() []error {
	var errs []error
	for _, x := range e.Examples {
		errs = append(errs, x.Err)
	}
	return errs
}

// ErrClosed is returned by Next after Close.
var ErrClosed = errors.New("data: loader is closed")

// Loader makes the batches of a stream ahead of their use. The batches and
// their order depend on the stream and the position alone, not on the number of
// workers: a bad sample is left out, and the next good one takes its row.
//
// Of several processes each reads and decodes its own rows of a batch alone. Batches, Position
// and Bad are those of one process that makes all rows, whatever their number: see share.go. All call Start,
// Rewind and Next in the same order.
//
// Start, Rewind, Next, Position and Close are for one goroutine; Recycle for any.
type Loader struct {
	stream Stream
	cfg    LoaderConfig

	pool    chan *Batch
	run     *prefetch
	pos     uint64
	passed  counts // of the samples before pos
	saved   loaderCounters
	samples identity.Sum // see Identify
	resized int          // samples of an epoch when it was saved, where these were others
	back    bool         // pos was set by Rewind: what was made ahead is of another place
	ahead   *result      // what Peek has taken for the next call of Next
	closed  bool
	failed  error

	mu       sync.Mutex
	counts   // with the samples behind pos that ended the loader
	examples []BadSample
}

// counts are samples that were read, and those of them that were bad.
type counts struct{ read, bad uint64 }

// Place is where a loader was between two batches, for Rewind.
type Place struct {
	position uint64
	counts
}

// NewLoader returns a loader of the samples of stream. It reads nothing before
// Start. It fails with a *batch.MissingError where the stream does not give a column of
// cfg, or gives it in another shape or type.
func NewLoader(stream Stream, cfg LoaderConfig) (*Loader, error) {
	switch {
	case stream == nil:
		return nil, fmt.Errorf("data: a loader needs a stream")
	case cfg.BatchSize <= 0:
		return nil, fmt.Errorf("data: batch size must be > 0 (got %d)", cfg.BatchSize)
	case len(cfg.Columns) == 0:
		return nil, fmt.Errorf(
			"data: a loader needs the columns of a batch: those that the model reads, or all that the stream has")
	case cfg.MaxBadShare < 0 || cfg.MaxBadShare > 1 || cfg.MaxBadShare != cfg.MaxBadShare:
		return nil, fmt.Errorf("data: share of bad samples must be in [0, 1] (got %g)", cfg.MaxBadShare)
	case cfg.Workers < 0 || cfg.Prefetch < 0 || cfg.Overfit < 0:
		return nil, fmt.Errorf("data: workers, prefetch and overfit must be >= 0 (got %d, %d, %d)", cfg.Workers,
			cfg.Prefetch, cfg.Overfit)
	}
	if cfg.Group == nil {
		cfg.Group = parallel.Single{}
	}
	if n := cfg.Group.Size(); cfg.BatchSize%n != 0 {
		return nil, fmt.Errorf("train.batch_size: the rows of a batch must be shared equally (got %d rows for %d "+
			"processes): use a multiple of %d", cfg.BatchSize, n, n)
	}
	if err := batch.Check(cfg.Columns, stream.Columns()); err != nil {
		return nil, err
	}
	if cfg.Workers == 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	if cfg.Prefetch == 0 {
		cfg.Prefetch = 2
	}
	if cfg.Overfit > 0 {
		var err error
		if stream, err = Overfit(stream, cfg.Overfit); err != nil {
			return nil, err
		}
	}
	if len(cfg.Lengths) > 0 {
		stream = newByLength(stream, cfg)
	}
	if n := stream.EpochSamples(); n <= 0 || cfg.DropLast && n < cfg.BatchSize {
		return nil, fmt.Errorf("data: an epoch of %d samples fills no batch of %d: use a smaller train.batch_size or "+
			"data.drop_last = false", n, cfg.BatchSize)
	}
	return &Loader{stream: stream, cfg: cfg, pool: make(chan *Batch, cfg.Prefetch+1+max(1, cfg.Held))}, nil
}

// Start begins (or begins again) at a position: 0 for a new run, the saved
// Position for a resumed one.
func (l *Loader) Start(position uint64) {
	l.stop()
	l.pos, l.back, l.failed = position, false, nil
	if !l.closed {
		l.run = l.startPrefetch(position)
	}
}

// Rewind goes back to an earlier Place, and counts what comes behind it anew. Unlike Start it reads nothing, and so
// does not wait for a sample in progress, before the next call of Next.
func (l *Loader) Rewind(p Place) {
	l.pos, l.passed, l.back, l.failed = p.position, p.counts, true, nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts = p.counts
	l.examples = slices.DeleteFunc(l.examples, func(x BadSample) bool { return x.Counter >= p.position })
}

// Place is the present one.
func (l *Loader) Place() Place { return Place{l.pos, l.passed} }

// Position is the counter of the next sample to be consumed: what a checkpoint
// keeps. It does not count what is only prefetched.
func (l *Loader) Position() uint64 { return l.pos }

// Epochs is the position in epochs.
func (l *Loader) Epochs() float64 {
	return float64(l.pos) / float64(l.stream.EpochSamples())
}

// Next returns the next batch. It fails when ctx ends, after Close, and with a
// *BadShareError when too much of the data is bad; that failure stays. Of several processes it fails on all where
// it does on one, with a *parallel.Failure that names the rank unless it is the *BadShareError of all.
func (l *Loader) Next(ctx context.Context) (*Batch, error) {
	if l.closed {
		return nil, ErrClosed
	}
	if l.failed != nil {
		return nil, l.failed
	}
	if l.run == nil || l.back {
		l.Start(l.pos)
	}
	if l.cfg.Group.Size() > 1 {
		return l.nextShared(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r := l.ahead; r != nil {
		l.ahead = nil
		return l.hand(*r)
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-l.run.out:
		return l.hand(r)
	}
}

// hand returns what the goroutines have made.
func (l *Loader) hand(r result) (*Batch, error) {
	l.count(r)
	if r.err != nil {
		l.failed = r.err
		l.stop()
		return nil, r.err
	}
	l.pos, l.passed = r.batch.End, r.counts
	r.batch.out.Store(true)
	return r.batch, nil
}

// Peek returns the batch that the next call of Next returns, and leaves it there, so that it can be taken to a device
// beside other work; nil where it is not ready, or of several processes. After Start, Rewind or Close it may be filled
// anew.
func (l *Loader) Peek() *Batch {
	if l.closed || l.failed != nil || l.run == nil || l.back || l.cfg.Group.Size() > 1 {
		return nil
	}
	if l.ahead == nil {
		select {
		case r := <-l.run.out:
			l.ahead = &r
		default:
			return nil
		}
	}
	return l.ahead.batch // nil with an error
}

// Recycle gives a batch that Next has returned back for reuse; one of another loader, or one that was given back
// before, is ignored. The caller must not touch it again.
func (l *Loader) Recycle(b *Batch) {
	if b != nil && b.owner == l && b.out.CompareAndSwap(true, false) {
		l.reuse(b)
	}
}

// reuse keeps the memory of a batch that nobody has, nil for none.
func (l *Loader) reuse(b *Batch) {
	if b == nil {
		return
	}
	select {
	case l.pool <- b:
	default:
	}
}

// Close ends the workers. It may be called more than once.
func (l *Loader) Close() error {
	l.stop()
	l.closed = true
	return nil
}

// Bad returns how many samples were read and how many of them were bad, by all processes and up to the last batch that
// Next returned, since the loader was made or, of one that was restored, since the run began; and the first reasons
// since it was made.
func (l *Loader) Bad() (bad, read uint64, examples []BadSample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bad, l.read, append([]BadSample(nil), l.examples...)
}

func (l *Loader) count(r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts = r.counts
	l.examples = append(l.examples, r.examples...)
	l.examples = l.examples[:min(len(l.examples), maxExamples)]
}

func (l *Loader) stop() {
	if r := l.ahead; r != nil {
		l.reuse(r.batch)
		l.ahead = nil
	}
	if l.run != nil {
		l.run.stop()
		l.run = nil
	}
}

// batch takes a recycled batch or makes one.
func (l *Loader) batch() *Batch {
	select {
	case b := <-l.pool:
		return b
	default:
	}
	n := l.cfg.rows()
	return &Batch{Batch: batch.New(n, l.cfg.Columns...), Size: n, Counters: make([]uint64, n), owner: l}
}
