package section

import (
	"fmt"
	"slices"
	"strings"
)

// Fact is something that a configuration has or lacks, and that components need or depend on.
type Fact string

// Facts that a model.system gives.
const (
	Captions      Fact = "captions"       // pairs of an image and a caption
	Words         Fact = "words"          // a text tower that reads tokens
	Fusion        Fact = "fusion"         // layers in which text and image meet
	Momentum      Fact = "momentum"       // it can have a momentum encoder
	Tokens        Fact = "tokens"         // an encoding has parts: patches of an image, tokens of a text
	Stored        Fact = "stored"         // it reads stored features and no pixels
	Towers        Fact = "towers"         // it has towers that read images or words
	Images        Fact = "images"         // it has a tower of images
	Views         Fact = "views"          // it compares two views of an image without a caption
	Steps         Fact = "steps"          // it is trained in steps, not fitted in closed form
	Fitted        Fact = "fitted"         // it is fitted in closed form
	Identities    Fact = "identities"     // images alone whose identities are known
	Sentences     Fact = "sentences"      // texts alone
	SentencePairs Fact = "sentence pairs" // pairs of sentences
	Prototypes    Fact = "prototypes"     // views are compared with learned prototypes
	Interacts     Fact = "interacts"      // images and texts can be compared by their tokens
	Classes       Fact = "classes"        // images alone whose classes are known
	ImagesAlone   Fact = "images alone"   // images without captions
	FeatureHeads  Fact = "heads"          // heads over stored features, trained in steps
	Queued        Fact = "queued"         // a batch can be compared with a queue
	TowerAsSpace  Fact = "tower as space" // a tower as wide as the space has no projection
)

// Facts that other sections give.
const (
	Teacher         Fact = "teacher"          // a momentum encoder is trained beside the model
	Pixels          Fact = "pixels"           // images are read as pixels
	Patches         Fact = "patches"          // images pass a transformer of patches
	Regions         Fact = "regions"          // images are features of regions
	Convolutions    Fact = "convolutions"     // images pass a residual network
	BatchNorms      Fact = "batch norms"      // those of a residual network are trained
	RegionNorms     Fact = "region norms"     // batch norms of regions are trained
	WordAttention   Fact = "word attention"   // texts pass a transformer
	Recurrent       Fact = "recurrent"        // texts pass recurrent units
	Adapters        Fact = "adapters"         // linear layers of towers have adapters of low rank
	LowRank         Fact = "low rank"         // there are paths of low rank, of model.lora or of model.tuning
	Tuned           Fact = "tuned"            // towers are trained by few parameters
	Foldable        Fact = "foldable"         // weights can take in what stands beside them
	Skips           Fact = "skips"            // hidden layers of stored features have skips to add
	Dropout         Fact = "dropout"          // something drops hidden states
	Features        Fact = "features"         // images and texts are compared by one feature of each
	TokenScores     Fact = "token scores"     // images and texts are compared by their tokens
	FusionLoss      Fact = "fusion loss"      // a loss reads fusion layers
	PatchLoss       Fact = "patch loss"       // a loss reads all patches of an image
	TeacherFeatures Fact = "teacher features" // a loss, or the momentum itself, reads features of the teacher
	LearnedMetric   Fact = "learned metric"   // a score has a learned metric
	FeatureBatches  Fact = "feature batches"  // an update compares the features of several micro-batches
	Drawn           Fact = "drawn"            // the data is the built-in scenes, whose training split has no end
	Examples        Fact = "examples"         // the data is examples of a downstream task
	WordVocab       Fact = "words learned"    // a vocabulary of whole words is learned
	SecondView      Fact = "second view"      // a training step reads a second view of an image
	ShortBatches    Fact = "short batches"    // the end of an epoch may not fill a batch
	Files           Fact = "files"            // samples are read from files
	ImageFiles      Fact = "image files"      // images are decoded from files
	Root            Fact = "root"             // some path starts from data.root
	TextFiles       Fact = "text files"       // sentences are read from files
	Positives       Fact = "positives"        // a sentence has a positive beside it
	Negatives       Fact = "negatives"        // and a hard negative
	Mixed           Fact = "mixed"            // batches of sentences stand between those of pairs
	GPU             Fact = "gpu"              // graphs run on a GPU
)

// about is what messages say of a fact.
type about struct {
	with string // what gives it, in words that follow "read with"
	lack string // in words that follow the name of a system
}

