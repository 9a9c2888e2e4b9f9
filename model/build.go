package model

import (
	"fmt"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/op"
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
	softMLM  bool // also to masked language modelling

	judge      *judge                 // of hard negatives, or nil
	relabelled *objectives.Relabelled // by the judge, once it was asked

	all              captions       // clean ones, then masked ones (2B)
	on, mom          encoders.Scope // parameters and their twins
	student, teacher *encoders.Context
	online, momentum towers
	scores           scorer
	images, texts    *objectives.Bank // that the contrast with the queue reads, or nil

	blocks  blocks                     // of the student, to compute again in the backward pass
	fixed   map[*gorgonia.Node][]int32 // inputs that never change
	losses  gorgonia.Nodes
	weights []float32
}

// buildTrain builds and compiles the training step. Where both are read, the text
// tower takes clean and masked captions in one pass, and the fusion encoder all its
// pairs in one pass: the rows are [pairs, wrong image, wrong text, masked]. Rows share
// the keys of an image through an index, so an image is projected once. The last layers
// compute the states that a loss reads, and no others.
func (m *ALBEF) buildTrain() (err error) {
	defer op.Catch(&err)
	cfg, obj := m.cfg, m.cfg.Objective
	s := &builder{
		m: m, graph: m.newGraph(), tg: &trainGraph{batch: cfg.Train.BatchSize, tokens: cfg.Data.Tokens},
		b: cfg.Train.BatchSize, l: cfg.Data.Tokens, t: m.vit.Tokens(),
		itm: obj.ITM.Weight > 0, mlm: obj.MLM.Weight > 0,
		soft:  cfg.Momentum.Enabled && obj.Distill.Alpha > 0,
		fixed: map[*gorgonia.Node][]int32{},
	}
	s.softMLM = s.soft && s.mlm
	s.on, s.mom = encoders.NewScope(s.params), encoders.NewScope(s.twins)
	s.scores = scorer{cfg, s.on, s.mom}
	m.train = s.tg
	s.inputs()
	if s.m.cfg.Compute.Recompute {
		s.on = s.on.Marked(s.blocks.mark(s.g))
	}
	if m.connector != nil && s.itm {
		s.judge = s.newJudge(m.connector)
	}
	s.online = s.encode(s.on, s.student, s.tg.images, s.itm || s.mlm, s.itm, s.mlm)
	if cfg.Momentum.Enabled {
		local := obj.TCL.Local && obj.ITC.Weight > 0
		s.momentum = s.encode(s.mom, s.teacher, s.tg.views, s.softMLM || local, local, s.softMLM)
		s.tg.imageM, s.tg.textM = s.momentum.image, s.momentum.text
	}
	s.fuse(s.contrast())
	s.geometric()
	if len(s.losses) == 0 {
		return fmt.Errorf("model: every objective has weight 0: set objective.itc.weight, objective.itm.weight or objective.mlm.weight")
	}
	s.tg.loss = arith.WeightedSum(s.weights, s.losses...)
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
	tg.views = tg.images
	if s.m.cfg.Data.Views > 1 && s.m.cfg.Momentum.Enabled {
		tg.views = s.floats("second views", s.b, 3, s.m.vit.Size, s.m.vit.Size)
	}
	if s.m.cfg.Objective.MAFA.Uniform > 0 {
		tg.uniform = s.floats("uniform share")
	}
	tg.text = s.ints("text", texts*s.l)
	tg.lengths = s.ints("lengths", texts)
	s.all = captions{tg.text, tg.lengths}
	tg.clean = captions{s.ints("clean text", s.b*s.l), s.ints("clean lengths", s.b)}
	tg.masked = captions{s.ints("masked text", s.b*s.l), s.ints("masked lengths", s.b)}
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
	own := objectives.Positives{Labels: s.fixedInts("own columns", iota32(0, s.b, 1))}
	var c objectives.Contrast
	if s.m.cfg.Momentum.Enabled && itc.Weight > 0 {
		c = s.momentumContrast(own)
		s.add("itc", itc.Weight, c.Loss)
	}
	if itc.InBatchWeight > 0 || s.itm && c.I2T == nil {
		if ids := s.tg.ids; ids != nil {
			own = objectives.Positives{RowIDs: ids, ColIDs: ids}
		}
		within := objectives.InBatchContrast(s.online.image, s.online.text, s.scores.score(s.m.cfg.PairTerms(), false), s.targets(own, nil))
		if itc.InBatchWeight > 0 {
			s.add("itc_in_batch", itc.InBatchWeight, within.Loss)
		}
		if c.I2T == nil {
			c = within
			if terms := s.m.cfg.Objective.NegativeTerms(); terms != nil {
				c.I2T = s.scores.score(terms, false).Pairs(s.online.image, s.online.text)
				c.T2I = layout.Transpose(c.I2T)
			}
		}
	}
	return c
}

