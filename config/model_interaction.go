package config

import (
	"cmp"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// Interaction compares an image and a text by all their tokens, in the place of one feature of
// each: every patch, word or region looks for the nearest one of the other side, or by cross
// attention at all of them. Losses within
// the batch and evaluation read its scores; there is no vector of an image or a text then, so
// nothing is embedded or searched.
type Interaction struct {
	Kind        string `toml:"kind" fixed:"model"`                               // empty (features are compared) | max_ave (the mean of the tokens' largest products, FILIP) | max_sum (their sum, TERAN) | max_soft (their mean under learned weights, WTI) | scan (cosines with attended contexts, SCAN) | bfan (the same by focal attention, BFAN) | sgr (vectors of similarity with attended contexts, reasoning over their graph, SGR of SGRAF) | saf (the same vectors under gates, SAF of SGRAF) | imram (the same in steps, with queries that a memory unit refines, IMRAM) | naaf (words against what they match, and against a boundary below which they are mismatched, NAAF)
	Direction   string `toml:"direction" read:"interaction" fixed:"model"`       // whose tokens the mean or sum is over: empty (that of kind: text_to_image of max_sum and scan, and of naaf, sgr and saf, which have no other, else both) | both (half of either, of bfan and imram their sum) | image_to_text (the patches or regions) | text_to_image (the words)
	ClassTokens bool   `toml:"class_tokens" read:"interaction" fixed:"model"`    // class tokens and what stands around a text, such as [CLS], take part like patches and words
	Hidden      int    `toml:"hidden" read:"max_soft" fixed:"model" max:"65536"` // of max_soft: width of the hidden layer that gives a token its weight; 0: model.head.dim

	AttentionScale float64 `toml:"attention_scale" read:"cross attention" fixed:"model"` // of kinds of cross attention: attention is the softmax of this times the normalised products; 0: that of the kind, 9 from text to image and 4 the other way, 9 of imram, 20 of bfan and naaf
	Pool           string  `toml:"pool" read:"pooled" fixed:"model"`                     // of scan, bfan and imram, what the score is of the cosines of the tokens: empty (lse of scan, mean of the others) | lse (the logarithm of the sum of their exponentials) | mean
	LSEScale       float64 `toml:"lse_scale" read:"lse" fixed:"model"`                   // of pool lse: cosines are multiplied by this before the exponential; 0: 6 from text to image, 5 the other way
	Metric         string  `toml:"metric" read:"cross metric" fixed:"model"`             // of kinds of cross attention with objective.itc.score = "gssf", where the learned metric is: similarity (where a token is compared with its context, and of sgr and saf where the wholes are) | attention (in the products that attention reads) | both (each with weights of its own)

	Steps       int     `toml:"steps" read:"stepped" fixed:"model" max:"128"`                // of sgr: steps of reasoning; of imram: steps whose scores are added up
	SimDim      int     `toml:"sim_dim" read:"similarity vectors" fixed:"model" max:"65536"` // of sgr and saf: channels of a vector of similarity
	Dropout     float64 `toml:"dropout" read:"similarity vectors"`                           // of sgr and saf: of what the pools of whole images and texts weigh tokens by, 0.4 in SGRAF
	UnitQueries bool    `toml:"unit_queries" read:"memory" fixed:"model"`                    // of imram: refined queries are brought to unit length
	Penalty     float64 `toml:"penalty" read:"mismatch" max:"1000"`                          // of naaf: how many times as bad it is to take a mismatched word for a matched one as the other way, where the boundary between both is learned
}

// Kinds and directions of interactions.
const (
	InteractionMaxAve  = "max_ave"
	InteractionMaxSum  = "max_sum"
	InteractionMaxSoft = "max_soft"
	InteractionSCAN    = "scan"
	InteractionBFAN    = "bfan"
	InteractionSGR     = "sgr"
	InteractionSAF     = "saf"
	InteractionIMRAM   = "imram"
	InteractionNAAF    = "naaf"

	DirectionBoth        = "both"
	DirectionImageToText = "image_to_text"
	DirectionTextToImage = "text_to_image"

	PoolLSE  = "lse"
	PoolMean = "mean"

	MetricSimilarity = "similarity"
	MetricAttention  = "attention"
	MetricBoth       = "both"
)

func (i *Interaction) defaults() {
	*i = Interaction{Metric: MetricSimilarity, SimDim: 256, Steps: 3, Dropout: 0.4, Penalty: 2}
}

// Way returns the direction, that of the kind where none is given.
func (i Interaction) Way() string {
	switch {
	case i.Direction != "":
		return i.Direction
	case i.Kind == InteractionMaxSum, i.Kind == InteractionSCAN, i.MakesVectors(), i.Mismatches():
		return DirectionTextToImage
	}
	return DirectionBoth
}

// CrossAttends says whether the kind is one of cross attention.
func (i Interaction) CrossAttends() bool {
	return i.pools() || i.Mismatches() || i.MakesVectors()
}

// pools says whether the kind is one of cross attention whose score is a pool of cosines.
func (i Interaction) pools() bool {
	return i.Kind == InteractionSCAN || i.Kind == InteractionBFAN || i.Recurrent()
}

// Mismatches says whether words below a boundary count against an image.
func (i Interaction) Mismatches() bool { return i.Kind == InteractionNAAF }

// Recurrent says whether the kind is cross attention in steps.
func (i Interaction) Recurrent() bool { return i.Kind == InteractionIMRAM }

// Stepped says whether the kind works in steps.
func (i Interaction) Stepped() bool { return i.Recurrent() || i.Kind == InteractionSGR }

// HasMemory says whether a memory unit refines queries from step to step.
func (i Interaction) HasMemory() bool { return i.Recurrent() && i.Steps > 1 }

// MakesVectors says whether cross attention ends in vectors of similarity.
func (i Interaction) MakesVectors() bool {
	return i.Kind == InteractionSGR || i.Kind == InteractionSAF
}

// Attention returns the scale of the attention of one direction, and that of its pool, 0 of the
// mean.
func (i Interaction) Attention(direction string) (scale, pool float64) {
	scale, pool = 9, 6
	if direction == DirectionImageToText {
		scale, pool = 4, 5
	}
	switch i.Kind {
	case InteractionBFAN, InteractionNAAF:
		scale = 20
	case InteractionIMRAM:
		scale = 9
	}
	if !i.poolsLSE() {
		return cmp.Or(i.AttentionScale, scale), 0
	}
	return cmp.Or(i.AttentionScale, scale), cmp.Or(i.LSEScale, pool)
}

func (i Interaction) poolsLSE() bool {
	return i.Pool == PoolLSE || i.Pool == "" && i.Kind == InteractionSCAN
}

// Interacts says whether images and texts are compared by their tokens.
func (m Model) Interacts() bool { return m.Interaction.Kind != "" }

func (i *Interaction) check(k *checker, c *Config) {
	const path = "model.interaction.kind"
	k.OneOfOrEmpty(path, InteractionMaxAve, InteractionMaxSum, InteractionMaxSoft, InteractionSCAN, InteractionBFAN, InteractionIMRAM, InteractionNAAF, InteractionSGR, InteractionSAF)
	k.OneOfOrEmpty("model.interaction.direction", DirectionBoth, DirectionImageToText, DirectionTextToImage)
	k.OneOfOrEmpty("model.interaction.pool", PoolLSE, PoolMean)
	k.OneOf("model.interaction.metric", MetricSimilarity, MetricAttention, MetricBoth)
	k.NotNegative("model.interaction.hidden", "model.interaction.sim_dim", "model.interaction.steps", "model.interaction.penalty")
	k.BelowOne("model.interaction.dropout")
	if i.Stepped() {
		k.Positive("model.interaction.steps")
	}
	k.Require("model.interaction.penalty", i.Penalty > 0 || !i.Mismatches(), "must be > 0")
	k.Require("model.interaction.direction", !i.Mismatches() || i.Way() == DirectionTextToImage, `must be "text_to_image" or empty with model.interaction.kind = "naaf"`, "it is words that are matched or not")
	for _, path := range []string{"model.interaction.attention_scale", "model.interaction.lse_scale"} {
		v := k.Number(path)
		k.Require(path, v == 0 || v >= 1e-3 && v <= 1e4, "must be 0 or between 0.001 and 10000")
	}
	if i.Kind == "" {
		return
	}
	k.Require(path, c.Model.traits().interacts, "must be empty", c.Model.named()+` compares features: use "clip" or "matching"`)
	if i.MakesVectors() {
		k.Positive("model.interaction.sim_dim")
		k.Require("model.interaction.direction", i.Way() == DirectionTextToImage, `must be "text_to_image" or empty`, "a vector of similarity belongs to a word")
	}
	k.Require("model.head.topology", c.Model.Head.Topology == "sphere", `must be "sphere" with model.interaction`, "tokens are unit vectors of one sphere")
	k.Training("momentum.enabled", !c.Momentum.Enabled, "must be false with model.interaction", "a teacher and a queue hold one feature of each image and text")
	for _, l := range c.on(section.Vectors) {
		k.Training(l.key(), false, "must be 0 with model.interaction", "it compares features: use objective.itc.in_batch_weight, objective.siglip, objective.hinge, objective.poly or objective.cmpm")
	}
	terms := c.PairTerms()
	k.Require(c.Objective.ITC.ScorePath(), len(terms) == 1 && slices.Contains([]scoring.Kind{scoring.Cosine, scoring.GSSF}, terms[0].Kind) && terms[0].Weight == 1,
		"must be cosine or gssf with model.interaction", "that is how two tokens are compared")
	k.Require("eval.beside", !slices.Contains(c.Eval.Beside, "zeroshot"), "must not have zeroshot with model.interaction", "it compares features")
	k.Require("eval.score", c.Eval.Score == "train", `must be "train" with model.interaction`, "evaluation compares tokens as training does")
	k.Training("train.accumulate", !c.AccumulatesFeatures(), `must be "gradients" with model.interaction`, "features are all that is kept of other micro-batches")
	k.Training("model.image.keep_patches", !c.Model.Image.LeavesPatchesOut(), "must be 1 with model.interaction", "all patches are compared")
}
