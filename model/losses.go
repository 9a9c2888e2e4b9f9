package model

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
)

// newLosses is the list of the losses of a configuration, in the order in which they are
// built and added up. A loss of weight 0 is not in it. Contrasts stand before what draws
// negatives by their logits: those of the first contrast are Step.Similarities.
func newLosses(cfg config.Config, o Options) []objectives.Loss {
	var list []objectives.Loss
	obj := cfg.Objective
	if obj.ITC.Weight > 0 {
		list = append(list, newContrast(cfg))
	}
	if w := obj.ITC.InBatchWeight; w > 0 {
		list = append(list, objectives.InBatch{Weight: w})
	}
	if c := obj.ADCL; c.Weight > 0 {
		list = append(list, objectives.QueueContrast{Weight: c.Weight, Temperature: c.Temperature})
		if fusion := newPairFusion(c); fusion != nil {
			list = append(list, objectives.FusedContrast{Weight: c.Weight, Temperature: c.FusionTemperature, Fusion: fusion, Name: "adcl/" + c.Fusion})
		}
	}
	for _, l := range []objectives.Settings{&obj.SigLIP, &obj.Hinge} {
		if l.On() {
			list = append(list, l)
		}
	}
	if c := obj.Triplet; c.Weight > 0 {
		list = append(list, objectives.Triplet{Weight: c.Weight, Margin: c.Margin, Soft: c.Soft, Hardest: c.Negatives == "hardest"})
	}
	if c := obj.Softmax; c.Weight > 0 {
		list = append(list, objectives.Softmax{Weight: c.Weight, Classes: c.Classes, Smoothing: c.Smoothing})
	}
	if c := obj.Poly; c.Weight > 0 {
		list = append(list, objectives.Poly{Weight: c.Weight, Margin: c.Margin})
	}
	if c := obj.CMPM; c.Weight > 0 {
		list = append(list, objectives.CMPM{Weight: c.Weight, Scale: c.Scale})
	}
	if c := obj.SimCSE; c.Weight > 0 {
		list = append(list, newSimCSE(cfg))
	}
	if c := obj.MCSE; c.Weight > 0 {
		list = append(list, objectives.MCSE{Weight: c.Weight, Temperature: c.Temperature, Mixed: cfg.MixesSentences()})
	}
	if obj.SentencePairs.Weight > 0 {
		list = append(list, newSentencePairs(cfg))
	}
	if obj.Classes.Weight > 0 {
		list = append(list, newClasses(cfg, o))
	}
	if c := obj.KLOT; c.Weight > 0 {
		list = append(list, objectives.KLOT{Weight: c.Weight, Reference: o.Reference, Epsilon: c.Epsilon, TargetEpsilon: c.Target(),
			Iterations: c.Iterations, Rows: c.Rows, ImagePool: o.ImagePool, TextPool: o.TextPool})
	}
	if c := obj.Structure; c.Weight > 0 {
		list = append(list, objectives.Structure{Weight: c.Weight, Image: c.Modalities != "text", Text: c.Modalities != "image",
			Hops: c.Hops, Temperature: c.Temperature, TargetTemperature: c.Target(), Warmup: c.WarmupSteps})
	}
	if c := obj.WordPatch; c.Weight > 0 {
		list = append(list, objectives.WordPatch{Weight: c.Weight, Temperature: c.Temperature, ContextTemperature: c.ContextTemperature, Scale: c.AttentionScale, Sum: c.Reduce == "sum"})
	}
	if c := obj.TokenImage; c.Weight > 0 {
		list = append(list, objectives.TokenImage{Weight: c.Weight, Margin: c.Margin, Half: c.Negatives == "half"})
	}
	if c := obj.TextSwap; c.Weight > 0 {
		list = append(list, objectives.TextSwap{Weight: c.Weight, Margin: c.Margin, Alpha: c.Alpha, Prob: c.Probability, Batch: c.Attention == "batch", Recompute: c.Recompute, Images: c.Images})
	}
	if obj.VQA.Weight > 0 {
		list = append(list, newVQA(cfg, o))
	}
	switch c := obj.Captioning; {
	case c.Weight == 0:
	case c.Decoder == config.CaptionTransformer:
		list = append(list, newCaptioning(cfg, o))
	default:
		list = append(list, objectives.Captioning{Weight: c.Weight, Len: cfg.Data.Tokens, Tokens: c.Tokens,
			Decoder: encoders.CaptionDecoder{Vocab: o.Vocab, Width: c.Width, Embedding: c.Embedding, Dropout: c.Dropout}})
	}
	if fused := newFused(cfg, o); len(fused) > 0 {
		list = append(list, fused)
	}
	switch g := obj.Geometric; {
	case cfg.GeometricPool():
		list = append(list, newGeometricPool(g, o))
	case cfg.GeometricQueue():
		list = append(list, objectives.Geometric{
			Weight: g.Weight, Image: g.Images(), Text: g.Texts(),
			Near: g.Near(), Neighbours: g.Neighbours, Sampling: g.Sampling, Clusters: g.Search == "clusters",
			Kernel: g.Kernel, Epsilon: g.Epsilon, Scale: g.Scale,
		})
	}
	return list
}