// momentumContrast is the contrast against the teacher's features and the queue. Where an
// objective reads the graphs over the queue, the columns are those of the queue once the
// batch has entered it.
func (s *builder) momentumContrast(own objectives.Positives) objectives.Contrast {
	tg, queue, obj := s.tg, s.m.queue, s.m.cfg.Objective
	images, texts := &objectives.Bank{Keys: s.momentum.image}, &objectives.Bank{Keys: s.momentum.text}
	s.images, s.texts = images, texts
	images.Local, texts.Local = s.scores.local(), s.scores.local()
	columns := s.b
	if queue != nil {
		columns += queue.size
		tg.cols = s.ints("columns")
		tg.imageQueue = s.floats("image queue", queue.size, s.m.head.Dim)
		tg.textQueue = s.floats("text queue", queue.size, s.m.head.Dim)
		images.Queue, images.Cols = tg.imageQueue, tg.cols
		texts.Queue, texts.Cols = tg.textQueue, tg.cols
	}
	positives := own
	if s.m.graphs != nil {
		columns = queue.size
		tg.pointer, tg.own = s.ints("pointer"), s.ints("own entries", s.b)
		positives = objectives.Positives{Labels: tg.own}
		tg.imageGraph, tg.textGraph = s.graphInputs("image", s.m.graphs.Image), s.graphInputs("text", s.m.graphs.Text)
		images.Pointer, images.Graph = tg.pointer, tg.imageGraph
		texts.Pointer, texts.Graph = tg.pointer, tg.textGraph
	}
	if tg.ids != nil {
		tg.colIDs = s.ints("column ids", columns)
		positives = objectives.Positives{RowIDs: tg.ids, ColIDs: tg.colIDs}
	}
	c := objectives.MomentumContrast{
		Image: s.online.image, Text: s.online.text, ImageM: s.momentum.image, TextM: s.momentum.text,
		ImageBank: images, TextBank: texts, Alpha: tg.alpha, Positives: s.targets(positives, tg.own),
		Score:      s.scores.score(obj.ScoreTerms(), false),
		Target:     s.scores.score(obj.TargetTerms(), true),
		WeighPaths: s.scores.paths(),
	}
	if terms := obj.NegativeTerms(); terms != nil {
		by := s.scores.score(terms, false)
		c.Negatives = &by
	}
	if obj.Geodesic.Weigh > 0 {
		tg.weigh = s.floats("weight of the teacher's scores")
		c.Weigh = tg.weigh
	}
	c.Terms = s.tcl(c)
	return c.Build()
}

