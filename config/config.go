// Package config holds the configuration of a run as plain structs: what a TOML
// file can say, with the defaults. It imports nothing of the project.
package config

// Config is a whole run.
type Config struct {
	Run       Run       `toml:"run"`
	Data      Data      `toml:"data"`
	Model     Model     `toml:"model"`
	Momentum  Momentum  `toml:"momentum"`
	Queue     Queue     `toml:"queue"`
	Objective Objective `toml:"objective"`
	Optimizer Optimizer `toml:"optimizer"`
	Schedule  Schedule  `toml:"schedule"`
	Train     Train     `toml:"train"`
	Eval      Eval      `toml:"eval"`
	Compute   Compute   `toml:"compute"`
	Init      Init      `toml:"init"`
}

// Run names a run and seeds it.
type Run struct {
	Name string `toml:"name"` // name of the run, used for the default output folder
	Out  string `toml:"out"`  // run folder; empty: runs/<name>
	Seed uint64 `toml:"seed"` // seed of every random number of the run
}

// Data selects the training and evaluation data.
type Data struct {
	Kind string `toml:"kind"` // scenes | captions | karpathy
	Root string `toml:"root"` // folder that relative paths start from

	// Files of kind captions (JSON lists of {image, caption, image_id}).
	TrainFiles []string `toml:"train_files"`
	ValFiles   []string `toml:"val_files"`
	TestFiles  []string `toml:"test_files"`
	// File of kind karpathy (dataset_*.json) and the folder of its images.
	File      string `toml:"file"`
	ImageRoot string `toml:"image_root"`

	Scenes Scenes `toml:"scenes"`

	MaxPixels      int     `toml:"max_pixels"`        // images with more pixels than this are bad samples
	MaxBadShare    float64 `toml:"max_bad_share"`     // stop when more than this share of the samples read is bad
	MaxWords       int     `toml:"max_words"`         // words kept of a caption
	Tokens         int     `toml:"tokens"`            // token positions per caption, [CLS] included
	Vocab          string  `toml:"vocab"`             // vocab.txt or tokenizer.json; empty: learned from the training captions
	VocabSize      int     `toml:"vocab_size"`        // size of a learned vocabulary
	Workers        int     `toml:"workers"`           // goroutines that read and transform samples
	Prefetch       int     `toml:"prefetch"`          // batches prepared ahead
	CropScaleMin   float64 `toml:"crop_scale_min"`    // least area share of RandomResizedCrop; 1 with randaugment_ops 0 and flip false: plain resize
	Flip           bool    `toml:"flip"`              // random horizontal flip
	RandAugmentOps int     `toml:"randaugment_ops"`   // N of RandAugment; 0 switches it off
	RandAugmentLvl int     `toml:"randaugment_level"` // M of RandAugment, 0..10
	OverfitSamples int     `toml:"overfit_samples"`   // train on the first N samples only (sanity check); 0: all
	DropLast       bool    `toml:"drop_last"`         // drop a short last batch of an epoch instead of padding it
}

// Scenes is the built-in procedural world.
type Scenes struct {
	MinObjects   int `toml:"min_objects"`
	MaxObjects   int `toml:"max_objects"`
	EpochSamples int `toml:"epoch_samples"` // samples that count as one epoch of the infinite train stream
	ValSamples   int `toml:"val_samples"`
	TestSamples  int `toml:"test_samples"`
}

// Model is the architecture.
type Model struct {
	System string `toml:"system"` // albef
	Image  Image  `toml:"image"`
	Text   Text   `toml:"text"`
	Head   Head   `toml:"head"`
}

// Image is the vision transformer.
type Image struct {
	Size  int `toml:"size"`
	Patch int `toml:"patch"`
	Depth int `toml:"depth"`
	Width int `toml:"width"`
	Heads int `toml:"heads"`
	MLP   int `toml:"mlp"` // hidden width of a block's MLP; 0: 4 x width
}

// Text is the BERT text tower and the fusion layers above it.
type Text struct {
	Layers       int     `toml:"layers"`        // text layers
	FusionLayers int     `toml:"fusion_layers"` // layers with cross-attention to the image
	Width        int     `toml:"width"`
	Heads        int     `toml:"heads"`
	MLP          int     `toml:"mlp"`       // 0: 4 x width
	Positions    int     `toml:"positions"` // size of the position table
	Dropout      float64 `toml:"dropout"`   // of hidden states and attention probabilities
}

// Head projects both towers into the shared space.
type Head struct {
	Dim int `toml:"dim"`
}

// Momentum is the EMA teacher.
type Momentum struct {
	Enabled   bool    `toml:"enabled"`
	M         float64 `toml:"m"`          // theta_m = m*theta_m + (1-m)*theta
	RampSteps int     `toml:"ramp_steps"` // m(t) = min(m, (1+t)/(ramp/ (1-m)... see train): 0 means constant m
	Dropout   bool    `toml:"dropout"`    // dropout active in the teacher, as in the reference
}