// newPairFusion is the fusion of the pairs that are contrasted, nil without.
func newPairFusion(c config.ADCL) objectives.PairFusion {
	switch c.Fusion {
	case config.FusionTucker:
		return encoders.Tucker{Dim: c.Dim, Rank: c.Rank, Tanh: c.Tanh, Dropout: c.Dropout}
	case config.FusionAttention:
		return encoders.PairAttention{Dim: c.Dim, Dropout: c.Dropout}
	}
	return nil
}

// newGeometricPool is the geometric term over the pools of stored features.
func newGeometricPool(g config.Geometric, o Options) objectives.Loss {
	l := objectives.GeometricPool{Weight: g.Weight, Neighbours: g.Neighbours, Kernel: g.Kernel, Epsilon: g.Epsilon, Scale: g.Scale, Chunk: g.Chunk}
	if g.Images() {
		objectives.Need(o.ImagePool != nil, "geometric", "needs the pool of image features: give it in Options.ImagePool")
		l.Image = o.ImagePool
	}
	if g.Texts() {
		objectives.Need(o.TextPool != nil, "geometric", "needs the pool of text features: give it in Options.TextPool")
		l.Text = o.TextPool
	}
	return l
}

// newSimCSE is the contrast of sentences.
func newSimCSE(cfg config.Config) objectives.Loss {
	c, d := cfg.Objective.SimCSE, cfg.Model.Text.Width
	l := objectives.SimCSE{Weight: c.Weight, Temperature: c.Temperature, Positives: cfg.HasPositives(), Negatives: cfg.HasNegatives(),
		HardNegativeWeight: c.HardNegativeWeight}
	switch sphere := (space.Space{Dim: d, Spheres: 1}); {
	case c.Head == config.SentenceHeadTraining:
		l.Head = encoders.TanhHead(sphere)
	case c.Head == config.SentenceHeadNone:
		l.Head = encoders.Projection{Space: sphere, Identity: true}
	}
	return l
}

// newContrast is the loss of objective.itc.weight, which each family of systems reads in
// its own way.
func newContrast(cfg config.Config) objectives.Loss {
	obj := cfg.Objective
	weight, score := obj.ITC.Weight, terms(obj.ScoreTerms())
	switch cfg.Model.System {
	case "moco":
		return objectives.MoCo{Weight: weight, Score: score}
	case "swav":
		w := obj.SwAV
		return &objectives.SwAV{Weight: weight, Score: score, Prototypes: w.Prototypes, Epsilon: w.Epsilon,
			Iterations: w.Iterations, FreezeSteps: w.FreezeSteps}
	}
	t := obj.TCL
	return objectives.ITC{
		Weight: weight, Score: score, Target: terms(obj.TargetTerms()), Weigh: obj.Geodesic.Weigh,
		TCL: objectives.TCL{Intra: t.Intra, Local: t.Local, Grid: t.Grid},
	}
}

