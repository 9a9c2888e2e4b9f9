// Package config holds the configuration of a run as plain structs: what a TOML
// file can say, the defaults, the overrides of the command line and the checks.
// It imports nothing of the project.
//
// Load reads a file, applies overrides and reports every problem at once:
//
//	cfg, err := config.Load("configs/quickstart.toml", []string{"train.batch_size=64"})
//
// The comments of the fields below are the reference in docs/config.md.
package config

//go:generate go run ./gen -out ../docs/config.md

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
	Kind string `toml:"kind"` // scenes (procedural, built in) | captions (JSON lists of {image, caption, image_id}) | karpathy (dataset_*.json) | folder (root/<split>/<class>/*, or root/<class>/* split by file name) | pairs (files of stored features, for model.system heads)
	Root string `toml:"root"` // folder that relative paths start from

	TrainFiles []string `toml:"train_files"` // training lists of kind captions
	ValFiles   []string `toml:"val_files"`   // validation lists of kind captions
	TestFiles  []string `toml:"test_files"`  // test lists of kind captions
	File       string   `toml:"file"`        // the dataset_*.json of kind karpathy
	ImageRoot  string   `toml:"image_root"`  // folder of the images of kind karpathy, below root unless absolute; empty: root

	Scenes Scenes `toml:"scenes"`
	Pairs  Pairs  `toml:"pairs"`

	MaxPixels      int     `toml:"max_pixels"`        // images with more pixels than this are bad samples
	MaxBadShare    float64 `toml:"max_bad_share"`     // stop when more than this share of the samples read is bad
	MaxWords       int     `toml:"max_words"`         // words kept of a caption
	Tokens         int     `toml:"tokens"`            // token positions per caption, [CLS] included
	Vocab          string  `toml:"vocab"`             // vocab.txt or tokenizer.json; empty: learned from the training captions
	VocabSize      int     `toml:"vocab_size"`        // largest size of a learned vocabulary
	Workers        int     `toml:"workers"`           // goroutines that read and transform samples; 0: as many as threads
	Prefetch       int     `toml:"prefetch"`          // batches prepared ahead; 0: 2
	Cache          string  `toml:"cache"`             // none | memory | disk: keep decoded training images there; evaluation always reads the files
	CacheDir       string  `toml:"cache_dir"`         // folder of the disk cache, made if it is not there; runs and machines with the same paths may share it
	CacheMaxGB     float64 `toml:"cache_max_gb"`      // the cache holds at most this many GB (10^9 bytes) and then stays as it is
	CacheSize      int     `toml:"cache_size"`        // cached images are shrunk to this shorter side, which changes the samples a little; 0: kept whole, samples stay the same bit by bit
	CropScaleMin   float64 `toml:"crop_scale_min"`    // least area share of RandomResizedCrop; 1 with randaugment_ops 0 and flip false: plain resize
	Flip           bool    `toml:"flip"`              // random horizontal flip
	RandAugmentOps int     `toml:"randaugment_ops"`   // N of RandAugment; 0 switches it off
	RandAugmentLvl int     `toml:"randaugment_level"` // M of RandAugment, 0..10
	Views          int     `toml:"views"`             // independent augmentations of an image: 1, or 2 (the second is seen by the momentum encoder), as in TCL and MoCo
	ColorJitter    float64 `toml:"color_jitter"`      // probability of changing brightness, contrast, saturation (by up to 0.4) and hue (by up to 0.1)
	Grayscale      float64 `toml:"grayscale"`         // probability of dropping the colours
	Blur           float64 `toml:"blur"`              // probability of a Gaussian blur with a deviation of 0.1 to 2 pixels
	OverfitSamples int     `toml:"overfit_samples"`   // train on the first N samples only (sanity check); 0: all
	DropLast       bool    `toml:"drop_last"`         // drop a short last batch of an epoch instead of padding it
}

// Scenes is the built-in procedural world (data.kind = "scenes").
type Scenes struct {
	MinObjects   int `toml:"min_objects"`   // least number of objects of a scene
	MaxObjects   int `toml:"max_objects"`   // largest number of objects of a scene, at most 4
	EpochSamples int `toml:"epoch_samples"` // samples that count as one epoch of the infinite train stream
	ValSamples   int `toml:"val_samples"`   // scenes of the fixed validation split
	TestSamples  int `toml:"test_samples"`  // scenes of the fixed test split
}

