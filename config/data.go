package config

// Data selects the training and evaluation data.
type Data struct {
	Kind string `toml:"kind"`             // scenes (procedural, built in) | captions (JSON lists of {image, caption, image_id}) | karpathy (dataset_*.json) | folder (root/<split>/<class>/*, or root/<class>/* split by file name) | csv (tables of paths and captions) | coco (captions_*.json) | flickr (results_20130124.token) | webdataset (tar shards) | parquet (tables with images in them) | pairs (files of stored features, for model.system heads and align) | sentences (texts without images, for model.system simcse) | regions (features of the regions of images) | sentence_pairs (two sentences with a class or a score) | entailment (pictures with sentences that they entail or contradict) | grounding (pictures with expressions that name an object in them) | nlvr (statements about two pictures) | vqa (questions about pictures)
	Root string `toml:"root" read:"root"` // folder that relative paths start from

	Split      Division      `toml:"split" read:"one list"`
	Captions   Captions      `toml:"captions" read:"caption lists"`
	Karpathy   Karpathy      `toml:"karpathy" read:"karpathy"`
	CSV        CSV           `toml:"csv" read:"csv"`
	COCO       COCO          `toml:"coco" read:"coco"`
	Flickr     Flickr        `toml:"flickr" read:"flickr"`
	WebDataset WebDataset    `toml:"webdataset" read:"webdataset"`
	Parquet    Parquet       `toml:"parquet" read:"parquet"`
	Identities Identities    `toml:"identities" read:"identities"`
	Scenes     Scenes        `toml:"scenes" read:"scenes"`
	Pairs      Pairs         `toml:"pairs" read:"pair files"`
	Regions    Regions       `toml:"regions" read:"regions"`
	Crops      Crops         `toml:"crops" read:"prototypes"`
	Sentences  SentenceFiles `toml:"sentences" read:"sentences"`

	SentencePairs SentencePairs `toml:"sentence_pairs" read:"sentence pairs"`
	Examples      Examples      `toml:"examples" read:"examples"`
	Grounding     Grounding     `toml:"grounding" read:"grounding files"`
	VQA           VQAFiles      `toml:"vqa" read:"question files"`

	MaxPixels      int     `toml:"max_pixels" read:"image files" max:"1000000000"` // images with more pixels than this are bad samples, and those that take more than 7 bytes for each of them to decode
	Decoder        string  `toml:"decoder" read:"image files"`                     // of JPEG files: auto (libjpeg-turbo if it is found, else builtin) | builtin (pixels of Go's image/jpeg) | turbojpeg (libjpeg-turbo, pixels of Pillow)
	MaxBadShare    float64 `toml:"max_bad_share" read:"files"`                     // stop when more than this share of the samples read is bad
	MaxWords       int     `toml:"max_words" read:"counted words" max:"65536"`     // words kept of a caption
	Tokens         int     `toml:"tokens" read:"words" max:"65536"`                // token positions per caption, [CLS] and the like included
	Clean          string  `toml:"clean" read:"words"`                             // albef (lower case, punctuation deleted, at most data.max_words words) | none (captions as they are) | whitespace | lower | canonicalize (as in open_clip: HTML entities and white space; and lower case; and no punctuation)
	Vocab          string  `toml:"vocab" read:"towers"`                            // tokenizer: vocab.txt, tokenizer.json, vocab.json beside merges.txt, bpe_simple_vocab_16e6.txt.gz, a SentencePiece .model, or a folder with one of them; empty: learned from the training captions
	Template       string  `toml:"template" read:"given vocabulary"`               // what stands around a text: albef ([CLS] before it, nothing behind it; for BERT vocabularies) | file (what the files of data.vocab say)
	VocabSize      int     `toml:"vocab_size" read:"own vocabulary" max:"1048576"` // largest size of a learned vocabulary
	VocabKind      string  `toml:"vocab_kind" read:"own vocabulary"`               // what is learned: wordpiece (pieces of words) | words (whole words, as word_tokenize of NLTK finds them, between <start> and <end>) | auto (words for data.kind regions, else wordpiece)
	VocabMinCount  int     `toml:"vocab_min_count" read:"own words" max:"1000000"` // a word that occurs less often in the training captions is <unk>
	Workers        int     `toml:"workers" max:"1024"`                             // goroutines that read and transform samples; 0: as many as threads
	Prefetch       int     `toml:"prefetch" max:"1024"`                            // batches prepared ahead; 0: 2
	Cache          string  `toml:"cache"`                                          // none | memory | disk: keep decoded training images there; evaluation always reads the files
	CacheDir       string  `toml:"cache_dir" read:"disk cache"`                    // folder of the disk cache, of indices of shards, of what is made of stored features and of data.cache_features; made if it is not there; runs may share it, and machines that see the same files under the same paths
	CacheMaxGB     float64 `toml:"cache_max_gb" read:"cache limit" max:"1000000"`  // the cache holds at most this many GB (10^9 bytes) and then stays as it is; and so many the features of a tower may take (data.cache_features)
	CacheSize      int     `toml:"cache_size" read:"cache" max:"16384"`            // cached images are shrunk to this shorter side, which changes the samples a little; 0: kept whole, samples stay the same bit by bit
	CacheFeatures  bool    `toml:"cache_features" read:"pairs" change:"harmless"`  // compute what frozen towers (model.image.freeze, model.text.freeze) give for each training image and caption once, before the first step, into a file in data.cache_dir, and train from there: the numbers stay the same; pictures must not be augmented
	CropScaleMin   float64 `toml:"crop_scale_min" read:"pixels"`                   // least area share of RandomResizedCrop; 1 with randaugment_ops 0 and flip false: plain resize
	Flip           bool    `toml:"flip" read:"pixels"`                             // random horizontal flip
	RandAugmentOps int     `toml:"randaugment_ops" read:"pixels" max:"64"`         // N of RandAugment; 0 switches it off
	RandAugmentLvl int     `toml:"randaugment_level" read:"randaugment" max:"10"`  // M of RandAugment, 0..10
	Views          int     `toml:"views" read:"second view" max:"2"`               // independent augmentations of an image: 1, or 2 (the second is seen by the momentum encoder), as in TCL and MoCo
	ColorJitter    float64 `toml:"color_jitter" read:"pixels"`                     // probability of changing brightness, contrast, saturation (by up to 0.4) and hue (by up to 0.1)
	Grayscale      float64 `toml:"grayscale" read:"pixels"`                        // probability of dropping the colours
	Blur           float64 `toml:"blur" read:"pixels"`                             // probability of a Gaussian blur with a deviation of 0.1 to 2 pixels
	Changed        string  `toml:"changed" change:"silent"`                        // when a run is resumed and its data are not what they were: refuse | accept (go on with them, and say what changed)
	OverfitSamples int     `toml:"overfit_samples" read:"steps" max:"1000000000"`  // train on the first N samples only (sanity check); 0: all
	DropLast       bool    `toml:"drop_last" read:"short batches"`                 // leave out the samples at the end of an epoch that do not fill a batch; else batches run across the border of epochs
}

