package interact

import (
	"cmp"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
)

// Options compares an image and a text by all their tokens, instead of one feature of
// each: every patch, word or region looks for the nearest one of the other side, or by cross
// attention at all of them. Losses within
// the batch and evaluation read its scores; there is no vector of an image or a text then, so
// nothing is embedded or searched.
type Options struct {
	// empty (features are compared) | max_ave (the mean of the tokens' largest products, FILIP) | max_sum (their sum,
	// TERAN) | max_soft (their mean under learned weights, WTI) | scan (cosines with attended contexts, SCAN) | bfan
	// (the same by focal attention, BFAN) | sgr (vectors of similarity with attended contexts, reasoning over their
	// graph, SGR of SGRAF) | saf (the same vectors under gates, SAF of SGRAF) | imram (the same in steps, with queries
	// that a memory unit refines, IMRAM) | naaf (words against what they match, and against a boundary below which
	// they are mismatched, NAAF)
	Kind string `toml:"kind" fixed:"model"`
	// whose tokens the mean or sum is over: empty (that of kind: text_to_image of max_sum and scan, and of naaf, sgr
	// and saf, which have no other, else both) | both (half of either, of bfan and imram their sum) | image_to_text
	// (the patches or regions) | text_to_image (the words)
	Direction string `toml:"direction" when:"kind" fixed:"model"`
	// class tokens and what stands around a text, such as [CLS], take part like patches and words; in a file or by
	// --set, where it is not given, true of kinds of cross attention, as in their published code
	ClassTokens bool `toml:"class_tokens" when:"kind" fixed:"model"`
	// of max_soft: width of the hidden layer that gives a token its weight; 0: model.head.dim
	Hidden int `toml:"hidden" when:"kind=max_soft" fixed:"model" max:"65536"`

	// of kinds of cross attention: attention is the softmax of this times the normalised products; 0: that of the
	// kind, 9 from text to image and 4 the other way, 9 of imram, 20 of bfan and naaf
	AttentionScale float64 `toml:"attention_scale" when:"kind=scan|bfan|imram|naaf|sgr|saf" fixed:"model"`
	// of bfan, the mean above which a weight counts: empty (that of all weights of a token) | prob (weighted by the
	// square roots of the weights, BFAN-prob)
	Focus string `toml:"focus" when:"kind=bfan" fixed:"model"`
	// of scan, bfan and imram, what the score is of the cosines of the tokens: empty (lse of scan, mean of the others)
	// | lse (the logarithm of the sum of their exponentials) | mean
	Pool string `toml:"pool" when:"kind=scan|bfan|imram" fixed:"model"`
	// of pool lse: cosines are multiplied by this before the exponential; 0: 6 from text to image, 5 the other way
	LSEScale float64 `toml:"lse_scale" when:"kind=scan|bfan|imram and pool=lse or kind=scan and pool=" fixed:"model"`
	// of kinds of cross attention with objective.itc.score = "gssf", where the learned metric is: similarity (where a
	// token is compared with its context, and of sgr and saf where the wholes are) | attention (in the products that
	// attention reads) | both (each with weights of its own)
	Metric string `toml:"metric" when:"kind=scan|bfan|imram|naaf|sgr|saf and metric" fixed:"model"`

	// of sgr: steps of reasoning; of imram: steps whose scores are added up
	Steps int `toml:"steps" when:"kind=imram|sgr" fixed:"model" max:"128"`
	// of sgr and saf: channels of a vector of similarity
	SimDim int `toml:"sim_dim" when:"kind=sgr|saf" fixed:"model" max:"65536"`
	// of sgr and saf: of what the pools of whole images and texts weigh tokens by, 0.4 in SGRAF
	Dropout float64 `toml:"dropout" when:"kind=sgr|saf"`
	// of imram: refined queries are brought to unit length
	UnitQueries bool `toml:"unit_queries" when:"kind=imram and steps>1" fixed:"model"`
	// of naaf: how many times as bad it is to take a mismatched word for a matched one as the other way, where the
	// boundary between both is learned
	Penalty float64 `toml:"penalty" when:"kind=naaf" max:"1000"`
}

// Values of direction, focus, pool and metric.
const (
	DirectionBoth        = "both"
	DirectionImageToText = "image_to_text"
	DirectionTextToImage = "text_to_image"

	FocusProb = "prob"

	PoolLSE  = "lse"
	PoolMean = "mean"

	MetricSimilarity = "similarity"
	MetricAttention  = "attention"
	MetricBoth       = "both"
)

// NAAF is the kind whose boundary is learned from samples.
const NAAF = "naaf"

// kind is a way of comparing tokens.
type kind struct {
	name string
	// build returns the interaction of options whose direction is set, with a learned metric or the zero value.
	build func(o Options, metric encoders.Metric) encoders.Interaction
	words bool // without a direction the words of a text are compared, else both sides
	only  bool // they alone can be
	steps bool // it works in steps
}

// kinds are those of model.interaction.kind.
var kinds = []kind{
	{name: "max_ave", build: maxSim(Mean)},
	{name: "max_sum", build: maxSim(Sum), words: true},
	{name: "max_soft", build: maxSim(Soft)},
	{name: "scan", build: scan, words: true},
	{name: "bfan", build: bfan},
	{name: "imram", build: imram, steps: true},
	{name: NAAF, build: naaf, words: true, only: true},
	{name: "sgr", build: sgr, words: true, only: true, steps: true},
	{name: "saf", build: saf, words: true, only: true},
}

// kind returns that of the options, the zero value where features are compared.
func (o Options) kind() kind {
	if i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == o.Kind }); i >= 0 {
		return kinds[i]
	}
	return kind{}
}

