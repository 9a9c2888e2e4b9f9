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
	OneEncoder    Fact = "one encoder"    // it is one encoder that is used as it is
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

// Facts that towers, heads and interactions give.
const (
	Patches        Fact = "patches"         // images pass a transformer of patches
	Regions        Fact = "regions"         // images are features of regions
	Convolutions   Fact = "convolutions"    // images pass a residual network
	BatchNorms     Fact = "batch norms"     // those of a residual network are trained
	RegionNorms    Fact = "region norms"    // batch norms of regions are trained
	WordAttention  Fact = "word attention"  // texts pass a transformer
	Recurrent      Fact = "recurrent"       // texts pass recurrent units
	Adapters       Fact = "adapters"        // linear layers of towers have adapters of low rank
	LowRank        Fact = "low rank"        // there are paths of low rank, of model.lora or of model.tuning
	Tuned          Fact = "tuned"           // towers are trained by few parameters
	Foldable       Fact = "foldable"        // weights can take in what stands beside them
	Skips          Fact = "skips"           // hidden layers of stored features have skips to add
	TowerDropout   Fact = "tower dropout"   // a tower or its heads drop hidden states
	TokenScores    Fact = "token scores"    // images and texts are compared by their tokens
	FeatureBatches Fact = "feature batches" // an update compares the features of several micro-batches
)

// Facts that other sections give.
const (
	Teacher      Fact = "teacher"           // a momentum encoder is trained beside the model
	Queue        Fact = "queue"             // there is a queue of past features
	Features     Fact = "features"          // images and texts are compared by one vector each
	Pixels       Fact = "pixels"            // images are read as pixels
	GPU          Fact = "gpu"               // graphs run on a GPU
	Drawn        Fact = "drawn"             // the data is the built-in scenes, whose training split has no end
	Examples     Fact = "examples"          // the data is examples of a downstream task
	WordVocab    Fact = "words learned"     // a vocabulary of whole words is learned
	SecondView   Fact = "second view"       // a training step reads a second view of an image
	ShortBatches Fact = "short batches"     // the end of an epoch may not fill a batch
	Files        Fact = "files"             // samples are read from files
	ImageFiles   Fact = "image files"       // images are decoded from files
	Root         Fact = "root"              // some path starts from data.root
	TextFiles    Fact = "text files"        // sentences are read from files
	Positives    Fact = "positives"         // a sentence has a positive beside it
	Negatives    Fact = "negatives"         // and a hard negative
	Ranks        Fact = "ranks"             // several processes train together
	Searched     Fact = "searched"          // a gallery is searched by the score of pairs or of identities
	TextLearns   Fact = "text learns"       // the text tower or fusion layers are trained
	Mixed        Fact = "mixed"             // batches of sentences stand between those of pairs
	Encoded      Fact = "encoded sentences" // sentences are encoded for an evaluation
)

// Facts that a loss gives which is on: what it reads.
const (
	PairScores      Fact = "pair scores"      // the score of objective.itc
	InBatch         Fact = "in batch"         // other rows of the batch, by a contrast: one row alone teaches nothing
	Temperature     Fact = "temperature"      // the temperature of objective.itc
	Contrast        Fact = "contrast"         // and trains it
	Targets         Fact = "targets"          // the targets of contrasts (objective.mafa.uniform)
	BatchImages     Fact = "batch images"     // images of all rows of a batch
	Vectors         Fact = "vectors"          // one vector of each image or text of a pair
	States          Fact = "states"           // more than the features of other micro-batches
	AllPatches      Fact = "all patches"      // all patches of an image
	FusedPairs      Fact = "fused pairs"      // pairs that pass the fusion layers
	PastFeatures    Fact = "past features"    // the features in the queue, as negatives
	BackboneQueue   Fact = "backbone queue"   // what is before the heads, in the queue
	Soft            Fact = "soft"             // soft targets of the teacher where objective.distill.alpha is above 0
	SoftTargets     Fact = "soft targets"     // and there is such a loss, or alpha is 0
	TeacherFeatures Fact = "teacher features" // features or states of the teacher
	TeacherImages   Fact = "teacher images"   // and those of images
	Dropout         Fact = "dropout"          // dropout masks of its own
	Downstream      Fact = "downstream"       // fused pairs for a downstream task, which is trained alone
	TwoPictures     Fact = "two pictures"     // fusion layers that read two pictures of a text
	Decoder         Fact = "decoder"          // a decoder of the fusion layers, which it trains
	NamedClasses    Fact = "named classes"    // as many classes as the training data names, see objectives.Host
	Beside          Fact = "beside"           // nothing that keeps it from standing beside the loss of a task
	Score           Fact = "score"            // the score of objective.itc, in training or in evaluation
	Metric          Fact = "metric"           // the learned metric of objective.gssf
	Graph           Fact = "graph"            // the graph over the queue
	Geodesic        Fact = "geodesic"         // a score through that graph
	Leading         Fact = "leading"          // features, whose leading channels may be features too
)

