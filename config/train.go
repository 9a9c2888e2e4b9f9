package config

// Train is the loop. Exactly one of the max_* durations must be set.
type Train struct {
	BatchSize        int     `toml:"batch_size" max:"65536"`                                // pairs of a micro-batch
	AccumulateSteps  int     `toml:"accumulate_steps" max:"65536"`                          // micro-batches per update
	MaxSteps         int     `toml:"max_steps" max:"1000000000"`                            // length of the run in updates
	MaxEpochs        float64 `toml:"max_epochs" max:"1000000000"`                           // length of the run in passes over the training data
	MaxSamples       int     `toml:"max_samples" max:"1000000000000000"`                    // length of the run in pairs
	MaxMinutes       float64 `toml:"max_minutes" max:"1000000000"`                          // length of the run in minutes of training
	LogEverySteps    int     `toml:"log_every_steps" max:"1000000000"`                      // steps between two lines of metrics.jsonl
	EvalEverySteps   int     `toml:"eval_every_steps" max:"1000000000"`                     // steps between two evaluations; 0: at the end only
	SaveEverySteps   int     `toml:"save_every_steps" change:"harmless" max:"1000000000"`   // steps between two checkpoints; 0: by minutes and at the end only
	SaveEveryMinutes float64 `toml:"save_every_minutes" change:"harmless" max:"1000000000"` // minutes between two checkpoints; 0: by steps and at the end only
	KeepLast         int     `toml:"keep_last" change:"harmless" max:"1000000000"`          // newest checkpoints kept; 0: all
	KeepBest         int     `toml:"keep_best" change:"harmless" max:"1000000000"`          // best checkpoints kept, by the mean of all recalls of the evaluations, or by the accuracy of the probe
	KeepBestBy       string  `toml:"keep_best_by" change:"harmless"`                        // better | first | rerank: whose recalls those are with eval.rerank_top > 0: of the pair score, of re-ranking, or at each evaluation of the one with the larger mean
	KeepEverySteps   int     `toml:"keep_every_steps" change:"harmless" max:"1000000000"`   // checkpoints at multiples of this step are kept for ever; 0: none
	OnNaN            string  `toml:"on_nan"`                                                // stop | skip | rollback: what to do when the loss or the gradient norm is not finite
}

func (t *Train) defaults() {
	*t = Train{BatchSize: 64, AccumulateSteps: 1, MaxEpochs: 30, LogEverySteps: 10,
		SaveEverySteps: 1000, SaveEveryMinutes: 15, KeepLast: 2, KeepBest: 1, KeepBestBy: KeepByBetter, OnNaN: "stop"}
}

// Values of train.keep_best_by.
const (
	KeepByBetter = "better"
	KeepByFirst  = "first"
	KeepByRerank = "rerank"
)

func (t *Train) check(k *checker, _ *Config) {
	k.positive("train.batch_size", "train.accumulate_steps", "train.log_every_steps")
	k.require("train.batch_size", t.BatchSize >= 2, "must be >= 2", "contrast and matching need another pair as a negative")
	k.notNegative("train.max_steps", "train.max_epochs", "train.max_samples", "train.max_minutes", "train.eval_every_steps",
		"train.save_every_steps", "train.save_every_minutes", "train.keep_last", "train.keep_best", "train.keep_every_steps")
	k.oneOf("train.keep_best_by", KeepByBetter, KeepByFirst, KeepByRerank)
	k.oneOf("train.on_nan", "stop", "skip", "rollback")
}
