package config

import (
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/tasks/all"
	"github.com/geoalign/geoalign/tasks/captioning"
	"github.com/geoalign/geoalign/tasks/grounding"
	"github.com/geoalign/geoalign/tasks/probe"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/tasks/sentiment"
	"github.com/geoalign/geoalign/tasks/vqa"
	"github.com/geoalign/geoalign/tasks/zeroshot"
)

// Values of eval.ties.
const (
	TiesWorst = "worst"
	TiesMean  = "mean"
)

// Values of eval.rerank_score.
const (
	RerankMatch = "match"
	RerankSum   = "sum"
)

// Eval is retrieval evaluation, linear probes and zero-shot classification.
type Eval struct {
	// val | test
	Split string `toml:"split"`
	// images that are encoded at once; of captions up to 16 times as many, in the order of their length
	BatchSize int `toml:"batch_size" max:"65536"`
	// train (the score of training, without the geodesic, which needs the queue) | cosine | inner | l2 | angle | gssf
	Score string `toml:"score" when:"searched"`
	// candidates re-scored by ITM; 0: cosine only
	RerankTop int `toml:"rerank_top" max:"65536"`
	// score of re-ranking: match (the logit of match, as ALBEF) | sum (log-odds of the matching head plus the pair score /
	// temperature, as its hard negatives were drawn by the softmax of these)
	RerankScore string `toml:"rerank_score" when:"eval.rerank_top>0"`
	// size of the gallery, or samples of a downstream task; 0: all of the split
	MaxImages int `toml:"max_images" max:"1000000000"`
	// of equal scores in retrieval: worst (a wrong candidate counts as before the right one) | mean (the mean over all
	// orders of what ties)
	Ties string `toml:"ties" when:"captions"`
	// 5: the COCO 1K protocol (mean over five folds); 0 or 1: one gallery
	Folds int `toml:"folds" when:"captions" max:"1000"`

	// further tasks of every evaluation of a training run: probe, zeroshot, sentences, sentiment; they do not decide
	// which checkpoints are kept, unless train.keep_best_by names a number of theirs
	Beside []string `toml:"beside" when:"words"`

	probe.Eval
	ZeroShot  zeroshot.Eval   `toml:"zeroshot" when:"captions and model.interaction.kind="`
	TextProbe probe.EvalTexts `toml:"textprobe" when:"words"`
	Sentences sentences.Eval  `toml:"sentences" when:"words"`
	Sentiment sentiment.Eval  `toml:"sentiment" when:"words"`

	Grounding  grounding.Eval  `toml:"grounding" when:"captions and images and model.interaction.kind= and model.image.style!=regions|resnet|convnet"`
	VQA        vqa.Eval        `toml:"vqa" when:"data.kind=vqa"`
	Captioning captioning.Eval `toml:"captioning" when:"objective.captioning.weight>0 and objective.captioning.decoder=transformer"`
}

// Defaults implements section.Defaulter.
func (e *Eval) Defaults() {
	*e = Eval{Split: "val", BatchSize: 64, Score: "train", RerankScore: RerankMatch, Ties: TiesWorst}
	e.Eval.Defaults()
}

// Check implements section.Checked.
func (e *Eval) Check(k *section.Checker) {
	c := section.Of[Config](k)
	k.OneOf("split", "val", "test")
	k.OneOf("ties", TiesWorst, TiesMean)
	k.Positive("batch_size")
	k.OneOf("score", append([]string{"train"}, objectives.ScoreKinds[:len(objectives.ScoreKinds)-1]...)...)
	if e.Score == string(scoring.GSSF) && !k.Has(section.Metric) {
		k.Require("score", false, "needs a metric that is trained", c.trainMetric())
	}
	k.OneOf("rerank_score", RerankMatch, RerankSum)
	k.Require("rerank_score", e.RerankScore != RerankSum || e.Score == "train", `must be "match" when eval.score is "`+
		e.Score+`"`, "the temperature is that of the score of training")
	k.NotNegative("rerank_top", "max_images", "folds")
	for i, task := range e.Beside {
		k.Require("beside", slices.Contains(all.Beside(), task),
			"must be some of "+strings.Join(all.Beside(), ", "))
		k.Require("beside", !slices.Contains(e.Beside[:i], task), "must name a task once")
		k.Training("beside", task != "sentences" || len(e.Sentences.Tasks) > 0, `must not have "sentences"`,
			"eval.sentences.tasks names no task")
		k.Training("beside", task != "sentiment" || e.Sentiment.Train != "", `must not have "sentiment"`,
			"eval.sentiment.train names no file")
	}
	k.Require("beside", len(e.Beside) == 0 || !k.Has(section.Sentences), "must be empty",
		k.Named()+" has no images")
	e.Eval.Check(k)
	k.Require("rerank_top", e.RerankTop == 0 || c.Objective.ITM.On() && !k.Has(section.Fitted),
		"must be 0 when objective.itm.weight is 0", "re-ranking uses the matching head, which is not trained")
}
