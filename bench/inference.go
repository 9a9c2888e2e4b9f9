package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/median"
	"github.com/geoalign/geoalign/internal/memory"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/setup"
)

// InferenceOptions say what is encoded, and how long.
type InferenceOptions struct {
	Sides   []string      // of image and text; empty: those that the model has
	Batches []int         // rows of a batch, at least 1 each
	Time    time.Duration // of each encoding, after a first pass; one more pass is made at least
	Peak    time.Duration // of each measurement of a matrix product
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
}

// Sides of a model.
const (
	ImageSide = "images"
	TextSide  = "texts"
)

// Inference is what encoding by a model costs in one precision.
type Inference struct {
	Config     string  `json:"config"`
	System     string  `json:"system"`
	Precision  string  `json:"precision"`
	Engine     string  `json:"engine"`
	Threads    int     `json:"threads"`
	Parameters int     `json:"parameters"` // that encoding reads
	Peak       float64 `json:"gemm_peak_gflops"`
	PeakMB     float64 `json:"peak_memory_mb,omitempty"` // largest resident size of the process; 0: not known
	// Device is what encodes, nil: the host. Times of ops there are of one pass more, which is made op by op.
	Device    *DeviceResult `json:"device,omitempty"`
	Encodings []Encoding    `json:"encodings"`
}

// Encoding is what the rows of a side cost in batches of one size.
type Encoding struct {
	Side      string  `json:"side"` // ImageSide or TextSide
	Batch     int     `json:"batch"`
	States    bool    `json:"states"` // the states of all tokens too, as for re-ranking; else features alone
	Rows      int     `json:"rows"`   // of a pass
	Passes    int     `json:"passes"`
	PerSecond float64 `json:"per_second"`      // rows, of the median pass
	Best      float64 `json:"best_per_second"` // of the fastest pass
	MedianMS  float64 `json:"batch_ms"`        // of a batch
	P95MS     float64 `json:"batch_p95_ms"`
	GFLOPRow  float64 `json:"gflop_per_row"` // in matrix products, padding included
	GFLOPS    float64 `json:"gflops"`        // at PerSecond
	Share     float64 `json:"share_of_peak"`
	BufferMB  float64 `json:"buffers_mb"` // of the computations that are kept
	Ops       []Time  `json:"ops"`        // of a batch
}

// captions is the number of texts that are encoded in a pass, or captionBatches batches where these are fewer.
const (
	captions       = 256
	captionBatches = 32
)

// MeasureInference measures encoding by the model of a configuration, with random parameters, of noise as images and of
// captions of mixed lengths (CaptionLength), which come sorted as in an evaluation.
func MeasureInference(ctx context.Context, cfg config.Config, o InferenceOptions) (r Inference, err error) {
	if cfg.Has(section.Fitted) {
		return r, config.Errors{{Path: "model.system", Value: cfg.Model.System, Msg: "must be a system with encoders",
			Hint: "a map in closed form is one matrix product"}}
	}
	if cfg, err = run.Resolve(cfg); err != nil {
		return r, err
	}
	engine, err := setup.Engine(cfg)
	if err != nil {
		return r, err
	}
	defer engine.Close()
	p, err := model.Open(cfg, model.Options{Engine: engine, Vocab: cfg.Data.VocabSize, MaskID: maskID},
		randomParameters{})
	if err != nil {
		return r, err
	}
	peak := measurePeak(engine, engine.BF16(), o.Peak)
	debug.FreeOSMemory()
	r = Inference{Config: cfg.Run.Name, System: cfg.Model.System, Precision: cfg.Compute.Precision,
		Engine: engine.Describe(), Threads: engine.Threads()}
	if len(o.Sides) == 0 {
		o.Sides = sidesOf(cfg)
	}
	for _, side := range o.Sides {
		if !slices.Contains(sidesOf(cfg), side) {
			return r, fmt.Errorf("bench: %s: no such side (got %q): choose %s", cfg.Run.Name, side,
				strings.Join(sidesOf(cfg), " or "))
		}
	}
	for _, side := range o.Sides {
		m := measured{InferenceOptions: o, engine: engine, cfg: cfg, model: p, encoder: p.Image(), side: side}
		if side == TextSide {
			m.encoder = p.Text()
		}
		for _, rows := range o.Batches {
			for _, states := range m.readings() {
				e, err := m.encoding(ctx, rows, states)
				if err != nil {
					return r, err
				}
				r.Encodings = append(r.Encodings, e)
			}
		}
		m.encoder.Forget()
	}
	if gpu := deviceOf(engine); gpu != nil {
		_, most := gpu.Allocated()
		r.Device = &DeviceResult{Name: gpu.Info().String(), MemoryMB: memory.MB(most)}
	}
	r.Parameters, r.PeakMB = p.Params().Count(), memory.MB(memory.Peak())
	r.Peak = max(peak, measurePeak(engine, engine.BF16(), o.Peak))
	for i := range r.Encodings {
		r.Encodings[i].Share = r.Encodings[i].GFLOPS / r.Peak
	}
	return r, ctx.Err()
}