// Pairs are the stored features of data.kind = "pairs": row i of one file belongs to row i
// of the other. Paths start from data.root.
type Pairs struct {
	Image       string `toml:"image"`        // file of the image features, .npy or .safetensors: a float32 matrix with a row per pair
	Text        string `toml:"text"`         // file of the text features, of as many rows
	ImageTensor string `toml:"image_tensor"` // name of the tensor in a .safetensors file of image features; empty: its only one
	TextTensor  string `toml:"text_tensor"`  // name of the tensor in a .safetensors file of text features; empty: its only one
	ValSamples  int    `toml:"val_samples"`  // rows of the validation split, chosen by run.seed
	TestSamples int    `toml:"test_samples"` // rows of the test split, chosen by run.seed
}

// Model is the architecture.
type Model struct {
	System string `toml:"system"` // albef (both towers from pixels and words, with a teacher and fusion) | clip (two towers and contrast within the batch alone) | moco (images alone, two views against momentum features and a queue) | swav (images alone, two views against prototypes) | heads (MLPs over stored features, trained through package model)
	Image  Image  `toml:"image"`
	Text   Text   `toml:"text"`
	Head   Head   `toml:"head"`
	Heads  Heads  `toml:"heads"`
}

// Image is the vision transformer.
type Image struct {
	Size  int `toml:"size"`  // side of the square input image in pixels, a multiple of patch
	Patch int `toml:"patch"` // side of a square patch in pixels
	Depth int `toml:"depth"` // transformer blocks
	Width int `toml:"width"` // width of a token, a multiple of heads
	Heads int `toml:"heads"` // attention heads
	MLP   int `toml:"mlp"`   // hidden width of a block's MLP; 0: 4 x width
}

// Text is the BERT text tower and the fusion layers above it.
type Text struct {
	Layers       int     `toml:"layers"`        // text layers
	FusionLayers int     `toml:"fusion_layers"` // layers with cross-attention to the image
	Width        int     `toml:"width"`         // width of a token, a multiple of heads
	Heads        int     `toml:"heads"`         // attention heads
	MLP          int     `toml:"mlp"`           // hidden width of a layer's MLP; 0: 4 x width
	Positions    int     `toml:"positions"`     // size of the position table, at least data.tokens
	Dropout      float64 `toml:"dropout"`       // of hidden states and attention probabilities
}

// Head projects both towers into the shared space.
type Head struct {
	Dim         int    `toml:"dim"`          // width of the shared space
	Topology    string `toml:"topology"`     // sphere (unit vectors) | Ob(n,m) (the vector is cut into m unit vectors of n channels, n x m = dim) | Multi(n,m) (m class tokens through one projection to n channels each, n x m = dim) | euclid (vectors as they come)
	TokenBlocks int    `toml:"token_blocks"` // with Multi(n,m): blocks of each tower that the further class tokens pass, the last ones; 0: all, as in the paper
	Hidden      int    `toml:"hidden"`       // hidden width of the MLP that projects the images of model.system moco and swav; 0: model.image.width
}

// Heads is the pair of MLPs of model.system = "heads", each from the features of its
// modality through one hidden layer to model.head.dim.
type Heads struct {
	InImage    int     `toml:"in_image"`   // width of the image features
	InText     int     `toml:"in_text"`    // width of the text features
	Hidden     int     `toml:"hidden"`     // width of the hidden layer
	Dropout    float64 `toml:"dropout"`    // of the hidden layer
	Activation string  `toml:"activation"` // gelu | relu
}

// Momentum is the EMA teacher.
type Momentum struct {
	Enabled   bool    `toml:"enabled"`    // keep momentum (EMA) twins of both towers
	M         float64 `toml:"m"`          // theta_m = m*theta_m + (1-m)*theta, once a step
	RampSteps int     `toml:"ramp_steps"` // m(t) = min(m, (1+t)/(ramp_steps+t)) at step t, so that a young teacher follows closely; 0: constant m
	Dropout   bool    `toml:"dropout"`    // dropout active in the teacher, as in ALBEF's code
}

// Queue holds past momentum features as negatives.
type Queue struct {
	Size       int `toml:"size"`        // entries per modality, at least train.batch_size; 0: no queue
	StartSteps int `toml:"start_steps"` // first step whose ITC loss reads the queue
}