var facts = map[Fact]about{
	Captions:      {"a model.system of pairs", "has no pairs of images and captions"},
	Words:         {"a model.system with a text tower", "has no text tower"},
	Fusion:        {"a model.system with fusion layers", "has no fusion layers"},
	Momentum:      {"a model.system with a momentum encoder", "has no momentum encoder"},
	Tokens:        {"a model.system with tokens", "has no tokens"},
	Stored:        {"a model.system over stored features", "does not read stored features"},
	Towers:        {"a model.system with towers", "has no towers"},
	Images:        {"a model.system that reads images", "does not read images"},
	Views:         {"a model.system of two views of an image", "does not compare views of an image"},
	Steps:         {`a model.system that is trained in steps, which "align" is not`, "is not trained in steps"},
	Fitted:        {`model.system = "align"`, "is not fitted in closed form"},
	Identities:    {`model.system = "identities"`, "has no identities"},
	Sentences:     {"a model.system of texts alone", "reads more than texts"},
	SentencePairs: {`model.system = "sentence_pairs"`, "has no pairs of sentences"},
	Prototypes:    {`model.system = "swav"`, "has no prototypes"},
	Interacts:     {`model.system = "clip" or "matching"`, "does not compare tokens"},
	Classes:       {`model.system = "classes"`, "has no classes"},
	ImagesAlone:   {"a model.system of images alone", "reads more than images"},
	FeatureHeads:  {`model.system = "heads"`, "has no heads over stored features"},
	Queued:        {"a model.system with a queue", "compares a batch with itself"},
	TowerAsSpace:  {`model.system = "matching"`, "projects every tower"},

	Teacher:         {"momentum.enabled = true", "has no momentum encoder"},
	Pixels:          {`a model.system that reads images and a model.image.style other than "regions"`, "does not read pixels"},
	Patches:         {`a model.image.style other than "regions" and "resnet"`, "has no patches of images"},
	Regions:         {`model.image.style = "regions"`, "reads no regions"},
	Convolutions:    {`model.image.style = "resnet"`, "has no residual network"},
	BatchNorms:      {`model.image.style = "resnet" with batch norms that are not frozen`, "trains no batch norms"},
	RegionNorms:     {"model.image.regions.batch_norm = true", "trains no batch norms of regions"},
	WordAttention:   {`a model.text.style other than "gru"`, "has no transformer of texts"},
	Recurrent:       {`model.text.style = "gru"`, "has no recurrent units"},
	Adapters:        {"model.lora.rank > 0", "has no adapters of low rank"},
	LowRank:         {"model.lora.rank or model.tuning.adapter_width > 0", "has no paths of low rank"},
	Tuned:           {"model.lora or model.tuning", "is not trained by few parameters"},
	Foldable:        {"model.lora.rank > 0 or model.tuning.ssf = true", "has nothing that weights can take in"},
	Skips:           {"model.heads.layers > 1, or 1 and features as wide as model.heads.hidden", "has no skips"},
	Dropout:         {"a dropout of the towers, model.text.dropout or model.heads.dropout > 0", "has no dropout"},
	Features:        {`model.interaction.kind = ""`, "compares tokens"},
	TokenScores:     {"model.interaction.kind", "compares features"},
	FusionLoss:      {"objective.itm.weight, objective.mlm.weight or that of a downstream task > 0", "trains no fusion layers"},
	PatchLoss:       {"a loss over all patches, such as objective.word_patch", "has no loss over patches"},
	TeacherFeatures: {"a loss against momentum features", "has no loss against momentum features"},
	FeatureBatches:  {`train.accumulate = "features"`, "compares the pairs of a micro-batch"},
	LearnedMetric:   {`objective.itc.score = "gssf"`, "has no learned metric"},
	Drawn:           {`data.kind = "scenes", or "regions" or a downstream task with source = "scenes"`, "does not read scenes"},
	Examples:        {`data.kind of a downstream task, such as "entailment"`, "has no examples of a task"},
	WordVocab:       {`data.vocab_kind = "words" or, with data.kind = "regions", "auto"`, "learns no words"},
	GPU:             {`compute.device = "cuda"`, "runs on the CPU"},
	SecondView: {"a loss against momentum features of images, such as objective.itc.weight > 0",
		"does not read a second view"},
	ShortBatches: {"a model.system that is trained in steps and not by identities, whose epochs are whole batches",
		"has whole batches"},
	Files: {`a data.kind other than "scenes" and a model.system that is trained in steps, data.sentences.batches, or eval.sentences.tasks`,
		"does not read files"},
	ImageFiles: {`a data.kind other than "scenes", "pairs", "sentences" and "sentence_pairs", with "regions" data.regions.pictures, ` +
		"or a model.system with a text tower and eval.zeroshot.images", "does not read files of images"},
	Root: {`a data.kind other than "scenes", data.vocab, or files of data.sentences, eval.zeroshot, eval.textprobe, ` +
		"eval.sentences, eval.sentiment or eval.vqa", "does not read files"},
	TextFiles: {`data.kind = "sentences", or data.sentences.batches > 0`, "does not read files of sentences"},
	Positives: {"data.sentences.positive", "has no positives"},
	Negatives: {"data.sentences.negative", "has no hard negatives"},
	Mixed:     {"data.sentences.batches > 0", "has no batches of sentences"},
}

// With says what gives the fact, in words that follow "read with".
func (f Fact) With() string { return facts[f].with }

// Known says whether f is one of the facts.
func (f Fact) Known() bool { _, ok := facts[f]; return ok }

// Facts are those that hold in a configuration.
type Facts struct {
	System string                     // model.system
	Of     func(system string) []Fact // what a system gives
	Names  []string                   // of all systems
	Held   map[Fact]bool
}

// Named is the system in a message.
func (s Facts) Named() string { return fmt.Sprintf("model.system %q", s.System) }

// Lack says why a fact does not hold and what would give it.
func (s Facts) Lack(f Fact) (why, cure string) {
	var by []string
	for _, name := range s.Names {
		if slices.Contains(s.Of(name), f) {
			by = append(by, fmt.Sprintf("%q", name))
		}
	}
	why = s.Named() + " " + facts[f].lack
	switch n := len(by); n {
	case 0:
		return why, "set " + f.With()
	case 1:
		return why, "use " + by[0]
	default:
		return why, "use " + strings.Join(by[:n-1], ", ") + " or " + by[n-1]
	}
}
