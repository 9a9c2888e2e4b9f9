package model

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops"
	"gorgonia.org/gorgonia"
)

// teacherSites keeps the teacher's dropout masks apart from the student's: no tower
// has that many dropout places.
const teacherSites = 1 << 16

// builder is a training step under construction.
type builder struct {
	m *ALBEF
	*graph
	tg      *trainGraph
	b, l, t int // batch, tokens of a text, tokens of an image

	itm, mlm bool // which losses read the fusion layers
	soft     bool // whether the teacher gives soft targets

	on, mom          encoders.Scope // parameters and their twins
	student, teacher *encoders.Context
	online, momentum towers
	temperature      *gorgonia.Node

	fixed   map[*gorgonia.Node][]int32 // inputs that never change
	losses  gorgonia.Nodes
	weights []float32
}

// towers is what the two encoders make of a batch.
type towers struct {
	imageTokens *gorgonia.Node // (B*T, Dimage)
	textStates  *gorgonia.Node // (B*L, D), with masked captions (2B*L, D): clean ones first
	image, text *gorgonia.Node // (B, C) unit features
}

// buildTrain builds and compiles the training step. The text tower reads clean and
// masked captions in one pass, and the fusion encoder all its pairs in one pass: the
// rows are [pairs, wrong image, wrong text, masked]. Rows share the keys of an image
// through an index, so an image is projected once.
func (m *ALBEF) buildTrain() (err error) {
	defer ops.Catch(&err)
	cfg, obj := m.cfg, m.cfg.Objective
	s := &builder{
		m: m, graph: m.newGraph(), tg: &trainGraph{batch: cfg.Train.BatchSize, tokens: cfg.Data.Tokens},
		b: cfg.Train.BatchSize, l: cfg.Data.Tokens, t: m.vit.Tokens(),
		itm: obj.ITM.Weight > 0, mlm: obj.MLM.Weight > 0,
		soft:  cfg.Momentum.Enabled && obj.Distill.Alpha > 0,
		fixed: map[*gorgonia.Node][]int32{},
	}
	s.on, s.mom = encoders.NewScope(s.params), encoders.NewScope(s.twins)
	m.train = s.tg
	s.inputs()
	s.online = s.encode(s.on, s.student)
	s.temperature = s.on.Param(temperatureName, encoders.Const(float32(obj.ITC.Temperature)))
	if cfg.Momentum.Enabled {
		s.momentum = s.encode(s.mom, s.teacher)
		s.tg.imageM, s.tg.textM = s.momentum.image, s.momentum.text
	}
	contrast := s.contrast()
	s.fuse(contrast)
	if len(s.losses) == 0 {
		return fmt.Errorf("model: every objective has weight 0: set objective.itc.weight, objective.itm.weight or objective.mlm.weight")
	}
	s.tg.loss = ops.WeightedSum(s.weights, s.losses...)
	return s.compile()
}

// inputs makes the inputs that every step has, and the dropout of both towers.
func (s *builder) inputs() {
	tg, texts := s.tg, s.b
	if s.mlm {
		texts = 2 * s.b
		tg.maskRows = objectives.MaskCapacity(s.b, s.l, s.m.cfg.Objective.MLM.Prob)
	}
	tg.images = s.floats("images", s.b, 3, s.m.vit.Size, s.m.vit.Size)
	tg.text = s.ints("text", texts*s.l)
	tg.lengths = s.ints("lengths", texts)
	if s.soft {
		tg.alpha = s.floats("alpha")
	}
	if s.m.cfg.Objective.ITC.Positives == "id" {
		tg.ids = s.ints("image ids", s.b)
	}
	s.student, s.teacher = &encoders.Context{}, &encoders.Context{}
	if s.m.bert.Dropout > 0 {
		tg.key = s.ints("dropout key", 2)
		s.student.DropoutKey = tg.key
		if s.m.cfg.Momentum.Dropout {
			s.teacher.DropoutKey = tg.key
			s.teacher.SkipSites(teacherSites)
		}
	}
}

// encode runs both towers with the parameters of p.
func (s *builder) encode(p encoders.Scope, c *encoders.Context) towers {
	m := s.m
	x := towers{
		imageTokens: m.vit.Forward(p.In("image"), s.tg.images),                  // (B*T, Dimage)
		textStates:  m.bert.Text(c, p.In("text"), s.tg.text, s.tg.lengths, s.l), // (B*L, D) or (2B*L, D)
	}
	clean := ops.StridedRows(x.textStates, 0, 1, s.b*s.l)            // (B*L, D)
	x.image = m.head.Forward(p.In("image_proj"), x.imageTokens, s.t) // (B, C)
	x.text = m.head.Forward(p.In("text_proj"), clean, s.l)           // (B, C)
	return x
}

// add adds a loss to the total.
func (s *builder) add(name string, weight float64, loss *gorgonia.Node) {
	s.losses, s.weights = append(s.losses, loss), append(s.weights, float32(weight))
	s.tg.parts = append(s.tg.parts, namedNode{name: name, node: loss})
}