// Objective weighs the losses; a weight of 0 switches a loss off.
type Objective struct {
	Distill   Distill   `toml:"distill"`
	ITC       ITC       `toml:"itc"`
	GSSF      GSSF      `toml:"gssf"`
	Geodesic  Geodesic  `toml:"geodesic"`
	Geometric Geometric `toml:"geometric"`
	TCL       TCL       `toml:"tcl"`
	MAFA      MAFA      `toml:"mafa"`
	SwAV      SwAV      `toml:"swav"`
	ITM       ITM       `toml:"itm"`
	MLM       MLM       `toml:"mlm"`
}

// Distill is momentum distillation, shared by ITC and MLM.
type Distill struct {
	Alpha      float64 `toml:"alpha"`       // weight of the teacher's soft targets
	RampSteps  int     `toml:"ramp_steps"`  // alpha grows linearly from 0 over this many steps; 0 with ramp_epochs 0: no ramp
	RampEpochs float64 `toml:"ramp_epochs"` // the same ramp in epochs; at most one of the two
}

// ITC is image-text contrast.
type ITC struct {
	Weight           float64     `toml:"weight"`            // of the contrast against momentum features and the queue
	Score            string      `toml:"score"`             // how an image and a text are compared: cosine (on Ob and Multi the sum of the cosines of their spheres) | inner (product) | l2 (minus the distance) | angle (minus the oblique geodesic distance, on a sphere the angle) | gssf (the learned metric of objective.gssf) | geodesic (through the graph of objective.geodesic, in the contrast with the queue alone)
	Scores           []ScoreTerm `toml:"scores"`            // a weighted sum in the place of score, such as [{kind = "geodesic", weight = 0.5}, {kind = "gssf", weight = 0.5}]; kinds are those of score
	TargetScore      string      `toml:"target_score"`      // behind the teacher's soft targets: same (as score) or one of its kinds
	InBatchWeight    float64     `toml:"in_batch_weight"`   // of the in-batch contrast with gradient to both sides; a model from random weights needs it
	Positives        string      `toml:"positives"`         // pair (only the own pair) | id (all with the same image id)
	Temperature      float64     `toml:"temperature"`       // initial value, by which scores are divided
	TemperatureMin   float64     `toml:"temperature_min"`   // the temperature is clamped to at least this; 0, with log_temperature: 0.01 x spheres of the head, CLIP's cap of the scale, 100/m
	TemperatureMax   float64     `toml:"temperature_max"`   // the temperature is clamped to at most this
	LearnTemperature bool        `toml:"learn_temperature"` // train the temperature with the other parameters
	LogTemperature   bool        `toml:"log_temperature"`   // the parameter is the logarithm of the scale 1/temperature, as in CLIP, and not the temperature, as in ALBEF
}

// ScoreTerm is one term of objective.itc.scores.
type ScoreTerm struct {
	Kind   string  `toml:"kind"`
	Weight float64 `toml:"weight"`
}

// GSSF is the learned metric of GSSF: x^T (W o U) y for an image x and a text y, where W
// starts as the identity, which is the inner product.
type GSSF struct {
	Form   string `toml:"form"`   // cosine (W is fixed) | diag (one weight for each channel) | block_diag (weights within blocks of channels) | dense
	Blocks int    `toml:"blocks"` // of block_diag, a divisor of model.head.dim; 0: one for each sphere of the head, or of 16 channels on one sphere
}

// Geodesic is the distance of GeoMM: the angle along the shortest path through a graph
// over the queue of each modality.
type Geodesic struct {
	Layers          []int   `toml:"layers"`           // clusters of each layer, top first; the last number is K, the bottom centres: [256] is flat
	Construction    string  `toml:"construction"`     // group (k-means of the queue into K, whose centres are grouped upwards) | split (the clusters of the top layer are split downwards)
	Neighbours      int     `toml:"neighbours"`       // nearest centres that a centre has an edge to
	Iterations      int     `toml:"iterations"`       // Lloyd iterations of k-means
	KMeansInit      string  `toml:"kmeans_init"`      // plusplus | rows (random entries of the queue)
	WarmStart       bool    `toml:"warm_start"`       // k-means starts from the centres of the last graph
	PeriodSteps     int     `toml:"period_steps"`     // T0, steps between two rebuilds; the first is made when the queue is full, until then a geodesic is the cosine
	LagSteps        int     `toml:"lag_steps"`        // 0: a rebuild is part of its step; n: it runs beside the next n steps and is then switched in
	Gradient        string  `toml:"gradient"`         // strict (eq. 3 literally) or some of same_cluster, straight_through, soft_entry, joined by +
	Entries         int     `toml:"entries"`          // centres that soft_entry may enter the graph by, all of them where there are fewer
	Softness        float64 `toml:"softness"`         // temperature of soft_entry's minimum, in radians
	DirectPositives bool    `toml:"direct_positives"` // a positive is never farther than its own angle
	LimitPi         float64 `toml:"limit_pi"`         // paths are cut at this many pi, which becomes the score -1; 4 in the paper
	Temperature     float64 `toml:"temperature"`      // initial value of a temperature of its own; 0: that of objective.itc
	Mix             float64 `toml:"mix"`              // with objective.itc.score = "geodesic" the score is mix*geodesic + (1-mix)*cosine
	Weigh           float64 `toml:"weigh"`            // of a cosine score: the logit of each entry is lowered by this times the teacher's geodesic score, so that negatives nearby on the manifold count less; 0: off
}