// fuse runs the fusion layers over the rows of matching and of masked language
// modelling, and adds both losses. Matching reads the first token of its rows, masked
// language modelling the masked places.
func (s *builder) fuse(c objectives.Contrast) {
	tg, pairs := s.tg, 0
	var p encoders.Pairs
	var rows, texts gorgonia.Nodes // places that a loss reads
	var labels *gorgonia.Node      // (3B) int32, of matching
	in, states := tg.masked, s.online.masked
	if s.itm {
		pairs = 3 * s.b
		in, states = tg.clean, s.online.clean
		tg.noiseI2T, tg.noiseT2I = s.floats("noise i2t", s.b, s.b), s.floats("noise t2i", s.b, s.b)
		var negTexts, negImages *gorgonia.Node // (B), (B)
		negTexts, negImages, labels = s.negatives(c)
		batch := s.fixedInts("batch", iota32(0, s.b, 1))
		textRows, imageRows := gorgonia.Nodes{batch, batch, negTexts}, gorgonia.Nodes{batch, negImages, batch}
		if s.mlm {
			in = s.all
			textRows = append(textRows, s.fixedInts("masked texts", iota32(s.b, s.b, 1)))
			imageRows = append(imageRows, batch)
		}
		p = encoders.Pairs{Texts: layout.ConcatInts(textRows...), Images: layout.ConcatInts(imageRows...)} // (R)
		rows = append(rows, s.fixedInts("first tokens of pairs", iota32(0, pairs, s.l)))
		texts = append(texts, s.fixedInts("pairs", iota32(0, pairs, 1)))
	}
	if s.mlm {
		tg.places = s.placesInput("mask")
		rows, texts = append(rows, tg.places.Rows), append(texts, tg.places.Sequences)
	}
	if len(rows) == 0 {
		return
	}
	at := &encoders.Places{Rows: layout.ConcatInts(rows...), Sequences: layout.ConcatInts(texts...)}
	fused := s.m.bert.Fusion(s.student, s.on.In("text"), states, in.lengths, s.online.imageTokens, p, at, s.l, s.t) // (3B+M, D)
	if s.itm {
		s.matching(layout.StridedRows(fused, 0, 1, pairs), labels)
	}
	if s.mlm {
		s.masked(layout.StridedRows(fused, pairs, 1, tg.maskRows))
	}
}

// placesInput is an input of M places.
func (s *builder) placesInput(name string) *encoders.Places {
	return &encoders.Places{Rows: s.ints(name+" places", s.tg.maskRows), Sequences: s.ints(name+" texts", s.tg.maskRows)}
}

// matching adds the loss of image-text matching for the first tokens (3B, D) of its
// fused pairs.
func (s *builder) matching(pairs, labels *gorgonia.Node) {
	logits := encoders.Classifier{Classes: 2}.Forward(s.on.In("itm_head"), pairs, 1) // (3B, 2)
	s.add("itm", s.m.cfg.Objective.ITM.Weight, objectives.Matching(logits, labels))
	s.tg.parts = append(s.tg.parts, namedNode{"itm_accuracy", contrast.Accuracy(logits, labels), true})
}

// masked adds the loss of masked language modelling for the fused states at the masked
// places (M, D).
func (s *builder) masked(fused *gorgonia.Node) {
	tg, bert := s.tg, s.m.bert
	tg.labels = s.ints("mask labels", tg.maskRows)
	logits := bert.MLMHead(s.on.In("text"), fused) // (M, V)
	var teacher, alpha *gorgonia.Node
	if s.softMLM {
		alpha = tg.alpha
		tg.teacherPlaces = s.placesInput("teacher mask")
		x := bert.Fusion(s.teacher, s.mom.In("text"), s.momentum.masked, tg.masked.lengths, s.momentum.imageTokens,
			encoders.Pairs{}, tg.teacherPlaces, s.l, s.t) // (M, D)
		teacher = bert.MLMHead(s.mom.In("text"), x) // (M, V)
	}
	s.add("mlm", s.m.cfg.Objective.MLM.Weight, objectives.MaskedLM(logits, teacher, tg.labels, alpha))
}

// fixedInts is an int32 input that never changes.
func (s *builder) fixedInts(name string, values []int32) *gorgonia.Node {
	n := s.ints(name, len(values))
	s.fixed[n] = values
	return n
}

// iota32 returns n integers from start on, step apart.
func iota32(start, n, step int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(start + i*step)
	}
	return out
}