// Values of data.template.
const (
	TemplateALBEF = "albef"
	TemplateFile  = "file"
)

// Values of data.changed.
const (
	DataRefused  = "refuse"
	DataAccepted = "accept"
)

// Values of data.vocab_kind.
const (
	VocabWordPiece = "wordpiece"
	VocabWords     = "words"
)

// LearnsWords says whether a vocabulary that is learned is one of whole words.
func (d Data) LearnsWords() bool {
	return d.VocabKind == VocabWords || d.VocabKind == "auto" && d.Kind == "regions"
}

func (d *Data) defaults() {
	*d = Data{
		Kind:           "scenes",
		Root:           ".",
		MaxPixels:      64_000_000,
		Decoder:        "auto",
		MaxBadShare:    0.01,
		MaxWords:       30,
		Tokens:         30,
		Clean:          "albef",
		Template:       TemplateALBEF,
		VocabSize:      30522,
		VocabKind:      "auto",
		VocabMinCount:  4,
		Prefetch:       4,
		Changed:        DataRefused,
		Cache:          "none",
		CacheMaxGB:     4,
		CropScaleMin:   0.2,
		Flip:           true,
		RandAugmentOps: 2,
		RandAugmentLvl: 7,
		Views:          1,
		DropLast:       true,
	}
}

