package source

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/config/section"
)

// Data selects the training and evaluation data.
type Data struct {
	// scenes (procedural, built in) | captions (JSON lists of {image, caption, image_id}) | karpathy (dataset_*.json)
	// | folder (root/<split>/<class>/*, or root/<class>/* split by file name) | csv (tables of paths and captions) |
	// coco (captions_*.json) | flickr (results_20130124.token) | webdataset (tar shards) | parquet (tables with images
	// in them) | pairs (files of stored features, for model.system heads and align) | sentences (texts without images,
	// for model.system simcse) | regions (features of the regions of images) | sentence_pairs (two sentences with a
	// class or a score) | entailment (pictures with sentences that they entail or contradict) | grounding (pictures
	// with expressions that name an object in them) | nlvr (statements about two pictures) | vqa (questions about
	// pictures) | multimodal (texts with one or two pictures and a class of any name)
	Kind string `toml:"kind"`
	// folder that relative paths start from
	Root string `toml:"root" when:"root"`

	Split      Division      `toml:"split" when:"kind=captions|csv"`
	Captions   Captions      `toml:"captions" when:"kind=captions"`
	Karpathy   Karpathy      `toml:"karpathy" when:"kind=karpathy"`
	CSV        CSV           `toml:"csv" when:"kind=csv"`
	COCO       COCO          `toml:"coco" when:"kind=coco"`
	ReID       ReID          `toml:"reid" when:"kind=reid"`
	Flickr     Flickr        `toml:"flickr" when:"kind=flickr"`
	WebDataset WebDataset    `toml:"webdataset" when:"kind=webdataset"`
	Parquet    Parquet       `toml:"parquet" when:"kind=parquet"`
	Identities Identities    `toml:"identities" when:"identities"`
	Scenes     Scenes        `toml:"scenes" when:"drawn"`
	Pairs      Pairs         `toml:"pairs" when:"kind=pairs"`
	Regions    Regions       `toml:"regions" when:"kind=regions"`
	Crops      Crops         `toml:"crops" when:"prototypes"`
	Sentences  SentenceFiles `toml:"sentences" when:"text files"`

	SentencePairs SentencePairs `toml:"sentence_pairs" when:"kind=sentence_pairs"`
	Examples      Examples      `toml:"examples" when:"examples"`
	Grounding     Grounding     `toml:"grounding" when:"kind=grounding and data.examples.source=files"`
	VQA           VQAFiles      `toml:"vqa" when:"kind=vqa and data.examples.source=files"`
	// Kinds without keys of their own.
	Folder     Folder     `toml:"-" kind:"folder"`
	Entailment Entailment `toml:"-" kind:"entailment"`
	NLVR       NLVR       `toml:"-" kind:"nlvr"`
	Multimodal Multimodal `toml:"-" kind:"multimodal"`

	// images with more pixels than this are bad samples, and those that take more than 7 bytes for each of them to
	// decode
	MaxPixels int `toml:"max_pixels" when:"image files" max:"1000000000"`
	// stop when more than this share of the samples read is bad
	MaxBadShare float64 `toml:"max_bad_share" when:"files"`
	// words kept of a caption
	MaxWords int `toml:"max_words" when:"words and clean=albef" max:"65536"`
	// token positions per caption, [CLS] and the like included
	Tokens int `toml:"tokens" when:"words" max:"65536"`
	// fewer places, rising, such as [16, 32]: a training step computes the fewest of these and data.tokens that hold
	// the texts of its batch, and batches are of texts that need as many; empty: all have data.tokens
	TokenLengths []int `toml:"token_lengths" when:"words and steps" max:"65536"`
	// albef (lower case, punctuation deleted, at most data.max_words words) | none (captions as they are) | lowercase
	// | whitespace | lower | canonicalize (as in open_clip: quotation marks, HTML entities and white space; and lower
	// case; and no punctuation)
	Clean string `toml:"clean" when:"words"`
	// texts that stand before every text by their names, each as name=text, such as "query=query: "
	Prompts []string `toml:"prompts" when:"one encoder and words"`
	// name of the one of data.prompts that is used; empty: none
	Prompt string `toml:"prompt" when:"one encoder and words"`
	// tokenizer: vocab.txt, tokenizer.json, vocab.json beside merges.txt, bpe_simple_vocab_16e6.txt.gz, a
	// SentencePiece .model, or a folder with one of them; empty: learned from the training captions
	Vocab string `toml:"vocab" when:"towers"`
	// what stands around a text: albef ([CLS] before it, nothing behind it; for BERT vocabularies) | file (what the
	// files of data.vocab say) | bare (file, with nothing around a text) | known (bare without the unknown token, as in
	// model2vec)
	Template string `toml:"template" when:"words and vocab"`
	// largest size of a learned vocabulary
	VocabSize int `toml:"vocab_size" when:"towers and vocab=" max:"1048576"`
	// what is learned: wordpiece (pieces of words) | words (whole words, as word_tokenize of NLTK finds them, between
	// <start> and <end>) | auto (words for data.kind regions, else wordpiece)
	VocabKind string `toml:"vocab_kind" when:"towers and vocab="`
	// a word that occurs less often in the training captions is <unk>
	VocabMinCount int `toml:"vocab_min_count" when:"towers and vocab= and words learned" max:"1000000"`
	// goroutines that read and transform samples; 0: as many as threads
	Workers int `toml:"workers" max:"1024"`
	// batches prepared ahead; 0: 2
	Prefetch int `toml:"prefetch" max:"1024"`
	// none | memory | disk: keep decoded training images there; evaluation always reads the files
	Cache string `toml:"cache"`
	// folder of the disk cache, of indices of shards, of what is made of stored features and of data.cache_features;
	// made if it is not there; runs may share it, and machines that see the same files under the same paths
	CacheDir string `toml:"cache_dir" when:"cache=disk or cache_features=true or kind=webdataset|pairs"`
	// the cache holds at most this many GB (10^9 bytes) and then stays as it is; and so many the features of a tower
	// may take (data.cache_features)
	CacheMaxGB float64 `toml:"cache_max_gb" when:"cache=memory|disk or cache_features=true" max:"1000000"`
	// cached images are shrunk to this shorter side, which changes the samples a little; 0: kept whole, samples stay
	// the same bit by bit
	CacheSize int `toml:"cache_size" when:"cache=memory|disk" max:"16384"`
	// compute what frozen towers (model.image.freeze, model.text.freeze) give for each training image and caption
	// once, before the first step, into a file in data.cache_dir, and train from there: the numbers stay the same;
	// pictures must not be augmented
	CacheFeatures bool `toml:"cache_features" when:"captions" change:"harmless"`
	// least area share of RandomResizedCrop; 1 with randaugment_ops 0 and flip false: plain resize
	CropScaleMin float64 `toml:"crop_scale_min" when:"pixels"`
	// random horizontal flip
	Flip bool `toml:"flip" when:"pixels"`
	// N of RandAugment; 0 switches it off
	RandAugmentOps int `toml:"randaugment_ops" when:"pixels" max:"64"`
	// M of RandAugment, 0..10
	RandAugmentLvl int `toml:"randaugment_level" when:"pixels and randaugment_ops>0" max:"10"`
	// independent augmentations of an image: 1, or 2 (the second is seen by the momentum encoder), as in TCL and MoCo
	Views int `toml:"views" when:"second view" max:"2"`
	// probability of changing brightness, contrast, saturation (by up to 0.4) and hue (by up to 0.1)
	ColorJitter float64 `toml:"color_jitter" when:"pixels"`
	// probability of dropping the colours
	Grayscale float64 `toml:"grayscale" when:"pixels"`
	// probability of a Gaussian blur with a deviation of 0.1 to 2 pixels
	Blur float64 `toml:"blur" when:"pixels"`
	// probability of filling a random rectangle, 2 to 33 percent of the area, with noise (random erasing), 0.5 in
	// re-identification
	Erase float64 `toml:"erase" when:"pixels"`
	// when a run is resumed and its data are not what they were: refuse | accept (go on with them, and say what
	// changed)
	Changed string `toml:"changed" change:"silent"`
	// train on the first N samples only (sanity check); 0: all
	OverfitSamples int `toml:"overfit_samples" when:"steps" max:"1000000000"`
	// leave out the samples at the end of an epoch that do not fill a batch; else batches run across the border of
	// epochs
	DropLast bool `toml:"drop_last" when:"short batches"`
}

