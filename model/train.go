package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops"
	"gorgonia.org/gorgonia"
)

// Batch is the data of one training step.
type Batch struct {
	Images  []float32 // (B, 3, size, size)
	Tokens  []int32   // (B, L) ids, padded
	Lengths []int32   // (B) tokens that are no padding
	IDs     []int32   // (B) image ids, for multi-positive targets and the queue

	// For masked language modelling, unless its weight is 0: the tokens with some
	// masked, and M selected places (b*L + l) with their labels, padded with -100.
	Masked     []int32 // (B, L)
	MaskPlaces []int32 // (M)
	MaskLabels []int32 // (M)
}

// Control is what changes a step besides the data.
type Control struct {
	Step     int     // counter of the random streams
	Alpha    float64 // weight of the teacher's soft targets
	UseQueue bool    // whether the contrast reads the queue
}

// Part is a named value of a step: a loss part or a measure.
type Part struct {
	Name  string
	Value float64
}

// Result is what a training step computed. Gradients are in Params.Grads.
type Result struct {
	Loss  float64
	Parts []Part // reused by the next step
}

// trainGraph is the compiled training step.
type trainGraph struct {
	batch, tokens, maskRows int
	machine                 *exec.Machine

	images, ids, alpha, cols, key        *gorgonia.Node
	text, lengths, places, teacherPlaces *gorgonia.Node
	labels, colIDs, noiseI2T, noiseT2I   *gorgonia.Node
	imageQueue, textQueue                *gorgonia.Node
	loss, imageM, textM                  *gorgonia.Node
	parts                                []namedNode
	host                                 trainHost
	result                               Result
	learnable                            map[string]bool
}

type namedNode struct {
	name string
	node *gorgonia.Node
}

// trainHost is the host memory that inputs are bound to.
type trainHost struct {
	text, lengths, places, teacherPlaces, colIDs []int32
	noiseI2T, noiseT2I                           []float32
	alpha                                        [1]float32
	cols                                         [1]int32
	key                                          [2]int32
}

// fixedInts is an int32 input that never changes.
func (m *ALBEF) fixedInts(b *graph, fixed map[*gorgonia.Node][]int32, name string, values []int32) *gorgonia.Node {
	n := b.ints(name, len(values))
	fixed[n] = values
	return n
}

// iota32 returns n integers from start.
func iota32(start, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(start + i)
	}
	return out
}