// contrast adds the contrastive losses. It returns the similarities that matching
// draws its negatives by: those of the contrast against the teacher, or else those
// within the batch.
func (s *builder) contrast() objectives.Contrast {
	itc := s.m.cfg.Objective.ITC
	own := objectives.Positives{Labels: s.fixedInts("own columns", iota32(0, s.b))}
	var c objectives.Contrast
	if s.m.cfg.Momentum.Enabled && itc.Weight > 0 {
		c = s.momentumContrast(own)
		s.add("itc", itc.Weight, c.Loss)
	}
	if itc.InBatchWeight > 0 || s.itm && c.I2T == nil {
		if ids := s.tg.ids; ids != nil {
			own = objectives.Positives{RowIDs: ids, ColIDs: ids}
		}
		within := objectives.InBatchContrast(s.online.image, s.online.text, s.temperature, own)
		if itc.InBatchWeight > 0 {
			s.add("itc_in_batch", itc.InBatchWeight, within.Loss)
		}
		if c.I2T == nil {
			c = within
		}
	}
	return c
}

// momentumContrast is the contrast against the teacher's features and the queue.
func (s *builder) momentumContrast(own objectives.Positives) objectives.Contrast {
	tg, queue := s.tg, s.m.queue
	c := objectives.MomentumContrast{
		Image: s.online.image, Text: s.online.text, ImageM: s.momentum.image, TextM: s.momentum.text,
		Temperature: s.temperature, Alpha: tg.alpha, Positives: own,
	}
	columns := s.b
	if queue != nil {
		columns += queue.size
		tg.cols = s.ints("columns")
		tg.imageQueue = s.floats("image queue", queue.size, s.m.head.Dim)
		tg.textQueue = s.floats("text queue", queue.size, s.m.head.Dim)
		c.ImageQueue, c.TextQueue, c.Cols = tg.imageQueue, tg.textQueue, tg.cols
	}
	if tg.ids != nil {
		tg.colIDs = s.ints("column ids", columns)
		c.Positives = objectives.Positives{RowIDs: tg.ids, ColIDs: tg.colIDs}
	}
	return c.Build()
}

// fuse runs the fusion layers over the rows of matching and of masked language
// modelling, and adds both losses.
func (s *builder) fuse(c objectives.Contrast) {
	var textRows, imageRows gorgonia.Nodes // which text and which image a row has
	var labels *gorgonia.Node              // (3B) int32, of matching
	if s.itm {
		tg := s.tg
		tg.noiseI2T, tg.noiseT2I = s.floats("noise i2t", s.b, s.b), s.floats("noise t2i", s.b, s.b)
		negTexts, negImages := objectives.HardNegatives(c, tg.noiseI2T, tg.noiseT2I, tg.ids) // (B), (B)
		batch := s.fixedInts("batch", iota32(0, s.b))
		textRows = append(textRows, batch, batch, negTexts)
		imageRows = append(imageRows, batch, negImages, batch)
		match := s.fixedInts("match", slices.Repeat([]int32{1}, s.b))
		labels = objectives.MatchingLabels(match, negImages, negTexts)
	}
	if s.mlm {
		textRows = append(textRows, s.fixedInts("masked texts", iota32(s.b, s.b)))
		imageRows = append(imageRows, s.fixedInts("images of masked texts", iota32(0, s.b)))
	}
	if len(textRows) == 0 {
		return
	}
	rows := ops.ConcatInts(textRows...)                 // (R)
	x := ops.GatherRows(s.online.textStates, rows, s.l) // (R*L, D)
	lengths := ops.GatherInts(s.tg.lengths, rows)       // (R)
	fused := s.m.bert.Fusion(s.student, s.on.In("text"), x, lengths, s.online.imageTokens, ops.ConcatInts(imageRows...), s.l, s.t)
	if s.itm {
		s.matching(ops.StridedRows(fused, 0, 1, 3*s.b*s.l), labels)
	}
	if s.mlm {
		s.masked(fused)
	}
}

// matching adds the loss of image-text matching for its fused pairs (3B*L, D).
func (s *builder) matching(pairs, labels *gorgonia.Node) {
	logits := encoders.Classifier{Classes: 2}.Forward(s.on.In("itm_head"), pairs, s.l) // (3B, 2)
	s.add("itm", s.m.cfg.Objective.ITM.Weight, objectives.Matching(logits, labels))
	s.tg.parts = append(s.tg.parts, namedNode{"itm_accuracy", ops.Accuracy(logits, labels), true})
}

// masked adds the loss of masked language modelling for fused rows whose last B
// texts are the masked captions.
func (s *builder) masked(fused *gorgonia.Node) {
	tg, bert := s.tg, s.m.bert
	tg.places, tg.labels = s.ints("mask places", tg.maskRows), s.ints("mask labels", tg.maskRows)
	logits := bert.MLMHead(s.on.In("text"), ops.GatherRows(fused, tg.places, 1)) // (M, V)
	var teacher, alpha *gorgonia.Node
	if s.soft {
		alpha = tg.alpha
		tg.teacherPlaces = s.ints("teacher mask places", tg.maskRows)
		x := ops.StridedRows(s.momentum.textStates, s.b*s.l, 1, s.b*s.l)                       // (B*L, D)
		lengths := ops.GatherInts(tg.lengths, s.fixedInts("masked lengths", iota32(s.b, s.b))) // (B)
		x = bert.Fusion(s.teacher, s.mom.In("text"), x, lengths, s.momentum.imageTokens, nil, s.l, s.t)
		teacher = bert.MLMHead(s.mom.In("text"), ops.GatherRows(x, tg.teacherPlaces, 1)) // (M, V)
	}
	s.add("mlm", s.m.cfg.Objective.MLM.Weight, objectives.MaskedLM(logits, teacher, tg.labels, alpha))
}

// fixedInts is an int32 input that never changes.
func (s *builder) fixedInts(name string, values []int32) *gorgonia.Node {
	n := s.ints(name, len(values))
	s.fixed[n] = values
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
