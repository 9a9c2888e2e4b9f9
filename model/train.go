package model

import (
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives"
	"gorgonia.org/gorgonia"
)

// trainGraph is the compiled training step.
type trainGraph struct {
	outcome
	batch, tokens, maskRows int

	images, ids, alpha, cols, key      *gorgonia.Node
	views                              *gorgonia.Node // what the teacher sees: images, or second views of them
	uniform                            *gorgonia.Node // share of the uniform distribution in the targets
	text, lengths                      *gorgonia.Node // clean captions, then masked ones
	clean, masked                      captions       // the same memory apart
	places, teacherPlaces              *encoders.Places
	labels, colIDs, noiseI2T, noiseT2I *gorgonia.Node
	imageQueue, textQueue              *gorgonia.Node
	imageM, textM                      *gorgonia.Node
	imageBackbone, textBackbone        *gorgonia.Node // what the teacher's heads read, where the queue keeps it
	pointer, own, weigh                *gorgonia.Node // with graphs over the queue
	geometric                          geometricInputs
	imageGraph, textGraph              *objectives.Graph
	host                               trainHost
}

// captions is token ids (N*L) and lengths (N), int32.
type captions struct{ ids, lengths *gorgonia.Node }

type namedNode struct {
	name    string
	node    *gorgonia.Node
	measure bool
}

// trainHost is the host memory that inputs are bound to.
type trainHost struct {
	text, lengths, colIDs []int32
	places, teacherPlaces placesHost
	noiseI2T, noiseT2I    []float32
	alpha, uniform        [1]float32
	cols, pointer         [1]int32
	own                   []int32
	weigh                 [1]float32
	key                   [2]int32
}

// placesHost is the memory of places.
type placesHost struct{ rows, texts []int32 }

// set fills in the places of texts of l tokens, first texts further on; nothing where
// the step has no such input.
func (h placesHost) set(places []int32, first, l int) {
	if h.rows == nil {
		return
	}
	for i, p := range places {
		h.rows[i] = p + int32(first*l)
		h.texts[i] = p/int32(l) + int32(first)
	}
}

// Forward runs one training step up to the gradients: losses, gradients of every
// parameter, momentum features. It changes no state; see Enqueue.
func (m *ALBEF) Forward(b Batch, c Control) (*Result, error) {
	if err := m.connected(); err != nil {
		return nil, err
	}
	if err := m.train.load(m, b, c); err != nil {
		return nil, err
	}
	tg := m.train
	if err := tg.run(); err != nil {
		return nil, err
	}
	r, err := tg.read()
	if err == nil && m.graphs != nil {
		r.Parts = append(r.Parts, m.graphs.values...)
	}
	return r, err
}

// load copies a batch into the bound host memory.
func (tg *trainGraph) load(m *ALBEF, b Batch, c Control) error {
	h, l := &tg.host, tg.tokens
	n := tg.batch * l
	if len(b.Tokens) != n {
		return batchError("tokens", len(b.Tokens), n)
	}
	if len(b.Lengths) != tg.batch {
		return batchError("lengths", len(b.Lengths), tg.batch)
	}
	if len(b.IDs) != tg.batch {
		return batchError("image ids", len(b.IDs), tg.batch)
	}
	if err := tg.machine.SetInput(tg.images, b.Images); err != nil {
		return err
	}
	if tg.views != tg.images {
		if err := tg.machine.SetInput(tg.views, b.Views); err != nil {
			return err
		}
	}
	copy(h.text, b.Tokens)
	copy(h.lengths, b.Lengths)
	if tg.maskRows > 0 {
		if len(b.Masked) != n {
			return batchError("masked tokens", len(b.Masked), n)
		}
		if len(b.MaskPlaces) != tg.maskRows {
			return batchError("mask places", len(b.MaskPlaces), tg.maskRows)
		}
		if len(b.MaskLabels) != tg.maskRows {
			return batchError("mask labels", len(b.MaskLabels), tg.maskRows)
		}
		copy(h.text[n:], b.Masked)
		copy(h.lengths[tg.batch:], b.Lengths)
		first := 0 // fused texts before the masked ones
		if tg.noiseI2T != nil {
			first = 3 * tg.batch
		}
		h.places.set(b.MaskPlaces, first, l)
		h.teacherPlaces.set(b.MaskPlaces, 0, l)
		if err := tg.machine.SetInput(tg.labels, b.MaskLabels); err != nil {
			return err
		}
	}
	if tg.ids != nil {
		if err := tg.machine.SetInput(tg.ids, b.IDs); err != nil {
			return err
		}
	}
	h.alpha[0], h.uniform[0] = float32(c.Alpha), float32(c.Uniform)
	if tg.pointer != nil {
		tg.loadPool(m, b, c)
	} else {
		tg.loadColumns(m, b, c)
	}
	seed, step := m.cfg.Run.Seed, uint64(c.Step)
	if tg.noiseI2T != nil {
		gumbel(rng.New(seed, rng.Negatives, step), h.noiseI2T, h.noiseT2I)
	}
	tg.geometric.load(m.queue, seed, step)
	k := rng.New(seed, rng.Dropout, step).Uint64()
	h.key[0], h.key[1] = int32(uint32(k)), int32(uint32(k>>32))
	return nil
}