// buildTrain builds and compiles the training step. The text tower reads clean and
// masked captions in one pass, and the fusion encoder all its pairs in one pass: the
// rows are [pairs, wrong image, wrong text, masked]. Rows share the keys of an image
// through an index, so an image is projected once.
func (m *ALBEF) buildTrain() (err error) {
	defer ops.Catch(&err)
	var (
		cfg   = m.cfg
		obj   = cfg.Objective
		b     = cfg.Train.BatchSize
		l     = cfg.Data.Tokens
		t     = m.vit.Tokens()
		itm   = obj.ITM.Weight > 0
		mlm   = obj.MLM.Weight > 0
		twins = cfg.Momentum.Enabled
		soft  = twins && obj.Distill.Alpha > 0
		gr    = m.newGraph()
		on    = encoders.NewScope(gr.params)
		mom   = encoders.NewScope(gr.twins)
		tg    = &trainGraph{batch: b, tokens: l}
		fixed = map[*gorgonia.Node][]int32{}
		texts = b // rows of the text tower
	)
	m.train = tg
	if mlm {
		texts = 2 * b
		tg.maskRows = MaskCapacity(b, l, obj.MLM.Prob)
	}
	tg.images = gr.floats("images", b, 3, m.vit.Size, m.vit.Size)
	tg.text = gr.ints("text", texts*l)
	tg.lengths = gr.ints("lengths", texts)
	student, teacher := &encoders.Context{}, &encoders.Context{}
	if m.bert.Dropout > 0 {
		tg.key = gr.ints("dropout key", 2)
		student.DropoutKey = tg.key
		if cfg.Momentum.Dropout {
			teacher.DropoutKey = tg.key
			teacher.SkipSites(1 << 16)
		}
	}

	// Online towers.
	imageTokens := m.vit.Forward(on.In("image"), tg.images)                   // (B*T, D)
	textStates := m.bert.Text(student, on.In("text"), tg.text, tg.lengths, l) // (texts*L, D)
	clean := textStates
	if mlm {
		clean = ops.StridedRows(textStates, 0, 1, b*l) // (B*L, D)
	}
	image := m.head.Forward(on.In("image_proj"), imageTokens, t) // (B, C)
	text := m.head.Forward(on.In("text_proj"), clean, l)         // (B, C)
	temperature := on.Param(temperatureName, encoders.Const(float32(obj.ITC.Temperature)))

	// Momentum towers.
	var imageTokensM, textStatesM *gorgonia.Node
	if twins {
		imageTokensM = m.vit.Forward(mom.In("image"), tg.images)
		textStatesM = m.bert.Text(teacher, mom.In("text"), tg.text, tg.lengths, l)
		cleanM := textStatesM
		if mlm {
			cleanM = ops.StridedRows(textStatesM, 0, 1, b*l)
		}
		tg.imageM = m.head.Forward(mom.In("image_proj"), imageTokensM, t)
		tg.textM = m.head.Forward(mom.In("text_proj"), cleanM, l)
	}

	var losses gorgonia.Nodes
	var weights []float32
	add := func(name string, weight float64, loss *gorgonia.Node) {
		losses, weights = append(losses, loss), append(weights, float32(weight))
		tg.parts = append(tg.parts, namedNode{name, loss})
	}

	// Contrast.
	queueRows := 0
	if m.queue != nil {
		queueRows = m.queue.size
	}
	own := objectives.Positives{Labels: m.fixedInts(gr, fixed, "own columns", iota32(0, b))}
	var ids *gorgonia.Node
	inBatch := own
	if obj.ITC.Positives == "id" {
		ids = gr.ints("image ids", b)
		tg.ids = ids
		inBatch = objectives.Positives{RowIDs: ids, ColIDs: ids}
	}
	if soft {
		tg.alpha = gr.floats("alpha")
	}
	var contrast objectives.Contrast
	if twins && obj.ITC.Weight > 0 {
		mc := objectives.MomentumContrast{Image: image, Text: text, ImageM: tg.imageM, TextM: tg.textM,
			Temperature: temperature, Alpha: tg.alpha, Positives: own}
		if m.queue != nil {
			tg.cols = gr.ints("columns")
			tg.imageQueue = gr.floats("image queue", queueRows, m.head.Dim)
			tg.textQueue = gr.floats("text queue", queueRows, m.head.Dim)
			mc.ImageQueue, mc.TextQueue, mc.Cols = tg.imageQueue, tg.textQueue, tg.cols
		}
		if ids != nil {
			tg.colIDs = gr.ints("column ids", b+queueRows)
			mc.Positives = objectives.Positives{RowIDs: ids, ColIDs: tg.colIDs}
		}
		contrast = mc.Build()
		add("itc", obj.ITC.Weight, contrast.Loss)
	}
	if obj.ITC.InBatchWeight > 0 || itm && contrast.I2T == nil {
		c := objectives.InBatchContrast(image, text, temperature, inBatch)
		if obj.ITC.InBatchWeight > 0 {
			add("itc_in_batch", obj.ITC.InBatchWeight, c.Loss)
		}
		if contrast.I2T == nil {
			contrast = c
		}
	}

	// Fusion.
	var textRows, imageRows gorgonia.Nodes
	var negImages, negTexts *gorgonia.Node
	if itm {
		tg.noiseI2T, tg.noiseT2I = gr.floats("noise i2t", b, b), gr.floats("noise t2i", b, b)
		negTexts, negImages = objectives.HardNegatives(contrast, tg.noiseI2T, tg.noiseT2I, ids)
		batch := m.fixedInts(gr, fixed, "batch", iota32(0, b))
		textRows = append(textRows, batch, batch, negTexts)
		imageRows = append(imageRows, batch, negImages, batch)
	}
	if mlm {
		textRows = append(textRows, m.fixedInts(gr, fixed, "masked texts", iota32(b, b)))
		imageRows = append(imageRows, m.fixedInts(gr, fixed, "images of masked texts", iota32(0, b)))
	}
	if len(textRows) > 0 {
		rows := ops.ConcatInts(textRows...)
		x := ops.GatherRows(textStates, rows, l)
		fused := m.bert.Fusion(student, on.In("text"), x, ops.GatherInts(tg.lengths, rows), imageTokens, ops.ConcatInts(imageRows...), l, t)
		if itm {
			ones := make([]int32, b)
			for i := range ones {
				ones[i] = 1
			}
			labels := objectives.MatchingLabels(m.fixedInts(gr, fixed, "match", ones), negImages, negTexts)
			pairs := fused
			if mlm {
				pairs = ops.StridedRows(fused, 0, 1, 3*b*l)
			}
			logits := encoders.Classifier{Classes: 2}.Forward(on.In("itm_head"), pairs, l)
			add("itm", obj.ITM.Weight, objectives.Matching(logits, labels))
			tg.parts = append(tg.parts, namedNode{"itm_accuracy", ops.Accuracy(logits, labels)})
		}
		if mlm {
			tg.places, tg.labels = gr.ints("mask places", tg.maskRows), gr.ints("mask labels", tg.maskRows)
			logits := m.bert.MLMHead(on.In("text"), ops.GatherRows(fused, tg.places, 1))
			var soften *gorgonia.Node
			if soft {
				tg.teacherPlaces = gr.ints("teacher mask places", tg.maskRows)
				xm := ops.StridedRows(textStatesM, b*l, 1, b*l)
				lengths := ops.GatherInts(tg.lengths, m.fixedInts(gr, fixed, "masked lengths", iota32(b, b)))
				fm := m.bert.Fusion(teacher, mom.In("text"), xm, lengths, imageTokensM, nil, l, t)
				soften = m.bert.MLMHead(mom.In("text"), ops.GatherRows(fm, tg.teacherPlaces, 1))
			}
			var alpha *gorgonia.Node
			if soften != nil {
				alpha = tg.alpha
			}
			add("mlm", obj.MLM.Weight, objectives.MaskedLM(logits, soften, tg.labels, alpha))
		}
	}
	if len(losses) == 0 {
		return fmt.Errorf("model: every objective has weight 0: set objective.itc.weight, objective.itm.weight or objective.mlm.weight")
	}
	tg.loss = ops.WeightedSum(weights, losses...)
	return m.compileTrain(gr, fixed)
}