// about is what messages say of a fact.
type about struct {
	with string // what gives it, in words that follow "read with"
	lack string // in words that follow the name of a system, or a sentence of a fact that no system gives
}

var facts = map[Fact]about{
	Captions: {"a model.system of pairs", "has no pairs of images and captions"},
	Words:    {"a model.system with a text tower", "has no text tower"},
	Fusion:   {"a model.system with fusion layers", "has no fusion layers"},
	Momentum: {"a model.system with a momentum encoder", "has no momentum encoder"},
	Tokens:   {"a model.system with tokens", "has no tokens"},
	Stored:   {"a model.system over stored features", "does not read stored features"},
	Towers:   {"a model.system with towers", "has no towers"},
	Images:   {"a model.system that reads images", "does not read images"},
	Views:    {"a model.system of two views of an image", "does not compare views of an image"},
	Steps: {`a model.system that is trained in steps, which "align", "text_encoder" and "image_encoder" are not`,
		"is not trained in steps"},
	Fitted:        {`model.system = "align"`, "is not fitted in closed form"},
	OneEncoder:    {`model.system = "text_encoder" or "image_encoder"`, "is not one encoder"},
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

	Patches:        {`a model.image.style other than "regions", "resnet" and "convnet"`, "this run reads no patches"},
	Regions:        {`model.image.style = "regions"`, "this run reads no regions"},
	Convolutions:   {`model.image.style = "resnet" or "convnet"`, "this run has no network of convolutions"},
	BatchNorms:     {`model.image.style = "resnet" with batch norms that are not frozen`, "this run trains no batch norms"},
	RegionNorms:    {"model.image.regions.batch_norm = true", "this run trains no batch norms of regions"},
	WordAttention:  {`a model.text.style other than "gru"`, "this run has no transformer of texts"},
	Recurrent:      {`model.text.style = "gru"`, "this run has no recurrent units"},
	Adapters:       {"model.lora.rank > 0", "this run has no adapters of low rank"},
	LowRank:        {"model.lora.rank or model.tuning.adapter_width > 0", "this run has no paths of low rank"},
	Tuned:          {"model.lora or model.tuning", "this run trains whole towers"},
	Foldable:       {"model.lora.rank > 0 or model.tuning.ssf = true", "there is nothing that weights can take in"},
	Skips:          {"model.heads.layers > 1, or 1 and features as wide as model.heads.hidden", "there are no skips"},
	TowerDropout:   {"a dropout of the towers, model.text.dropout or model.heads.dropout > 0", "no tower has dropout"},
	TokenScores:    {"model.interaction.kind", "images and texts are compared by their features"},
	FeatureBatches: {`train.accumulate = "features"`, "the pairs of a micro-batch are compared"},

	Teacher:   {"momentum.enabled = true", "there is no momentum encoder"},
	Queue:     {"queue.size > 0", "there is no queue of past features"},
	Features:  {`model.interaction.kind = ""`, "images and texts are compared by their tokens"},
	Pixels:    {`a model.system that reads images and a model.image.style other than "regions"`, "this run does not read pixels"},
	GPU:       {`compute.device = "cuda"`, "this run runs on the CPU"},
	Drawn:     {`data.kind = "scenes", or "regions" or a downstream task with source = "scenes"`, "this run does not read scenes"},
	Examples:  {`data.kind of a downstream task, such as "entailment"`, "this run has no examples of a task"},
	WordVocab: {`data.vocab_kind = "words" or, with data.kind = "regions", "auto"`, "this run learns no words"},
	SecondView: {"a loss against momentum features of images, such as objective.itc.weight > 0",
		"this run does not read a second view"},
	ShortBatches: {"a model.system that is trained in steps and not by identities, whose epochs are whole batches",
		"this run has whole batches"},
	Files: {`a data.kind other than "scenes" and a model.system that is trained in steps, data.sentences.batches, or eval.sentences.tasks`,
		"this run does not read files"},
	ImageFiles: {`a data.kind other than "scenes", "pairs", "sentences" and "sentence_pairs", with "regions" data.regions.pictures, ` +
		"or a model.system with a text tower and eval.zeroshot.images", "this run does not read files of images"},
	Root: {`a data.kind other than "scenes", data.vocab, or files of data.sentences, eval.zeroshot, eval.textprobe, ` +
		"eval.sentences, eval.sentiment or eval.vqa", "this run does not read files"},
	TextFiles: {`data.kind = "sentences", or data.sentences.batches > 0`, "this run does not read files of sentences"},
	Positives: {"data.sentences.positive", "this run has no positives"},
	Negatives: {"data.sentences.negative", "this run has no hard negatives"},
	Ranks:     {"several processes that train together", "one process trains"},
	Searched:  {"a model.system of pairs or of identities that is trained in steps", "there is no score to search by"},
	TextLearns: {"model.text.freeze = false, or fusion layers, and a loss that reads texts",
		"no text tower is trained"},
	Mixed:           {"data.sentences.batches > 0", "this run has no batches of sentences"},
	Encoded:         {"eval.sentences.tasks or eval.sentiment.train_texts", "this run encodes no sentences"},
	PairScores:      {"a loss over scores of pairs", "no loss compares pairs by a score"},
	InBatch:         {"a contrast within the batch", "no loss is a contrast within the batch"},
	Temperature:     {"objective.itc.weight, objective.itc.in_batch_weight or objective.itm.weight > 0", "no loss reads the temperature"},
	Contrast:        {"objective.itc.weight or objective.itc.in_batch_weight > 0", "no loss is a contrast"},
	Targets:         {"objective.itc.in_batch_weight > 0 or, of pairs, objective.itc.weight > 0", "no loss is a contrast of pairs"},
	BatchImages:     {"a loss on images", "no loss reads images"},
	Vectors:         {"a loss on features", "no loss reads features"},
	States:          {"a loss on hidden states", "no loss reads hidden states"},
	AllPatches:      {"a loss on all patches", "no loss reads all patches"},
	FusedPairs:      {"objective.itm.weight, objective.mlm.weight or that of a downstream task > 0", "no loss reads fused pairs"},
	PastFeatures:    {"objective.itc.weight or objective.adcl.weight > 0", "no loss reads the queue"},
	BackboneQueue:   {"objective.geometric.weight > 0 and a model.system with towers", "the queue keeps no features before the heads"},
	Soft:            {"objective.itc.weight, objective.mlm.weight or that of a downstream task > 0", "no loss has soft targets"},
	SoftTargets:     {"objective.itc.weight, objective.mlm.weight or that of a downstream task > 0", "no loss has soft targets"},
	TeacherFeatures: {"a loss against momentum features", "no loss reads the momentum encoder"},
	TeacherImages:   {"a loss against momentum features of images, such as objective.itc.weight > 0", "no loss reads the momentum encoder of images"},
	Dropout:         {"a loss with dropout", "no loss has dropout"},
	Downstream:      {"the loss of a downstream task", "no loss is of a downstream task"},
	TwoPictures:     {"a loss on two pictures of a text", "no text has two pictures"},
	Decoder:         {`objective.vqa.weight > 0 or objective.captioning.decoder = "transformer"`, "no loss trains a decoder"},
	NamedClasses:    {"objective.classes.weight or objective.multimodal.weight > 0", "no loss tells classes that the data names"},
	Beside:          {"a loss that stands beside others", "every loss is trained alone"},
	Score:           {`a contrast, matching whose objective.itm.negatives = "score", or eval.score = "train"`, "nothing compares pairs by the score"},
	Metric:          {`objective.itc.score = "gssf"`, "no score reads a learned metric"},
	Graph:           {`objective.itc.score = "geodesic"`, "nothing reads a graph over the queue"},
	Geodesic:        {`objective.itc.score = "geodesic"`, "no score is a geodesic"},
	Leading: {"a contrast or another loss over scores of pairs, objective.simcse.weight or objective.triplet.weight > 0",
		"no loss compares features"},
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

// Lack says why a fact does not hold and what would give it: systems that also give the others which are asked for.
func (s Facts) Lack(f Fact, others ...Fact) (why, cure string) {
	var by, some []string
	for _, name := range s.Names {
		if gives := s.Of(name); slices.Contains(gives, f) {
			some = append(some, fmt.Sprintf("%q", name))
			if !slices.ContainsFunc(others, func(o Fact) bool { return !slices.Contains(gives, o) }) {
				by = append(by, fmt.Sprintf("%q", name))
			}
		}
	}
	if len(by) == 0 {
		by = some
	}
	why = s.Named() + " " + facts[f].lack
	switch n := len(by); {
	case !f.Known():
		return fmt.Sprintf("nothing gives %q", f), "add a section that does"
	case n == 0:
		return facts[f].lack, "set " + f.With()
	case n == 1:
		return why, "use " + by[0]
	default:
		return why, "use " + strings.Join(by[:n-1], ", ") + " or " + by[n-1]
	}
}