// Values of data.template.
const (
	TemplateALBEF = "albef"
	TemplateFile  = "file"
	TemplateBare  = "bare"
	TemplateKnown = "known"
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

// Defaults implements section.Defaulter.
func (d *Data) Defaults() {
	*d = Data{
		Kind:           "scenes",
		Root:           ".",
		MaxPixels:      64_000_000,
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

// Check implements section.Checked.
func (d *Data) Check(k *section.Checker) {
	k.OneOf("data.kind", Kinds()...)
	k.Positive("data.max_pixels", "data.max_words")
	k.Require("data.max_bad_share", d.MaxBadShare >= 0 && d.MaxBadShare <= 1, "must be between 0 and 1")
	k.Require("data.tokens", d.Tokens >= 2, "must be >= 2", "[CLS] takes one position")
	k.Require("data.tokens", k.Value("model.text.style") == "gru" ||
		float64(d.Tokens) <= k.Number("model.text.positions"), "must be at most model.text.positions",
		"raise model.text.positions or lower data.tokens")
	d.checkLengths(k)
	k.OneOf("data.clean", "albef", "none", "lowercase", "whitespace", "lower", "canonicalize")
	k.OneOf("data.template", TemplateALBEF, TemplateFile, TemplateBare, TemplateKnown)
	k.Require("data.template", d.Template == TemplateALBEF || d.Vocab != "", `must be "albef" without data.vocab`,
		"a learned vocabulary has no file that says more")
	// Special tokens and an alphabet are the least a vocabulary can do with.
	k.Require("data.vocab_size", d.Vocab != "" || d.VocabSize >= 64, "must be >= 64")
	_, err := d.PromptText()
	k.Require("data.prompt", err == nil, fmt.Sprint(err))
	k.OneOf("data.changed", DataRefused, DataAccepted)
	k.OneOf("data.vocab_kind", "auto", VocabWordPiece, VocabWords)
	k.Positive("data.vocab_min_count")
	d.checkCache(k)
	if d.CacheFeatures {
		d.checkFeatures(k)
	}
	k.NotNegative("data.workers", "data.prefetch", "data.randaugment_ops", "data.overfit_samples")
	d.checkViews(k)
	for _, p := range []string{"data.color_jitter", "data.grayscale", "data.blur", "data.erase"} {
		k.Require(p, k.Number(p) >= 0 && k.Number(p) <= 1, "must be between 0 and 1")
	}
	k.Require("data.crop_scale_min", d.CropScaleMin > 0 && d.CropScaleMin <= 1, "must be above 0 and at most 1")
	k.Require("data.randaugment_level", d.RandAugmentLvl >= 0 && d.RandAugmentLvl <= 10, "must be between 0 and 10")
	k.Require("data.overfit_samples", d.OverfitSamples == 0 || !d.DropLast ||
		d.OverfitSamples >= int(k.Number("train.batch_size")), "must be 0 or at least train.batch_size",
		"or set data.drop_last = false")
}

// checkLengths checks the lengths of training steps.
func (d *Data) checkLengths(k *section.Checker) {
	const key = "data.token_lengths"
	if len(d.TokenLengths) == 0 {
		return
	}
	last := 1
	for _, n := range d.TokenLengths {
		k.Require(key, n > last && n < d.Tokens, "must rise from at least 2 to less than data.tokens", "such as [16, 32] of 64")
		last = n
	}
	k.Require(key, len(d.TokenLengths) <= 8, "must name at most 8 lengths", "each is a computation of its own")
	k.Training(key, !k.Has(section.Identities), "must be empty with batches by identity", "which hold given rows")
	k.Training(key, !k.Has(section.Mixed), "must be empty with data.sentences.batches > 0", "whose batches have a given order")
	k.Training(key, !d.CacheFeatures || k.Value("model.text.freeze") != true,
		"must be empty with data.cache_features and a frozen text tower", "which is not computed in training")
	k.Training(key, !k.Has(section.FeatureBatches), `must be empty with train.accumulate = "features"`,
		"all micro-batches have one length then")
	k.Training(key, k.Number("objective.captioning.weight") == 0, "must be empty with objective.captioning.weight > 0",
		"whose decoder writes captions of data.tokens places")
	k.Training(key, k.Value("objective.distill_scores.teacher") == "",
		"must be empty with objective.distill_scores.teacher", "which reads texts of data.tokens places")
	k.Training(key, k.Value("model.text.style") != "siglip", `must be empty with model.text.style = "siglip"`,
		"which reads padding")
}

func (d *Data) checkCache(k *section.Checker) {
	k.OneOf("data.cache", "none", "memory", "disk")
	k.Require("data.cache", d.Cache == "none" || d.Kind != "scenes" && !(d.ReadsExamples() && d.Drawn()),
		"must be none for scenes", "they are drawn, not decoded")
	k.Require("data.cache", d.Cache == "none" || d.Kind != "pairs", "must be none for data.kind \"pairs\"",
		"features are not decoded")
	k.Require("data.cache", d.Cache == "none" || d.Kind != "regions", "must be none for data.kind \"regions\"",
		"features are not decoded")
	k.Require("data.cache", d.Cache == "none" || d.Kind != SentencePairsKind,
		"must be none for data.kind \"sentence_pairs\"", "sentences are not decoded")
	k.Require("data.cache", d.Cache == "none" || !k.Has(section.Sentences), "must be none",
		k.Named()+" reads no images")
	k.Require("data.cache_dir", d.Cache != "disk" || d.CacheDir != "", `must name a folder for data.cache = "disk"`)
	k.Positive("data.cache_max_gb")
	k.NotNegative("data.cache_size")
	k.Require("data.cache_size", d.CacheSize == 0 || d.CacheSize >= int(k.Number("model.image.size")),
		"must be 0 or at least model.image.size", "crops of smaller images would be blurred")
}

// checkFeatures tells what makes the features of frozen towers more than a function of an image or a caption.
func (d *Data) checkFeatures(k *section.Checker) {
	const key = "data.cache_features"
	image, text := k.Value("model.image.freeze") == true, k.Value("model.text.freeze") == true
	refuse := func(ok bool, msg, hint string) { k.Training(key, ok, "must be false "+msg, hint) }
	refuse(k.Has(section.Captions) && !k.Has(section.Stored), "with this model.system",
		k.Named()+" has no frozen tower beside a trained one")
	refuse(image || text, "without a frozen tower", "set model.image.freeze or model.text.freeze to true")
	refuse(d.CacheDir != "", "without a folder", "name one with data.cache_dir")
	refuse(d.Kind != "scenes", `with data.kind "scenes"`, "every epoch has new scenes: use images in files")
	refuse(d.OverfitSamples == 0, "with data.overfit_samples", "of a few samples nothing need be kept")
	refuse(k.Number("model.text.fusion_layers") == 0 || !k.Has(section.Fusion), "with fusion layers",
		"they read all tokens of a tower, and its class tokens alone are kept: set model.text.fusion_layers, objective.itm.weight and objective.mlm.weight to 0")
	refuse(k.Value("objective.tcl.local") == false, "with objective.tcl.local",
		"it reads all tokens of a tower, and its class tokens alone are kept")
	if !image {
		return
	}
	const same = "the features of a frozen image tower are computed once (data.cache_features): every epoch sees the same picture"
	k.Training("data.crop_scale_min", d.CropScaleMin == 1, "must be 1", same)
	k.Training("data.flip", !d.Flip, "must be false", same)
	for _, p := range []string{"data.randaugment_ops", "data.color_jitter", "data.grayscale", "data.blur",
		"data.erase"} {
		k.Training(p, k.Number(p) == 0, "must be 0", same)
	}
	k.Training("data.views", d.Views == 1, "must be 1", same)
	k.Training("model.image.keep_patches", k.Number("model.image.keep_patches") >= 1, "must be 1", same)
}

// checkViews asks for somebody who looks at the second view, and for a second view
// where a system has nothing else to compare an image with.
func (d *Data) checkViews(k *section.Checker) {
	k.Require("data.views", d.Views == 1 || d.Views == 2, "must be 1 or 2")
	switch {
	case k.Has(section.Identities):
		k.Require("data.views", d.Views == 1, "must be 1", k.Named()+" sees an image once")
	case k.Has(section.Classes):
		k.Require("data.views", d.Views == 1, "must be 1", k.Named()+" sees an image once")
	case k.Has(section.Sentences):
		k.Require("data.views", d.Views == 1, "must be 1", k.Named()+" sees no images")
	case k.Has(section.OneEncoder):
		k.Require("data.views", d.Views == 1, "must be 1", k.Named()+" is not trained")
	case !k.Has(section.Captions):
		k.Require("data.views", d.Views == 2, "must be 2", k.Named()+" compares two views of an image")
	case k.Has(section.Stored):
		k.Require("data.views", d.Views == 1, "must be 1", "stored features have no views")
	default:
		k.Require("data.views", d.Views == 1 || k.Value("momentum.enabled") == true, "must be 1 without momentum",
			"no teacher looks at a second view")
	}
}

// PromptText returns the prompt that stands before every text.
func (d Data) PromptText() (string, error) {
	if d.Prompt == "" {
		return "", nil
	}
	var names []string
	for _, item := range d.Prompts {
		name, text, _ := strings.Cut(item, "=")
		if name == d.Prompt {
			return text, nil
		}
		names = append(names, strconv.Quote(name))
	}
	if len(names) == 0 {
		return "", errors.New("names a prompt, and the encoder has none: leave it empty")
	}
	return "", fmt.Errorf("is no prompt of the encoder: use %s, or leave it empty", strings.Join(names, ", "))
}

// ReadsExamples says whether the data is examples of a downstream task (data.Examples).
func (d Data) ReadsExamples() bool { return kinds()[d.Kind].Examples != nil }

// Gives implements section.Giver.
func (d *Data) Gives() (list []section.Fact) {
	for _, x := range []struct {
		has  bool
		fact section.Fact
	}{
		{d.Drawn(), section.Drawn}, {d.ReadsExamples(), section.Examples}, {d.LearnsWords(), section.WordVocab},
		{d.Kind == "sentences" && d.Sentences.Positive != "", section.Positives},
		{d.Kind == "sentences" && d.Sentences.Positive != "" && d.Sentences.Negative != "", section.Negatives},
	} {
		if x.has {
			list = append(list, x.fact)
		}
	}
	return list
}