// loadColumns says which columns of [batch | queue] exist and whose they are.
func (tg *trainGraph) loadColumns(m *ALBEF, b Batch, c Control) {
	h := &tg.host
	h.cols[0] = int32(tg.batch)
	if m.queue != nil && c.UseQueue {
		h.cols[0] += int32(m.queue.Filled)
	}
	if tg.colIDs != nil {
		copy(h.colIDs, b.IDs)
		if m.queue != nil {
			copy(h.colIDs[tg.batch:], m.queue.IDs)
		}
	}
}

// loadPool does the same for the queue that the batch has entered, and says where (Mei
// et al., algorithm 2, line 13) and whether the graphs are read. A step that does not
// read the queue has its batch in the first rows and no others.
func (tg *trainGraph) loadPool(m *ALBEF, b Batch, c Control) {
	h, q := &tg.host, m.queue
	h.pointer[0], h.cols[0] = q.enter(h.own, c.UseQueue)
	if tg.colIDs != nil {
		copy(h.colIDs, q.IDs)
		for i, p := range h.own {
			h.colIDs[p] = b.IDs[i]
		}
	}
	m.graphs.activate(c.UseQueue)
	h.weigh[0] = 0
	if m.graphs.active() {
		h.weigh[0] = -float32(m.cfg.Objective.Geodesic.Weigh)
	}
}

// gumbel fills slices with standard Gumbel noise.
func gumbel(r *rand.Rand, dst ...[]float32) {
	for _, d := range dst {
		for i := range d {
			d[i] = float32(-math.Log(r.ExpFloat64() + 1e-30))
		}
	}
}

// MomentumFeatures returns the teacher's features of the last step's batch that enter the
// queue, empty without a teacher. The next step overwrites them.
func (m *ALBEF) MomentumFeatures() (k Keys, err error) {
	value := func(n *gorgonia.Node) []float32 {
		if n == nil || err != nil {
			return nil
		}
		a, failed := m.train.machine.Value(n)
		err = failed
		return a.F32
	}
	tg := m.train
	return Keys{value(tg.imageM), value(tg.textM), value(tg.imageBackbone), value(tg.textBackbone)}, err
}

// Enqueue pushes the momentum features of the last step with the ids of its batch.
func (m *ALBEF) Enqueue(ids []int32) error {
	k, err := m.MomentumFeatures()
	if err != nil || m.queue == nil || k.Image == nil {
		return err
	}
	return m.queue.Push(k, ids)
}

// Machine returns the compiled training step, for profiles.
func (m *ALBEF) Machine() *exec.Machine { return m.train.machine }

// Learnable says whether training changes a parameter.
func (m *ALBEF) Learnable(name string) bool { return m.train.learnable[name] }

// MaskRows returns M, the rows of the language-modelling loss; 0 without one.
func (m *ALBEF) MaskRows() int { return m.train.maskRows }