func (d *Data) check(k *checker, c *Config) {
	k.OneOf("data.kind", append([]string{"scenes", "captions", "karpathy", "folder", "csv", "coco", "flickr", "webdataset", "parquet", "pairs", "regions", "sentences", SentencePairsKind}, exampleKinds()...)...)
	k.Positive("data.max_pixels", "data.max_words")
	k.Require("data.max_bad_share", d.MaxBadShare >= 0 && d.MaxBadShare <= 1, "must be between 0 and 1")
	k.Require("data.tokens", d.Tokens >= 2, "must be >= 2", "[CLS] takes one position")
	k.Require("data.tokens", c.hasGRU() || d.Tokens <= c.Model.Text.Positions, "must be at most model.text.positions",
		"raise model.text.positions or lower data.tokens")
	k.OneOf("data.decoder", "auto", "builtin", "turbojpeg")
	k.OneOf("data.clean", "albef", "none", "whitespace", "lower", "canonicalize")
	k.OneOf("data.template", TemplateALBEF, TemplateFile)
	k.Require("data.template", d.Template != TemplateFile || d.Vocab != "", `must be "albef" without data.vocab`, "a learned vocabulary has no file that says more")
	// Special tokens and an alphabet are the least a vocabulary can do with.
	k.Require("data.vocab_size", d.Vocab != "" || d.VocabSize >= 64, "must be >= 64")
	k.OneOf("data.changed", DataRefused, DataAccepted)
	k.OneOf("data.vocab_kind", "auto", VocabWordPiece, VocabWords)
	k.Positive("data.vocab_min_count")
	d.checkCache(k, c)
	if d.CacheFeatures {
		d.checkFeatures(k, c)
	}
	k.NotNegative("data.workers", "data.prefetch", "data.randaugment_ops", "data.overfit_samples")
	d.checkViews(k, c)
	for _, p := range []string{"data.color_jitter", "data.grayscale", "data.blur"} {
		k.Require(p, k.Number(p) >= 0 && k.Number(p) <= 1, "must be between 0 and 1")
	}
	k.Require("data.crop_scale_min", d.CropScaleMin > 0 && d.CropScaleMin <= 1, "must be above 0 and at most 1")
	k.Require("data.randaugment_level", d.RandAugmentLvl >= 0 && d.RandAugmentLvl <= 10, "must be between 0 and 10")
	k.Require("data.overfit_samples", d.OverfitSamples == 0 || !d.DropLast || d.OverfitSamples >= c.Train.BatchSize,
		"must be 0 or at least train.batch_size", "or set data.drop_last = false")
}

