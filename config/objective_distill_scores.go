package config

import "fmt"

// DistillScores is distillation from a frozen teacher (GSSF, section III-B): the scores that another model, a run of its own,
// gives the pairs of a batch are targets of the scores of this one, row by row and column by column.
type DistillScores struct {
	Teacher     string  `toml:"teacher"`                                              // checkpoint or run folder of the frozen model, which reads images and texts as this run makes them; empty: off
	Weight      float64 `toml:"weight" read:"score teacher" max:"1000000"`            // of the loss in the total
	Temperature float64 `toml:"temperature" read:"score teacher" max:"1000000"`       // by which the scores of both are divided before their softmax
	Metric      string  `toml:"metric" read:"score teacher" fixed:"run"`              // learned metric of the teacher's features, trained with the student: empty (none) | diag | block_diag | dense
	Blocks      int     `toml:"blocks" read:"teacher blocks" fixed:"run" max:"65536"` // of metric block_diag, a divisor of the teacher's channels; 0: of 16 channels each
}

func (d *DistillScores) defaults() { *d = DistillScores{Weight: 1, Temperature: 1} }

func (d *DistillScores) check(k *checker, c *Config) {
	const path = "objective.distill_scores."
	k.OneOfOrEmpty(path+"metric", "diag", "block_diag", "dense")
	k.NotNegative(path + "blocks")
	k.Positive(path+"weight", path+"temperature")
	if d.Teacher == "" {
		return
	}
	k.Require(path+"teacher", c.Model.traits().captions && !c.Model.Fitted(), "must be empty", c.Model.named()+" has no scores of pairs in a batch")
	k.Training("train.accumulate", !c.AccumulatesFeatures(), `must be "gradients" with objective.distill_scores.teacher`, "the teacher scores the pairs of one micro-batch")
	k.Training("data.cache_features", !c.Data.CacheFeatures, "must be false with objective.distill_scores.teacher", "the teacher reads images and texts")
}

// TeacherBlocks returns the blocks of the metric of a teacher of so many channels, 0 where they do not fit.
func (d DistillScores) TeacherBlocks(dim int) (int, error) {
	n := d.Blocks
	if n == 0 {
		n = max(1, dim/16)
	}
	if dim%n != 0 {
		return 0, Errors{{Path: "objective.distill_scores.blocks", Value: d.Blocks, Msg: fmt.Sprintf("must divide the %d channels of the teacher", dim), Hint: "choose a divisor: the blocks have one size"}}
	}
	return n, nil
}