// Geometric is the regularisation of GeRA: the head keeps the geometry that the features
// of a tower have before it. The queue then keeps those too.
type Geometric struct {
	Weight     float64 `toml:"weight"`     // alpha of GeRA, for each modality; 0: off
	Modalities string  `toml:"modalities"` // both | image | text
	Neighbours int     `toml:"neighbours"` // K, points of a neighbourhood, the anchor among them
	Pool       int     `toml:"pool"`       // neighbours are sampled among the pool x K nearest entries of the queue
	Sampling   string  `toml:"sampling"`   // biased (nearer ones are likelier) | uniform | closest
	Search     string  `toml:"search"`     // exact (all entries of the queue) | clusters (those of the nearest clusters of the graph over the queue, once there is one)
	Kernel     string  `toml:"kernel"`     // of two points: heat | linear | squared | inverse
	Epsilon    float64 `toml:"epsilon"`    // width of the heat kernel, exp(-d^2/(4 epsilon))
	Scale      string  `toml:"scale"`      // of distances: unit (vectors are scaled to unit length) | relative (to the mean of the neighbourhood) | none
}

// TCL adds the terms of triple contrastive learning to the contrast, whose loss is then
// the mean of all terms.
type TCL struct {
	Intra bool `toml:"intra"` // image against image and text against text, in both cases against momentum features and the queue
	Local bool `toml:"local"` // parts of an image, and tokens of a text, against the whole
	Grid  int  `toml:"grid"`  // an image has grid x grid parts, each the mean of its patches
}

// MAFA handles false negatives: a frozen model relabels the hardest negatives of matching.
type MAFA struct {
	Connector     string  `toml:"connector"`      // checkpoint or run folder of the frozen model with a match head; empty: off
	PositiveAbove float64 `toml:"positive_above"` // a negative that the connector matches with at least this probability becomes a positive
	NegativeBelow float64 `toml:"negative_below"` // below this it stays a negative; in between the second hardest takes its place
	Uniform       float64 `toml:"uniform"`        // share of a uniform distribution in the targets of the contrast from the second epoch on
}

// SwAV is the swapped prediction of model.system = "swav": the code of one view, which
// prototypes it belongs to, is predicted from the other. Its weight is objective.itc.weight,
// its temperature and score (cosine or geodesic) are those of objective.itc too.
type SwAV struct {
	Prototypes  int     `toml:"prototypes"`   // number of prototypes
	Epsilon     float64 `toml:"epsilon"`      // temperature of the codes: smaller ones choose fewer prototypes
	Iterations  int     `toml:"iterations"`   // of Sinkhorn and Knopp, which balance the prototypes
	FreezeSteps int     `toml:"freeze_steps"` // first steps in which the prototypes stay as they are
}

// ITM is image-text matching with hard negatives.
type ITM struct {
	Weight    float64 `toml:"weight"`    // of the loss in the total
	Negatives string  `toml:"negatives"` // drawn by: score (of the contrast), or one of the kinds of objective.itc.score; geodesic is that of the teacher
}

// MLM is masked language modelling.
type MLM struct {
	Weight float64 `toml:"weight"` // of the loss in the total
	Prob   float64 `toml:"prob"`   // probability that a token is chosen for prediction
}

// Optimizer is AdamW.
type Optimizer struct {
	LR       float64  `toml:"lr"`        // learning rate after warm-up
	Beta1    float64  `toml:"beta1"`     // decay of the first moment
	Beta2    float64  `toml:"beta2"`     // decay of the second moment
	Eps      float64  `toml:"eps"`       // added to the root of the second moment
	Decay    float64  `toml:"decay"`     // decoupled weight decay
	NoDecay  []string `toml:"no_decay"`  // groups without decay: "bias", "1d" (tensors of one axis), "temperature", "metric" (the weights of objective.gssf), or a glob on parameter names
	ClipNorm float64  `toml:"clip_norm"` // global gradient norm; 0: no clipping
}

