package optim

import (
	_ "embed"
	"errors"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

//go:embed adamw.cu
var adamwText string

var adamwSource = cuda.Source{Name: "adamw", Text: adamwText}

// Mirrors are what a device keeps of the slabs of an optimiser. They are the caller's. The update keeps the parameters'
// values in bfloat16 up to date, where they have those.
type Mirrors struct {
	Params *cuda.Mirror
	Grads  *cuda.Mirror // of the same spans
	Twins  *cuda.Mirror // of memory that the moving averages of SetTwins lie in, in float32 alone; nil: there are none
}

const (
	// pieceLen is the most elements that a block works on.
	pieceLen = 8192
	// pieceWords are the words of a Piece of adamw.cu.
	pieceWords = 12
)

// onCUDA is an optimiser's part on a device.
type onCUDA struct {
	device *cuda.Device
	Mirrors
	m, v *cuda.Mirror // of the moments

	pieces  int
	table   exec.Memory  // of pieces
	sums    exec.Memory  // for each piece
	total   exec.Memory  // the sum over pieces
	read    exec.Buffer  // of total
	at      cuda.Pointer // of table
	sumsAt  cuda.Pointer
	totalAt cuda.Pointer

	update, square, reduce *cuda.Kernel
	err                    error // the first one: see Err
}

// UseCUDA moves the optimiser to a device: GradNorm, Step and StepTwins read and change the mirrors and leave the slabs
// of the host as they are. The moments follow, with mirrors of their own that Fetch and Store copy. What goes wrong on
// the device Err returns. Close ends it.
func (o *AdamW) UseCUDA(d *cuda.Device, m Mirrors) (err error) {
	if o.cuda != nil {
		return errors.New("optim: the optimiser is on a device already: close it first")
	}
	for _, x := range []struct {
		name   string
		mirror *cuda.Mirror
		host   []float32
	}{{"parameters", m.Params, o.params}, {"gradients", m.Grads, o.grads}} {
		if x.mirror == nil {
			return fmt.Errorf("optim: the %s have no mirror on the device", x.name)
		}
		if i, ok := x.mirror.Index(x.host); len(x.host) > 0 && (!ok || i != 0) || len(x.host) != len(x.mirror.Host()) {
			return fmt.Errorf("optim: the mirror of the %s is of other memory than those of the optimiser", x.name)
		}
	}
	if m.Twins != nil {
		if _, shadow := m.Twins.At(); shadow != 0 {
			return errors.New("optim: the mirror of the momentum encoder has values in bfloat16 too, which no update would change")
		}
	}
	c := &onCUDA{
		device: d, Mirrors: m,
		update: d.Kernel(&adamwSource, "adamw"), square: d.Kernel(&adamwSource, "sum_squares"),
		reduce: d.Kernel(&adamwSource, "sum_pieces"),
	}
	defer func() {
		if err != nil {
			err = cause.Join(err, c.close())
		}
	}()
	if err := c.cut(o); err != nil { // before memory is taken for what cannot be
		return err
	}
	if c.m, err = d.Mirror(o.m, m.Params.Spans(), false); err != nil {
		return fmt.Errorf("optim: first moments: %w", err)
	}
	if c.v, err = d.Mirror(o.v, m.Params.Spans(), false); err != nil {
		return fmt.Errorf("optim: second moments: %w", err)
	}
	if err := cause.Join(c.m.Store(), c.v.Store()); err != nil {
		return err
	}
	o.cuda = c
	return nil
}

// Fetch brings the moments from the device to the slabs that Moments and Tensors return.
func (o *AdamW) Fetch() error {
	if o.cuda == nil {
		return nil
	}
	return cause.Join(o.cuda.err, o.cuda.m.Fetch(), o.cuda.v.Fetch())
}

// Store takes the moments from these slabs to the device: what a checkpoint was read back into.
func (o *AdamW) Store() error {
	if o.cuda == nil {
		return nil
	}
	return cause.Join(o.cuda.err, o.cuda.m.Store(), o.cuda.v.Store())
}

// Err returns what first went wrong on the device. From then on nothing is enqueued and the norm of gradients is NaN.
func (o *AdamW) Err() error {
	if o.cuda == nil {
		return nil
	}
	return o.cuda.err
}

// Close gives back the memory of the device. Updates are the host's again, in its own slabs: what the device computed
// is there where it was fetched before.
func (o *AdamW) Close() error {
	if o.cuda == nil {
		return nil
	}
	c := o.cuda
	o.cuda = nil
	return c.close()
}

func (c *onCUDA) close() error {
	err := c.drop()
	for _, m := range []*cuda.Mirror{c.m, c.v} {
		if m != nil {
			err = cause.Join(err, m.Close())
		}
	}
	return err
}

// drop frees the table of pieces.
func (c *onCUDA) drop() (err error) {
	for _, m := range []*exec.Memory{&c.table, &c.sums, &c.total} {
		if *m != nil {
			err = cause.Join(err, (*m).Free())
			*m = nil
		}
	}
	return err
}

// part is a piece of work of one span, as the mirrors lay it out.
type part struct {
	piece
	span       cuda.Span
	at, twinAt int // words of the first element and of its moving average, -1: it has none
}

// cut takes the work of o to the device as a table of pieces.
func (c *onCUDA) cut(o *AdamW) error {
	parts, err := c.parts(o)
	if err != nil {
		return err
	}
	var words []int32
	for _, p := range parts {
		decay, identity, l1, side := float32(0), float32(0), float32(0), 0
		if p.decay {
			decay = float32(o.cfg.Decay)
		}
		if q := p.pull; q != nil {
			if side = q.Side; q.Decay > 0 {
				decay = float32(q.Decay)
			}
			if q.Identity {
				identity = float32(q.Decay)
			}
			l1 = float32(q.L1)
		}
		for lo := p.lo; lo < p.hi; lo += pieceLen {
			at, twin, first, update := p.at+lo-p.lo, -1, 0, int32(0)
			if p.twinAt >= 0 {
				twin = p.twinAt + lo - p.lo
			}
			if p.pull != nil {
				first = (lo - p.pull.offset) % (side * side)
			}
			if p.update {
				update = 1
			}
			bits := func(v float32) int32 { return int32(math.Float32bits(v)) }
			words = append(words, int32(at), int32(at>>32), int32(twin), int32(twin>>32), int32(min(pieceLen, p.hi-lo)),
				update, bits(p.rate), bits(decay), int32(side), int32(uint32(first)), bits(identity), bits(l1))
		}
	}
	if err := c.drop(); err != nil {
		return err
	}
	c.pieces = len(words) / pieceWords
	var table exec.Buffer
	if table, err = c.take(&c.table, &c.at, max(len(words), 1)); err != nil {
		return err
	}
	copy(table.Host().I32, words)
	if err := table.Store(); err != nil {
		return err
	}
	if _, err = c.take(&c.sums, &c.sumsAt, 2*max(c.pieces, 1)); err != nil {
		return err
	}
	c.read, err = c.take(&c.total, &c.totalAt, 2)
	return err
}

// take allocates words of the device.
func (c *onCUDA) take(m *exec.Memory, at *cuda.Pointer, words int) (exec.Buffer, error) {
	got, err := c.device.Alloc(words)
	if err != nil {
		return nil, fmt.Errorf("optim: table of the update: %w", err)
	}
	*m = got
	b := got.Buffer(0, exec.Spec{Shape: tensor.Shape{words}, Type: exec.Int32})
	*at = b.(*cuda.Buffer).Pointer()
	return b, nil
}

// parts cuts the work of o at the ends of spans, and joins again what the host cut within them.
func (c *onCUDA) parts(o *AdamW) ([]part, error) {
	work := o.pieces
	if len(work) == 0 { // no twins
		for _, w := range o.work {
			work = append(work, piece{chunk: w, update: true})
		}
	}
	var parts []part
	for _, w := range work {
		for lo := w.lo; lo < w.hi; {
			span, ok := c.Params.SpanOf(lo)
			if !ok {
				return nil, fmt.Errorf("optim: no span of the mirror of the parameters has element %d, which an update reads", lo)
			}
			if g, ok := c.Grads.SpanOf(lo); w.update && (!ok || g != span || c.Grads.Place(lo) != c.Params.Place(lo)) {
				return nil, fmt.Errorf("optim: the mirrors of parameters and gradients have other spans at element %d",
					lo)
			}
			p := part{piece: w, span: span, at: c.Params.Place(lo), twinAt: -1}
			p.lo, p.hi = lo, min(w.hi, span.Hi)
			if w.twin != nil {
				n, err := 0, error(nil)
				if p.twinAt, n, err = c.twin(w.twin[lo-w.lo : p.hi-w.lo]); err != nil {
					return nil, err
				}
				p.hi = lo + n
			}
			lo = p.hi
			if i := len(parts) - 1; i >= 0 && parts[i].joins(&p) {
				parts[i].hi = p.hi
			} else {
				parts = append(parts, p)
			}
		}
	}
	return parts, nil
}

// joins says whether q goes on where p ends, in the same span and with the same work.
func (p *part) joins(q *part) bool {
	n := p.hi - p.lo
	return p.span == q.span && p.hi == q.lo && p.update == q.update && p.decay == q.decay && p.rate == q.rate &&
		p.pull == q.pull &&
		(p.twinAt < 0 && q.twinAt < 0 || p.twinAt >= 0 && p.twinAt+n == q.twinAt)
}

// twin returns the word at which moving averages lie, and how many lie in one span from there.
func (c *onCUDA) twin(values []float32) (word, n int, err error) {
	if c.Twins == nil {
		return 0, 0, errors.New("optim: the momentum encoder has no mirror on the device")
	}
	if i, ok := c.Twins.Index(values); ok {
		if s, ok := c.Twins.SpanOf(i); ok {
			return c.Twins.Place(i), min(len(values), s.Hi-i), nil
		}
	}
	return 0, 0, errors.New("optim: the mirror of the momentum encoder is of other memory than those of SetTwins")
}

// norm is the square root of the sum of squares of the gradients.
func (c *onCUDA) norm() float64 {
	if c.err == nil {
		c.err = c.device.Refresh() // what the host has changed
	}
	if c.err == nil && c.pieces > 0 {
		grads, _ := c.Grads.At()
		c.err = c.square.Launch(cuda.Grid{X: c.pieces, Threads: 256}, c.sumsAt, c.at, grads)
		if c.err == nil {
			c.err = c.reduce.Launch(cuda.Grid{Threads: 1024}, c.totalAt, c.sumsAt, c.pieces)
		}
		if c.err == nil {
			c.err = c.read.Fetch()
		}
	}
	switch {
	case c.err != nil:
		return math.NaN()
	case c.pieces == 0:
		return 0
	}
	w := c.read.Host().I32
	return math.Sqrt(math.Float64frombits(uint64(uint32(w[0])) | uint64(uint32(w[1]))<<32))
}

// step enqueues the update whose scalars o has, and with averages that of the moving averages.
func (c *onCUDA) step(o *AdamW, averages bool) {
	if c.err != nil || c.pieces == 0 {
		return
	}
	values, half := c.Params.At()
	grads, _ := c.Grads.At()
	m, _ := c.m.At()
	v, _ := c.v.At()
	var twins cuda.Pointer
	if averages && c.Twins != nil {
		twins, _ = c.Twins.At()
	}
	if c.err = c.device.Refresh(); c.err != nil {
		return
	}
	changed := []*cuda.Mirror{c.Params, c.m, c.v}
	if twins != 0 {
		changed = append(changed, c.Twins)
	}
	for _, m := range changed {
		m.Changed()
	}
	s := o.now
	c.err = c.update.Launch(cuda.Grid{X: c.pieces, Threads: 256}, c.at, values, half, m, v, grads, twins,
		s.LR, s.Beta1, 1-s.Beta1, s.Beta2, 1-s.Beta2, s.Correct1, 1/s.Correct2, s.Eps, s.GradScale, o.twinWeight)
}