// sidesOf lists the sides of a model.
func sidesOf(cfg config.Config) []string {
	switch {
	case cfg.Has(section.ImagesAlone):
		return []string{ImageSide}
	case cfg.Has(section.Sentences):
		return []string{TextSide}
	}
	return []string{ImageSide, TextSide}
}

// measured is a side under measurement.
type measured struct {
	engine *compute.Engine
	InferenceOptions
	cfg     config.Config
	model   *model.Model
	encoder *model.Encoder
	side    string
}

// readings says for each measurement whether states are read. A model of tokens gives these alone.
func (m *measured) readings() []bool {
	if m.model.Interaction() != nil || m.cfg.Has(section.Stored) {
		return []bool{false}
	}
	return []bool{false, true}
}

// encode encodes a batch.
func (m *measured) encode(ctx context.Context, b *batch.Batch, states bool) (err error) {
	switch {
	case m.model.Interaction() != nil:
		_, _, err = m.encoder.EncodeTokens(ctx, b)
	case states:
		_, _, err = m.encoder.Encode(ctx, b)
	case m.cfg.Has(section.ImagesAlone):
		_, err = m.encoder.EncodeClasses(ctx, b)
	default:
		_, err = m.encoder.Features(ctx, b)
	}
	return err
}

// encoding measures passes over batches of so many rows.
func (m *measured) encoding(ctx context.Context, rows int, states bool) (r Encoding, err error) {
	m.encoder.Forget()
	list := m.batches(rows)
	r = Encoding{Side: m.side, Batch: rows, States: states, Rows: rows * len(list)}
	var each, passes []time.Duration
	pass := func() (d time.Duration, err error) {
		for _, b := range list {
			begin := time.Now()
			if err := m.encode(ctx, b, states); err != nil {
				return 0, err
			}
			each = append(each, time.Since(begin))
			d += each[len(each)-1]
		}
		return d, nil
	}
	if _, err := pass(); err != nil {
		return r, err
	}
	m.encoder.ResetProfile()
	each = each[:0]
	phase := fmt.Sprintf("encoding %s, %d at a time", m.side, rows)
	for begin := time.Now(); len(passes) == 0 || time.Since(begin) < m.Time; {
		if m.Progress != nil {
			m.Progress(phase, int(min(m.Time, time.Since(begin)).Milliseconds()), int(max(1, m.Time.Milliseconds())))
		}
		d, err := pass()
		if err != nil {
			return r, err
		}
		passes = append(passes, d)
	}
	profiled := len(passes)
	if deviceOf(m.engine) != nil { // which runs all ops as one otherwise
		m.encoder.ResetProfile()
		m.encoder.StepByStep(true)
		defer m.encoder.StepByStep(false)
		timed := each
		if _, err := pass(); err != nil {
			return r, err
		}
		each, profiled = timed, 1
	}
	m.report(&r, each, passes, profiled)
	return r, nil
}