// Schedule is the learning rate over the steps. At most one warmup length may be set.
type Schedule struct {
	Kind          string  `toml:"kind"`           // cosine (per step) | staircase (as ALBEF's code: warm-up ticks, cosine per epoch) | constant
	WarmupSteps   int     `toml:"warmup_steps"`   // length of the warm-up in steps
	WarmupEpochs  float64 `toml:"warmup_epochs"`  // length of the warm-up in epochs
	WarmupPercent float64 `toml:"warmup_percent"` // length of the warm-up in percent of the run
	WarmupLR      float64 `toml:"warmup_lr"`      // learning rate at the start of the warm-up
	MinLR         float64 `toml:"min_lr"`         // learning rate at the end of the run
}

// Train is the loop. Exactly one of the max_* durations must be set.
type Train struct {
	BatchSize        int     `toml:"batch_size"`         // pairs of a micro-batch
	AccumulateSteps  int     `toml:"accumulate_steps"`   // micro-batches per update
	MaxSteps         int     `toml:"max_steps"`          // length of the run in updates
	MaxEpochs        float64 `toml:"max_epochs"`         // length of the run in passes over the training data
	MaxSamples       int     `toml:"max_samples"`        // length of the run in pairs
	MaxMinutes       float64 `toml:"max_minutes"`        // length of the run in minutes of training
	LogEverySteps    int     `toml:"log_every_steps"`    // steps between two lines of metrics.jsonl
	EvalEverySteps   int     `toml:"eval_every_steps"`   // steps between two evaluations; 0: at the end only
	SaveEverySteps   int     `toml:"save_every_steps"`   // steps between two checkpoints; 0: by minutes and at the end only
	SaveEveryMinutes float64 `toml:"save_every_minutes"` // minutes between two checkpoints; 0: by steps and at the end only
	KeepLast         int     `toml:"keep_last"`          // newest checkpoints kept; 0: all
	KeepBest         int     `toml:"keep_best"`          // best checkpoints kept, by r_mean of the evaluations, or by the accuracy of the probe
	KeepEverySteps   int     `toml:"keep_every_steps"`   // checkpoints at multiples of this step are kept for ever; 0: none
	OnNaN            string  `toml:"on_nan"`             // stop | skip | rollback: what to do when the loss or the gradient norm is not finite
}

// Eval is retrieval evaluation and, for systems of images alone, the linear probe.
type Eval struct {
	Split     string `toml:"split"`      // val | test
	BatchSize int    `toml:"batch_size"` // images or captions encoded at once
	Score     string `toml:"score"`      // train (the score of training, without the geodesic, which needs the queue) | cosine | inner | l2 | angle | gssf
	RerankTop int    `toml:"rerank_top"` // candidates re-scored by ITM; 0: cosine only
	MaxImages int    `toml:"max_images"` // size of the gallery; 0: all images of the split
	Folds     int    `toml:"folds"`      // 5: the COCO 1K protocol (mean over five folds); 0 or 1: one gallery

	ProbeSamples    int     `toml:"probe_samples"`    // labelled training images of the linear probe, not augmented; a smaller training set is used whole
	ProbeDecay      float64 `toml:"probe_decay"`      // weight decay of the probe, whose loss has decay/2 times the squared weights
	ProbeNeighbours int     `toml:"probe_neighbours"` // neighbours that vote in the k-NN accuracy beside the probe
}

// Compute selects threads and kernels.
type Compute struct {
	Backend   string `toml:"backend"`   // auto (the fastest found) | onednn | openblas | mkl | builtin (assembly) | plain (Go)
	Threads   int    `toml:"threads"`   // 0: all processors
	Precision string `toml:"precision"` // of matrix products: fp32 | bf16 (operands rounded to bfloat16, sums in float32; parameters, moments, statistics and losses stay float32). bf16 is faster on processors with AVX-512-BF16 or AMX
	Recompute bool   `toml:"recompute"` // compute the activations of every transformer block again in the backward pass instead of keeping them: less memory, about a third more time
	CheckNaN  bool   `toml:"check_nan"` // name the first op that makes a NaN (slow)
}

// Init says what the parameters start from.
type Init struct {
	Checkpoint string `toml:"checkpoint"` // checkpoint or run folder whose parameters are the start; empty: random
}