// Defaults implements section.Defaulter.
func (o *Options) Defaults() {
	*o = Options{Metric: MetricSimilarity, SimDim: 256, Steps: 3, Dropout: 0.4, Penalty: 2}
}

// Gives implements section.Giver.
func (o *Options) Gives() []section.Fact {
	switch {
	case o.Kind == "":
		return []section.Fact{section.Features}
	case o.vectors() && o.Dropout > 0:
		return []section.Fact{section.TokenScores, section.TowerDropout}
	}
	return []section.Fact{section.TokenScores}
}

// Check implements section.Checked.
func (o *Options) Check(k *section.Checker) {
	var names []string
	for _, x := range kinds {
		names = append(names, x.name)
	}
	k.OneOfOrEmpty("kind", names...)
	k.OneOfOrEmpty("direction", DirectionBoth, DirectionImageToText, DirectionTextToImage)
	k.OneOfOrEmpty("focus", FocusProb)
	k.OneOfOrEmpty("pool", PoolLSE, PoolMean)
	k.OneOf("metric", MetricSimilarity, MetricAttention, MetricBoth)
	k.NotNegative("hidden", "sim_dim", "steps", "penalty")
	k.BelowOne("dropout")
	x := o.kind()
	if x.steps {
		k.Positive("steps")
	}
	k.Require("penalty", o.Penalty > 0 || o.Kind != NAAF, "must be > 0")
	if x.only {
		k.Require("direction", o.Way() == DirectionTextToImage,
			`must be "text_to_image" or empty with model.interaction.kind = "`+o.Kind+`"`,
			"it is words that are compared with an image")
	}
	for _, key := range []string{"attention_scale", "lse_scale"} {
		v := k.Number(key)
		k.Require(key, v == 0 || v >= 1e-3 && v <= 1e4, "must be 0 or between 0.001 and 10000")
	}
	if o.Kind == "" {
		return
	}
	k.Require("kind", k.Has(section.Interacts), "must be empty",
		k.Named()+` compares features: use "clip" or "matching"`)
	if o.vectors() {
		k.Positive("sim_dim")
	}
	k.Require("model.head.topology", section.Of[encoders.HeadOptions](k).Topology == "sphere",
		`must be "sphere" with model.interaction`,
		"tokens are unit vectors of one sphere")
	k.Training("momentum.enabled", k.Value("momentum.enabled") == false, "must be false with model.interaction",
		"a teacher and a queue hold one feature of each image and text")
	k.Require("eval.beside", !slices.Contains(k.Value("eval.beside").([]string), "zeroshot"),
		"must not have zeroshot with model.interaction", "it compares features")
	k.Require("eval.score", k.Value("eval.score") == "train", `must be "train" with model.interaction`,
		"evaluation compares tokens as training does")
	k.Training("train.accumulate", !k.Has(section.FeatureBatches), `must be "gradients" with model.interaction`,
		"features are all that is kept of other micro-batches")
	k.Training("model.image.keep_patches", !section.Of[encoders.ImageOptions](k).LeavesPatchesOut(),
		"must be 1 with model.interaction", "all patches are compared")
}

// Interaction returns the interaction of the kind in a space of so many channels, with a learned metric or the zero
// value; nil where features are compared.
func (o Options) Interaction(dim int, metric encoders.Metric) encoders.Interaction {
	x := o.kind()
	if x.build == nil {
		return nil
	}
	o.Direction, o.Hidden = o.Way(), cmp.Or(o.Hidden, dim)
	return x.build(o, metric)
}

// Way returns the direction, that of the kind where none is given.
func (o Options) Way() string {
	if o.Direction == "" && o.kind().words {
		return DirectionTextToImage
	}
	return cmp.Or(o.Direction, DirectionBoth)
}

// sites are the metrics of the products that attention reads, and of what is compared with its context.
func (o Options) sites(metric encoders.Metric) (attention, similarity encoders.Metric) {
	if o.Metric != MetricAttention {
		similarity = metric
	}
	if o.Metric != MetricSimilarity {
		attention = metric
	}
	return attention, similarity
}

// attention returns that of a direction, nil where it takes no part. The scale of the kind and the pool that it has
// where none is given are those for 0 and empty.
func (o Options) attention(direction string, scale float64, pool string) *Attention {
	if o.Direction != DirectionBoth && o.Direction != direction {
		return nil
	}
	a := &Attention{Scale: float32(cmp.Or(o.AttentionScale, scale))}
	if cmp.Or(o.Pool, pool) == PoolLSE {
		of := map[string]float64{DirectionImageToText: 5, DirectionTextToImage: 6}
		a.Pool = float32(cmp.Or(o.LSEScale, of[direction]))
	}
	return a
}

// Attends says whether the kind is one of cross attention, whose published code compares the start and the end of a text too.
func (o Options) Attends() bool { return o.Kind != "" && !strings.HasPrefix(o.Kind, "max_") }

// vectors says whether the kind ends in vectors of similarity.
func (o Options) vectors() bool { return o.Kind == "sgr" || o.Kind == "saf" }

// Weights counts the weights of the matrices of the interaction in a space of so many channels.
func (o Options) Weights(dim int) int64 {
	switch x := o.Interaction(dim, encoders.Metric{}).(type) {
	case Vectors:
		c, s := int64(dim), int64(x.Dim)
		return 4*c*c + 2*c*s + 3*int64(x.Steps)*s*s // of two pools, of words and of wholes
	case Recurrent:
		if x.Steps < 2 { // without memory units
			return 0
		}
		n := int64(1)
		if x.ImageToText != nil && x.TextToImage != nil {
			n = 2
		}
		return n * 4 * int64(dim) * int64(dim)
	}
	return 0
}