// compileTrain differentiates the loss, compiles the graph and binds all inputs.
func (m *ALBEF) compileTrain(gr *graph, fixed map[*gorgonia.Node][]int32) error {
	tg := m.train
	m.params.seal()
	tg.learnable = map[string]bool{}
	var wrt gorgonia.Nodes
	var mem [][]float32
	gr.params.each(func(q *Param, n *gorgonia.Node, _ []float32) {
		if q.Name == temperatureName && !m.cfg.Objective.ITC.LearnTemperature {
			return
		}
		tg.learnable[q.Name] = true
		wrt, mem = append(wrt, n), append(mem, m.params.Grad(q))
	})
	grads, err := gorgonia.Grad(tg.loss, wrt...)
	if err != nil {
		return fmt.Errorf("model: differentiating the loss: %w", err)
	}
	bind := map[*gorgonia.Node][]float32{}
	for i, n := range grads {
		bind[n] = mem[i]
	}
	outputs := append(gorgonia.Nodes{tg.loss}, grads...)
	for _, p := range tg.parts {
		outputs = append(outputs, p.node)
	}
	if tg.imageM != nil {
		outputs = append(outputs, tg.imageM, tg.textM)
	}
	tg.machine, err = exec.Compile(gr.g, exec.Config{Engine: m.engine, Outputs: outputs, Bind: bind, CheckNaN: m.cfg.Compute.CheckNaN})
	if err != nil {
		return err
	}
	tg.result.Parts = make([]Part, len(tg.parts))
	return m.bindTrain(gr, fixed)
}

// bindTrain ties the inputs to memory that stays put.
func (m *ALBEF) bindTrain(gr *graph, fixed map[*gorgonia.Node][]int32) error {
	tg, h := m.train, &m.train.host
	var err error
	set := func(n *gorgonia.Node, data any) {
		if n != nil && err == nil {
			err = tg.machine.SetInput(n, data)
		}
	}
	for _, w := range []*binding{gr.params, gr.twins} {
		w.each(func(_ *Param, n *gorgonia.Node, mem []float32) { set(n, mem) })
	}
	for n, values := range fixed {
		set(n, values)
	}
	b := tg.batch
	h.text = make([]int32, tg.text.Shape().TotalSize())
	h.lengths = make([]int32, tg.lengths.Shape().TotalSize())
	h.places, h.teacherPlaces = make([]int32, tg.maskRows), make([]int32, tg.maskRows)
	set(tg.text, h.text)
	set(tg.lengths, h.lengths)
	set(tg.places, h.places)
	set(tg.teacherPlaces, h.teacherPlaces)
	if tg.noiseI2T != nil {
		h.noiseI2T, h.noiseT2I = make([]float32, b*b), make([]float32, b*b)
		set(tg.noiseI2T, h.noiseI2T)
		set(tg.noiseT2I, h.noiseT2I)
	}
	if tg.colIDs != nil {
		h.colIDs = make([]int32, tg.colIDs.Shape().TotalSize())
		set(tg.colIDs, h.colIDs)
	}
	set(tg.alpha, h.alpha[:])
	set(tg.cols, h.cols[:])
	set(tg.key, h.key[:])
	if m.queue != nil {
		set(tg.imageQueue, m.queue.Image)
		set(tg.textQueue, m.queue.Text)
	}
	return err
}