func (d *Data) checkCache(k *checker, c *Config) {
	k.OneOf("data.cache", "none", "memory", "disk")
	k.Require("data.cache", d.Cache == "none" || d.Kind != "scenes" && !(d.ReadsExamples() && d.Drawn()), "must be none for scenes", "they are drawn, not decoded")
	k.Require("data.cache", d.Cache == "none" || d.Kind != "pairs", "must be none for data.kind \"pairs\"", "features are not decoded")
	k.Require("data.cache", d.Cache == "none" || d.Kind != "regions", "must be none for data.kind \"regions\"", "features are not decoded")
	k.Require("data.cache", d.Cache == "none" || d.Kind != SentencePairsKind, "must be none for data.kind \"sentence_pairs\"", "sentences are not decoded")
	k.Require("data.cache", d.Cache == "none" || !c.Model.TextsOnly(), "must be none", c.Model.named()+" reads no images")
	k.Require("data.cache_dir", d.Cache != "disk" || d.CacheDir != "", `must name a folder for data.cache = "disk"`)
	k.Positive("data.cache_max_gb")
	k.NotNegative("data.cache_size")
	k.Require("data.cache_size", d.CacheSize == 0 || d.CacheSize >= c.Model.Image.Size, "must be 0 or at least model.image.size",
		"crops of smaller images would be blurred")
}

// checkFeatures tells what makes the features of frozen towers more than a function of an image or a caption.
func (d *Data) checkFeatures(k *checker, c *Config) {
	const key = "data.cache_features"
	image, text := c.Model.Image.Freeze, c.Model.Text.Freeze
	refuse := func(ok bool, msg, hint string) { k.Training(key, ok, "must be false "+msg, hint) }
	refuse(!c.Model.Stored() && !c.Model.ImagesOnly() && !c.Model.TextsOnly(), "with this model.system", c.Model.named()+" has no frozen tower beside a trained one")
	refuse(image || text, "without a frozen tower", "set model.image.freeze or model.text.freeze to true")
	refuse(d.CacheDir != "", "without a folder", "name one with data.cache_dir")
	refuse(d.Kind != "scenes", `with data.kind "scenes"`, "every epoch has new scenes: use images in files")
	refuse(d.OverfitSamples == 0, "with data.overfit_samples", "of a few samples nothing need be kept")
	refuse(c.Model.Text.FusionLayers == 0 || !c.Model.traits().fusion, "with fusion layers", "they read all tokens of a tower, and its class tokens alone are kept: set model.text.fusion_layers, objective.itm.weight and objective.mlm.weight to 0")
	refuse(!c.Objective.TCL.Local, "with objective.tcl.local", "it reads all tokens of a tower, and its class tokens alone are kept")
	if !image {
		return
	}
	const same = "the features of a frozen image tower are computed once (data.cache_features): every epoch sees the same picture"
	k.Training("data.crop_scale_min", d.CropScaleMin == 1, "must be 1", same)
	k.Training("data.flip", !d.Flip, "must be false", same)
	for _, p := range []string{"data.randaugment_ops", "data.color_jitter", "data.grayscale", "data.blur"} {
		k.Training(p, k.Number(p) == 0, "must be 0", same)
	}
	k.Training("data.views", d.Views == 1, "must be 1", same)
	k.Training("model.image.keep_patches", !c.Model.Image.LeavesPatchesOut(), "must be 1", same)
}

// checkViews asks for somebody who looks at the second view, and for a second view
// where a system has nothing else to compare an image with.
func (d *Data) checkViews(k *checker, c *Config) {
	k.Require("data.views", d.Views == 1 || d.Views == 2, "must be 1 or 2")
	switch t := c.Model.traits(); {
	case t.identities:
		k.Require("data.views", d.Views == 1, "must be 1", c.Model.named()+" sees an image once")
	case c.Model.Classifies():
		k.Require("data.views", d.Views == 1, "must be 1", c.Model.named()+" sees an image once")
	case c.Model.TextsOnly():
		k.Require("data.views", d.Views == 1, "must be 1", c.Model.named()+" sees no images")
	case !t.captions:
		k.Require("data.views", d.Views == 2, "must be 2", c.Model.named()+" compares two views of an image")
	case t.stored:
		k.Require("data.views", d.Views == 1, "must be 1", "stored features have no views")
	default:
		k.Require("data.views", d.Views == 1 || c.Momentum.Enabled, "must be 1 without momentum", "no teacher looks at a second view")
	}
}