// report turns times of batches and of passes into rates. The profile is that of so many passes.
func (m *measured) report(r *Encoding, each, passes []time.Duration, profiled int) {
	slices.Sort(each)
	r.Passes = len(passes)
	r.PerSecond, r.Best = float64(r.Rows)/median.Of(passes).Seconds(), float64(r.Rows)/slices.Min(passes).Seconds()
	r.MedianMS, r.P95MS = 1e3*median.Of(each).Seconds(), 1e3*each[len(each)*95/100].Seconds()
	list, bytes := m.encoder.Profile()
	r.BufferMB = memory.MB(bytes)
	n := float64(len(each) / r.Passes * profiled) // batches
	var total float64
	of := map[string]*Time{}
	work := map[string]int64{}
	var flops int64
	for _, p := range list {
		flops += p.FLOPs
		for _, k := range p.Kinds {
			if of[k.Kind] == nil {
				of[k.Kind] = &Time{Name: k.Kind}
			}
			t := of[k.Kind]
			t.Nodes, t.MS = max(t.Nodes, k.Nodes), t.MS+1e3*k.Time.Seconds()/n
			work[k.Kind] += k.FLOPs
			total += 1e3 * k.Time.Seconds() / n
		}
	}
	for _, t := range of {
		if t.MS > 0 {
			t.Share, t.GFLOPS = t.MS/total, float64(work[t.Name])/1e6/n/t.MS
		}
		r.Ops = append(r.Ops, *t)
	}
	slices.SortFunc(r.Ops, func(a, b Time) int { return cmp.Or(cmp.Compare(b.MS, a.MS), cmp.Compare(a.Name, b.Name)) })
	r.GFLOPRow = float64(flops) / 1e9 / float64(profiled*r.Rows)
	r.GFLOPS = r.GFLOPRow * r.PerSecond
}

// batches are those of a pass: one of images or stored rows, several of texts, sorted by length.
func (m *measured) batches(rows int) (list []*batch.Batch) {
	r, columns := rand.New(rand.NewPCG(1, 2)), m.encoder.Columns()
	_, texts := batch.Find(columns, batch.Lengths)
	count := 1
	if texts {
		count = max(1, min(captions/rows, captionBatches))
	}
	lengths := make([]int, rows*count)
	for i := range lengths {
		lengths[i] = CaptionLength(i*captions/len(lengths), m.cfg.Data.Tokens)
	}
	slices.Sort(lengths)
	for k := range count {
		b := batch.New(rows, columns...)
		for _, c := range columns {
			fill(r, b.Floats(c.Name))
			x := b.Ints(c.Name)
			for i := range x {
				switch c.Name {
				case batch.Tokens:
					x[i] = r.Int32N(int32(m.cfg.Data.VocabSize))
				case batch.Lengths:
					x[i] = int32(lengths[k*rows+i])
				case batch.RegionLengths:
					x[i] = int32(m.cfg.Data.Regions.Most)
				}
			}
		}
		list = append(list, b)
	}
	return list
}

// CaptionLength is the number of tokens of caption i of 256: every length from a fifth of the most to the most, such as
// 8 to 40, about as often, in a mixed order.
func CaptionLength(i, most int) int {
	least := max(1, most/5)
	return least + i*619%captions*(most-least+1)/captions
}

// randomParameters gives every parameter random values: weights of matrices from N(0, .02^2), those of norms 1, others
// 0.
type randomParameters struct{}

// Has implements model.Source.
func (randomParameters) Has(string) bool { return true }

// Read implements model.Source.
func (randomParameters) Read(name string, shape []int, dst []float32) error {
	if len(dst) == 0 {
		return errors.New("bench: a parameter without values: " + name)
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	for i := range dst {
		switch {
		case len(shape) > 1:
			dst[i] = .02 * float32(r.NormFloat64())
		case strings.HasSuffix(name, "bias"):
			dst[i] = 0
		default:
			dst[i] = 1
		}
	}
	return nil
}

var _ model.Source = randomParameters{}