// Forward runs one training step up to the gradients: losses, gradients of every
// parameter, momentum features. It changes no state; see Enqueue.
func (m *ALBEF) Forward(b Batch, c Control) (*Result, error) {
	if err := m.train.load(m, b, c); err != nil {
		return nil, err
	}
	tg := m.train
	if err := tg.machine.RunAll(); err != nil {
		return nil, err
	}
	loss, err := tg.machine.Scalar(tg.loss)
	if err != nil {
		return nil, err
	}
	tg.result.Loss = float64(loss)
	for i, p := range tg.parts {
		v, err := tg.machine.Scalar(p.node)
		if err != nil {
			return nil, err
		}
		tg.result.Parts[i] = Part{p.name, float64(v)}
	}
	return &tg.result, nil
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
	copy(h.text, b.Tokens)
	copy(h.lengths, b.Lengths)
	if tg.maskRows > 0 {
		if len(b.Masked) != n {
			return batchError("masked tokens", len(b.Masked), n)
		}
		if len(b.MaskPlaces) != tg.maskRows || len(b.MaskLabels) != tg.maskRows {
			return batchError("mask places and labels", len(b.MaskPlaces), tg.maskRows)
		}
		copy(h.text[n:], b.Masked)
		copy(h.lengths[tg.batch:], b.Lengths)
		first := 0 // fused rows before the masked ones
		if tg.noiseI2T != nil {
			first = 3 * n
		}
		for i, p := range b.MaskPlaces {
			h.places[i], h.teacherPlaces[i] = int32(first)+p, p
		}
		if err := tg.machine.SetInput(tg.labels, b.MaskLabels); err != nil {
			return err
		}
	}
	if tg.ids != nil {
		if err := tg.machine.SetInput(tg.ids, b.IDs); err != nil {
			return err
		}
	}
	h.alpha[0] = float32(c.Alpha)
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
	seed, step := m.cfg.Run.Seed, uint64(c.Step)
	if tg.noiseI2T != nil {
		gumbel(rng.New(seed, rng.Negatives, step), h.noiseI2T, h.noiseT2I)
	}
	k := rng.New(seed, rng.Dropout, step).Uint64()
	h.key[0], h.key[1] = int32(uint32(k)), int32(uint32(k>>32))
	return nil
}

// gumbel fills slices with standard Gumbel noise.
func gumbel(r *rand.Rand, dst ...[]float32) {
	for _, d := range dst {
		for i := range d {
			d[i] = float32(-math.Log(r.ExpFloat64() + 1e-30))
		}
	}
}

// MomentumFeatures returns the teacher's unit features (B, C) of the last step's
// batch, nil without a teacher. The next step overwrites them.
func (m *ALBEF) MomentumFeatures() (image, text []float32, err error) {
	if m.train.imageM == nil {
		return nil, nil, nil
	}
	a, err := m.train.machine.Value(m.train.imageM)
	if err != nil {
		return nil, nil, err
	}
	b, err := m.train.machine.Value(m.train.textM)
	if err != nil {
		return nil, nil, err
	}
	return a.F32, b.F32, nil
}

// Enqueue pushes the momentum features of the last step with the ids of its batch.
func (m *ALBEF) Enqueue(ids []int32) error {
	image, text, err := m.MomentumFeatures()
	if err != nil || m.queue == nil || image == nil {
		return err
	}
	return m.queue.Push(image, text, ids)
}

// Machine returns the compiled training step, for profiles.
func (m *ALBEF) Machine() *exec.Machine { return m.train.machine }

// Learnable says whether training changes a parameter.
func (m *ALBEF) Learnable(name string) bool { return m.train.learnable[name] }

// MaskRows returns M, the rows of the language-modelling loss; 0 without one.
func (m *ALBEF) MaskRows() int { return m.train.maskRows }

// MaskCapacity returns M, the number of language-modelling rows that a graph for b
// captions of l tokens holds: the mean number of selected tokens plus six standard
// deviations, rounded up to a multiple of 8.
func MaskCapacity(b, l int, prob float64) int {
	n := float64(b * (l - 1))
	k := int(math.Ceil(n*prob + 6*math.Sqrt(n*prob*(1-prob))))
	return min((k+7)/8*8, b*(l-1))
}