// Queue holds past momentum features as negatives.
type Queue struct {
	Size       int `toml:"size"`        // entries per modality; 0: no queue
	StartSteps int `toml:"start_steps"` // first step whose ITC loss reads the queue
}

// Objective weighs the losses; a weight of 0 switches a loss off.
type Objective struct {
	Distill Distill `toml:"distill"`
	ITC     ITC     `toml:"itc"`
	ITM     ITM     `toml:"itm"`
	MLM     MLM     `toml:"mlm"`
}

// Distill is momentum distillation, shared by ITC and MLM.
type Distill struct {
	Alpha      float64 `toml:"alpha"`      // weight of the teacher's soft targets
	RampSteps  int     `toml:"ramp_steps"` // linear ramp of alpha from 0; 0 with ramp_epochs 0: none
	RampEpochs float64 `toml:"ramp_epochs"`
}

// ITC is image-text contrast.
type ITC struct {
	Weight           float64 `toml:"weight"`          // of the contrast against momentum features and the queue
	InBatchWeight    float64 `toml:"in_batch_weight"` // of the in-batch contrast with gradient to both sides
	Positives        string  `toml:"positives"`       // pair: only the own pair | id: all with the same image id
	Temperature      float64 `toml:"temperature"`     // initial value
	TemperatureMin   float64 `toml:"temperature_min"`
	TemperatureMax   float64 `toml:"temperature_max"`
	LearnTemperature bool    `toml:"learn_temperature"`
}

// ITM is image-text matching with hard negatives.
type ITM struct {
	Weight float64 `toml:"weight"`
}

// MLM is masked language modelling.
type MLM struct {
	Weight float64 `toml:"weight"`
	Prob   float64 `toml:"prob"`
}

// Optimizer is AdamW.
type Optimizer struct {
	LR       float64  `toml:"lr"`
	Beta1    float64  `toml:"beta1"`
	Beta2    float64  `toml:"beta2"`
	Eps      float64  `toml:"eps"`
	Decay    float64  `toml:"decay"`
	NoDecay  []string `toml:"no_decay"`  // groups without decay: "bias", "1d" (tensors of one axis), "temperature", or a glob on parameter names
	ClipNorm float64  `toml:"clip_norm"` // global gradient norm; 0: no clipping
}

// Schedule is the learning rate over the steps.
type Schedule struct {
	Kind          string  `toml:"kind"` // cosine (per step) | staircase (as the reference: warm-up ticks, cosine per epoch) | constant
	WarmupSteps   int     `toml:"warmup_steps"`
	WarmupEpochs  float64 `toml:"warmup_epochs"`
	WarmupPercent float64 `toml:"warmup_percent"`
	WarmupLR      float64 `toml:"warmup_lr"`
	MinLR         float64 `toml:"min_lr"`
}

// Train is the loop. Exactly one of the durations may be set.
type Train struct {
	BatchSize        int     `toml:"batch_size"`
	AccumulateSteps  int     `toml:"accumulate_steps"` // micro-batches per update
	MaxSteps         int     `toml:"max_steps"`
	MaxEpochs        float64 `toml:"max_epochs"`
	MaxSamples       int     `toml:"max_samples"`
	MaxMinutes       float64 `toml:"max_minutes"`
	LogEverySteps    int     `toml:"log_every_steps"`
	EvalEverySteps   int     `toml:"eval_every_steps"`
	SaveEverySteps   int     `toml:"save_every_steps"`
	SaveEveryMinutes float64 `toml:"save_every_minutes"`
	KeepLast         int     `toml:"keep_last"`
	KeepBest         int     `toml:"keep_best"` // by val r_mean
	KeepEverySteps   int     `toml:"keep_every_steps"`
	OnNaN            string  `toml:"on_nan"` // stop | skip | rollback
}

// Eval is retrieval evaluation.
type Eval struct {
	Split     string `toml:"split"` // val | test
	BatchSize int    `toml:"batch_size"`
	RerankTop int    `toml:"rerank_top"` // candidates re-scored by ITM; 0: cosine only
	MaxImages int    `toml:"max_images"` // 0: all
	Folds     int    `toml:"folds"`      // 5: the COCO 1K protocol (mean over five folds); 0 or 1: one gallery
}

// Compute selects threads and kernels.
type Compute struct {
	Backend   string `toml:"backend"`   // auto | onednn | openblas | builtin | plain
	Threads   int    `toml:"threads"`   // 0: all processors
	Precision string `toml:"precision"` // fp32
	CheckNaN  bool   `toml:"check_nan"` // name the first op that makes a NaN (slow)
}

// Init says what the parameters start from.
type Init struct {
	Checkpoint string `toml:"checkpoint"` // checkpoint or run folder whose parameters are the start; empty: random
}