// newFused are the losses over fused pairs.
func newFused(cfg config.Config, o Options) (list objectives.Fusing) {
	if c := cfg.Objective.ITM; c.Weight > 0 {
		list = append(list, &objectives.ITM{Weight: c.Weight, Floor: c.NegativeFloor})
	}
	if c := cfg.Objective.MLM; c.Weight > 0 {
		list = append(list, &objectives.MLM{Weight: c.Weight, Masker: objectives.Masker{Prob: c.Prob, Vocab: o.Vocab, MaskID: o.MaskID, Specials: o.Specials}})
	}
	if c := cfg.Objective.Entailment; c.Weight > 0 {
		list = append(list, newEntailment(cfg))
	}
	if cfg.Objective.NLVR.Weight > 0 {
		list = append(list, newNLVR(cfg))
	}
	if w := cfg.Objective.Assignment.Weight; w > 0 {
		list = append(list, &objectives.Assignment{Weight: w})
	}
	return list
}

// terms are those of a configuration.
func terms(list []config.ScoreTerm) (t objectives.Terms) {
	for _, x := range list {
		t = append(t, objectives.WeightedKind{Kind: scoring.Kind(x.Kind), Weight: x.Weight})
	}
	return t
}

// newClasses is the loss over classes of images.
func newClasses(cfg config.Config, o Options) objectives.Classes {
	c, size := cfg.Objective.Classes, cfg.Model.Image.Size
	return objectives.Classes{
		Weight: c.Weight, Smoothing: c.Smoothing, Mix: objectives.Mix{Mixup: c.Mixup, Cutmix: c.Cutmix},
		Head:   encoders.ClassHead{Classes: len(o.Classes), Norm: c.Norm},
		Images: batch.Column{Name: batch.Images, Shape: []int{3, size, size}},
	}
}

// newSentencePairs is the loss over pairs of sentences.
func newSentencePairs(cfg config.Config) objectives.SentencePairs {
	c, task := cfg.Objective.SentencePairs, cfg.Data.SentencePairs.Of()
	l := objectives.SentencePairs{Weight: c.Weight, Joint: cfg.JointPairs(), Head: encoders.PairHead{Classes: len(task.Classes), Dropout: c.Dropout}}
	l.Low, l.High = task.Low, task.High
	return l
}

// newEntailment is the loss of visual entailment.
func newEntailment(cfg config.Config) objectives.Entailment {
	return objectives.Entailment{Weight: cfg.Objective.Entailment.Weight, Head: encoders.TaskHead{Classes: config.EntailmentClasses}}
}

// newNLVR is the loss of statements about two pictures.
func newNLVR(cfg config.Config) objectives.NLVR {
	return objectives.NLVR{Weight: cfg.Objective.NLVR.Weight, Head: encoders.TaskHead{Classes: 2}, Size: cfg.Model.Image.Size}
}

// newDecoder is the decoder of a configuration: its fusion layers with words, positions and a head of their own. It has no
// learned metric and is not tuned.
func newDecoder(cfg config.Config, o Options) encoders.Decoder {
	b, ok := textEncoder(cfg.Model, o, space.Space{Dim: cfg.Model.Head.Dim, Spheres: 1}).(encoders.BERT)
	objectives.Need(ok && b.FusionLayers > 0, "decoder", "has the structure of fusion layers: set model.text.fusion_layers > 0, with a model.text.style of bert or roberta")
	b.Layers, b.Classes, b.TokenBlocks, b.FinalNorm = 0, 0, 0, false
	b.Metric, b.FusionMetric = encoders.AttentionMetric{}, encoders.AttentionMetric{}
	return encoders.Decoder{BERT: b}
}

// newVQA is the loss of answers.
func newVQA(cfg config.Config, o Options) objectives.VQA {
	c := cfg.Objective.VQA
	return objectives.VQA{Weight: c.Weight, Decoder: newDecoder(cfg, o), Answers: c.Answers, Len: c.Tokens, Rows: c.Rows}
}

// newCaptioning is the loss of captions that the decoder writes.
func newCaptioning(cfg config.Config, o Options) objectives.Loss {
	c := cfg.Objective.Captioning
	l := objectives.CaptioningByDecoder{Weight: c.Weight, Decoder: newDecoder(cfg, o), Len: cfg.Data.Tokens, Tokens: c.Tokens, Last: o.EndID}
	if o.End > 0 {
		l.Last = -1
	}
	return l
}
