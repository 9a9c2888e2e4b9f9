package model

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
)

// rankCase is a system or a loss that several processes train.
type rankCase struct {
	sets  []string             // over run/testdata/keys.toml
	cfg   func() config.Config // in their place
	o     func(t *testing.T, o *Options)
	ranks int // 0: 2
	// local are parts that compare a rank's own rows, and so are others than on one process; gradients are not compared
	// then.
	local []string
}

// rankCases are all systems and losses, with dropout.
func rankCases() map[string]rankCase {
	dual := []string{"model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0"}
	cosine := []string{"objective.itc.scores=[]", "objective.siglip.weight=0", "objective.geometric.weight=0", "objective.tcl.intra=false", "objective.tcl.local=false"}
	untaught := []string{"momentum.enabled=false", "queue.size=0", "objective.distill.alpha=0", "objective.itc.weight=0", "data.views=1"}
	clip := slices.Concat(dual, cosine, untaught, []string{"model.system=clip"})
	pair := []string{"objective.itc.positives=pair"}
	with := func(lists ...[]string) rankCase { return rankCase{sets: slices.Concat(lists...)} }
	alone := slices.Concat(cosine, []string{"objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itc.score=cosine", "objective.itm.weight=0", "objective.mlm.weight=0", "queue.size=0", "data.views=1", "eval.rerank_top=0"})
	views := slices.Concat(dual, cosine, pair, []string{"objective.distill.alpha=0", "model.head.topology=sphere", "objective.itc.in_batch_weight=0"})
	heads := slices.Concat(dual, cosine, []string{"model.system=heads", "data.kind=pairs", "data.pairs.image=image.safetensors", "data.pairs.text=text.safetensors", "data.views=1",
		"model.heads.hidden=12", "model.heads.layers=2", "model.heads.in_image=6", "model.heads.in_text=4", "model.head.topology=sphere"})
	regions := []string{"model.system=matching", "data.kind=regions", "data.regions.source=scenes", "model.image.style=regions", "model.image.regions.in=5", "data.regions.most=4", "model.head.topology=sphere"}
	resnet := []string{"model.image.style=resnet", "model.image.resnet.depth=18", "model.image.resnet.width=2", "model.image.resnet.small_stem=true"}
	sentences := slices.Concat(dual, cosine, untaught, pair, []string{"objective.itc.in_batch_weight=0", "model.head.topology=sphere", "model.head.dim=16", "objective.itc.score=cosine"})
	judged := slices.Concat(sentences, []string{"model.system=sentence_pairs", "objective.sentence_pairs.weight=1", "data.kind=sentence_pairs", "data.sentence_pairs.val_files=[\"pairs.csv\"]"})
	classified := slices.Concat(dual, cosine, untaught, pair, []string{"model.system=classes", "objective.itc.in_batch_weight=0", "objective.itc.score=cosine", "model.head.topology=sphere", "model.head.dim=16",
		"objective.classes.weight=1"})
	return map[string]rankCase{
		"albef":               with(cosine),
		"albef, pairs":        with(cosine, pair, []string{"data.views=1", "momentum.dropout=true", "model.text.layers=2", "model.text.fusion_layers=2"}),
		"albef, dynamic":      with(cosine, pair, []string{"momentum.rule=dynamic", "objective.itm.negative_floor=0.1"}),
		"albef, one loss":     with(alone, []string{"objective.mlm.weight=1"}),
		"albef, matching":     with(cosine, untaught, pair, []string{"objective.mlm.weight=0"}),
		"albef, one row each": {sets: slices.Concat(cosine, []string{"train.batch_size=4"}), ranks: 4},
		"matching, one row each": {sets: slices.Concat(clip, []string{"train.batch_size=4", "model.system=matching", "model.head.topology=sphere", "model.head.dim=16", "model.interaction.kind=sgr", "model.interaction.sim_dim=6",
			"objective.itc.score=gssf", "objective.itc.in_batch_weight=0", "objective.hinge.weight=1"}), ranks: 4},
		"albef, four ranks":      {sets: slices.Concat(cosine, pair), ranks: 4},
		"albef, computed again":  with(cosine, pair, []string{"compute.recompute=true", "model.text.layers=2"}),
		"albef, local negatives": {sets: slices.Concat(cosine, pair, []string{"parallel.negatives=local"}), local: []string{"itm", "itm_accuracy"}},
		"albef, relabelled": {cfg: func() config.Config {
			cfg := mafaConfig()
			cfg.Train.BatchSize, cfg.Queue.Size, cfg.Parallel.Negatives = 8, 16, config.OfOwnRank
			return cfg
		}, o: judgedBy, local: []string{"itm", "itm_accuracy", "itc", "mafa_positives", "mafa_replaced", "itc_in_batch"}},
		"clip, taught by scores":   {cfg: taught(""), o: withTeacher},
		"clip, taught by a metric": {cfg: taught("dense"), o: withTeacher},
		"geodesic":                 with(nil),
		"geodesic, pairs":          with(pair, []string{"objective.itc.scores=[]", "objective.itc.score=geodesic"}),
		"clip":                     with(clip, pair),
		"clip, ids":                with(clip),
		"clip, sigmoid":            with(clip, pair, []string{"objective.siglip.weight=1", "objective.itc.in_batch_weight=0"}),
		"clip, sigmoid ids":        with(clip, []string{"objective.siglip.weight=1"}),
		"clip, gru":                with(clip, pair, []string{"objective.itc.temperature=0.07", "objective.itc.temperature_max=0.5", "model.text.style=gru", "model.text.gru.embedding=6", "model.text.layers=2"}),
		"clip, patches":            with(clip, pair, []string{"model.image.keep_patches=0.5"}),
		"clip, network":            with(clip, []string{"objective.itc.score=gssf", "objective.gssf.form=mlp", "objective.gssf.hidden=6"}),
		"clip, hinge": with(clip, []string{"objective.itc.in_batch_weight=0", "objective.hinge.weight=1", "objective.hinge.margin=1.5", "objective.hinge.warmup_steps=2",
			"objective.poly.weight=1", "objective.cmpm.weight=1"}),
		"clip, metric": with(clip, pair, []string{"objective.itc.score=gssf", "objective.gssf.form=dense", "objective.gssf.dropout=0.3", "model.head.topology=sphere"}),
		"clip, words and patches": with(clip, []string{"model.head.topology=sphere", "objective.itc.in_batch_weight=0", "objective.word_patch.weight=1",
			"objective.token_image.weight=1", "objective.text_swap.weight=1"}),
		"clip, swaps":  with(clip, pair, []string{"model.head.topology=sphere", "objective.text_swap.weight=1", "objective.token_image.weight=1"}),
		"clip, tokens": with(clip, []string{"model.head.topology=sphere", "model.interaction.kind=max_soft"}),
		"matching, tokens": with(clip, []string{"model.system=matching", "model.head.topology=sphere", "model.head.dim=16", "model.interaction.kind=max_sum", "objective.itc.score=gssf",
			"objective.gssf.form=low_rank", "objective.gssf.rank=4", "objective.itc.in_batch_weight=0", "objective.hinge.weight=1"}),
		"matching, regions": with(clip, regions, []string{"model.image.pool=esa", "model.text.pool=esa", "model.image.regions.mask=0.4", "objective.hinge.weight=1", "objective.captioning.weight=1", "objective.captioning.width=6",
			"objective.captioning.embedding=5", "objective.captioning.dropout=0.2"}),
		"matching, regions dropped": with(clip, regions, []string{"model.image.regions.drop=0.4", "objective.hinge.weight=1"}),
		"clip, region graph": with(clip, regions, []string{"model.system=clip", "model.image.regions.encoder=graph", "model.image.regions.metric=block_diag",
			"model.image.regions.metric_blocks=2", "model.image.pool=gru", "model.image.regions.batch_norm=true"}),
		"matching, attention": with(clip, []string{"model.system=matching", "model.head.topology=sphere", "model.head.dim=16", "model.interaction.kind=scan", "objective.itc.score=gssf",
			"objective.gssf.form=sparse", "objective.gssf.l1=1", "objective.itc.in_batch_weight=0", "objective.hinge.weight=1"}),
		"matching, vectors": with(clip, []string{"model.system=matching", "model.head.topology=sphere", "model.head.dim=16", "model.interaction.kind=sgr", "model.interaction.sim_dim=6", "model.interaction.steps=2",
			"objective.itc.score=gssf", "objective.itc.in_batch_weight=0", "objective.hinge.weight=1", "model.interaction.dropout=0.3"}),
		"matching, memory": with(clip, []string{"model.system=matching", "model.head.topology=sphere", "model.head.dim=16", "model.interaction.kind=imram", "model.interaction.pool=lse", "objective.itc.score=gssf",
			"objective.itc.in_batch_weight=0", "objective.hinge.weight=1"}),
		"matching, mismatches": with(clip, []string{"model.system=matching", "model.head.topology=sphere", "model.head.dim=16", "model.interaction.kind=naaf", "objective.itc.score=gssf",
			"objective.itc.in_batch_weight=0", "objective.hinge.weight=1"}),
		"clip, taught": with(dual, cosine, []string{"model.system=clip", "objective.itc.score=geodesic", "objective.itc.in_batch_weight=0", "objective.geodesic.layers=5"}),
		"clip, fused": with(dual, cosine, []string{"model.system=clip", "model.head.topology=sphere", "model.head.style=mlp", "model.head.shared=12", "momentum.rule=dynamic", "objective.itc.weight=0", "objective.adcl.weight=0.5",
			"objective.adcl.dropout=0.2", "objective.adcl.rank=2"}),
		"clip, queues": with(dual, cosine, []string{"model.system=clip", "model.head.topology=sphere", "model.head.style=mlp", "objective.itc.weight=0", "objective.adcl.weight=0.5", "objective.adcl.fusion=none"}),
		"clip, tuned": with(clip, []string{"model.text.layers=2", "model.lora.rank=2", "model.lora.dropout=0.2", "model.tuning.adapter_width=3", "model.tuning.prompt_tokens=2", "model.tuning.metric=block_diag",
			"model.tuning.metric_blocks=2", "model.tuning.ssf=true"}),
		"clip, regularised": with(dual, cosine, []string{"model.system=clip", "objective.itc.weight=0", "objective.geometric.weight=1", "objective.geometric.search=exact",
			"objective.geometric.sampling=closest", "objective.geometric.kernel=linear", "objective.structure.weight=1"}),
		"heads":              with(heads, untaught),
		"heads, taught":      with(heads, []string{"objective.itc.score=angle", "model.heads.dropout=0.2"}),
		"heads, plans":       {sets: slices.Concat(heads, untaught, []string{"objective.klot.weight=1", "objective.klot.iterations=200", "objective.klot.rows=3", "model.heads.dropout=0.2"}), o: planOptions},
		"heads, walks":       with(heads, untaught, []string{"objective.structure.weight=1", "objective.structure.hops=2", "objective.structure.warmup_steps=2"}),
		"heads, regularised": {sets: slices.Concat(heads, untaught, []string{"objective.geometric.weight=1", "objective.geometric.neighbours=3", "objective.geometric.pool=2", "model.heads.residual=true", "model.heads.dropout=0.2"}), o: poolOptions},
		"identities": with(clip, pair, []string{"model.system=identities", "objective.itc.in_batch_weight=0", "objective.itc.score=gssf", "model.head.topology=sphere",
			"objective.gssf.form=dense", "objective.gssf.decay=0.5", "objective.gssf.dropout=0.3",
			"objective.triplet.weight=1", "objective.triplet.negatives=all", "objective.softmax.weight=1", "objective.softmax.classes=64", "data.identities.images=2", "data.scenes.epoch_samples=60", "data.scenes.val_samples=60"}),
		"classes":         {sets: slices.Concat(classified, []string{"objective.classes.mixup=0.4", "objective.classes.cutmix=1", "objective.classes.norm=true"}), o: classOptions},
		"classes, plain":  {sets: classified, o: classOptions},
		"classes, resnet": {sets: slices.Concat(classified, resnet, []string{"model.head.dim=16"}), o: classOptions},
		"moco":            with(views, []string{"model.system=moco"}),
		"clip, resnet":    with(clip, resnet, []string{"model.image.resnet.frozen_stages=1"}),
		"moco, resnet":    with(views, resnet, []string{"model.system=moco"}),
		"moco, shuffled":  with(views, resnet, []string{"model.system=moco", "model.image.resnet.shuffle_groups=2"}),
		"moco, running":   with(views, resnet, []string{"model.system=moco", "model.image.resnet.teacher_norm=running"}),
		"moco, geodesic":  with(views, []string{"model.system=moco", "objective.itc.score=geodesic", "objective.geodesic.gradient=same_cluster", "objective.itc.in_batch_weight=1"}),
		"swav":            with(views, []string{"model.system=swav", "momentum.enabled=false", "objective.swav.prototypes=6"}),
		"swav, resnet":    with(views, resnet, []string{"model.system=swav", "momentum.enabled=false", "objective.swav.prototypes=6", "data.crops.count=2", "data.crops.size=6"}),
		"swav, geodesic":  with(views, []string{"model.system=swav", "momentum.enabled=false", "objective.swav.prototypes=6", "objective.itc.score=geodesic"}),
		"simcse":          with(sentences, []string{"model.system=simcse", "objective.simcse.weight=1", "objective.simcse.temperature=0.5"}),
		"simcse, triplets": with(sentences, []string{"model.system=simcse", "objective.simcse.weight=1", "objective.simcse.head=always", "objective.simcse.hard_negative_weight=3", "data.kind=sentences",
			"data.sentences.train_files=[\"triplets.csv\"]", "data.sentences.sentence=a", "data.sentences.positive=b", "data.sentences.negative=c",
			"eval.sentences.feature=head"}),
		"clip, grounded": with(sentences, []string{"model.system=clip", "model.head.style=tanh", "objective.simcse.weight=1", "objective.simcse.head=none", "objective.mcse.weight=0.5", "objective.mcse.temperature=0.5",
			"data.sentences.batches=1", "data.sentences.train_files=[\"lines.txt\"]"}),
		"sentence pairs": with(judged, []string{"data.sentence_pairs.task=rte", "data.sentence_pairs.train_files=[\"pairs.csv\"]"}),
		"sentence pairs, joint": with(judged, []string{"data.sentence_pairs.task=stsb", "data.sentence_pairs.train_files=[\"scores.csv\"]", "data.sentence_pairs.val_files=[\"scores.csv\"]",
			"objective.sentence_pairs.encoding=joint", "objective.sentence_pairs.dropout=0.5"}),
		"entailment": with(alone, []string{"objective.entailment.weight=1", "data.kind=entailment", "data.examples.source=scenes"}),
		"nlvr":       with(alone, []string{"objective.nlvr.weight=1", "data.kind=nlvr", "data.examples.source=scenes"}),
		"vqa":        with(alone, []string{"objective.vqa.weight=1", "objective.vqa.tokens=5", "objective.vqa.answers=2", "data.kind=vqa", "data.examples.source=scenes"}),
		"assignment": with(alone, []string{"objective.distill.alpha=0", "momentum.enabled=false", "objective.assignment.weight=1"}),
		"captions":   with(alone, []string{"objective.captioning.weight=1", "objective.captioning.decoder=transformer", "objective.captioning.tokens=9", "objective.distill.alpha=0.3", "objective.captioning.dropout=0.2"}),
	}
}

// classOptions names classes.
func classOptions(_ *testing.T, o *Options) { o.Classes = []string{"a", "b", "c"} }

// poolOptions has rows of features.
func poolOptions(_ *testing.T, o *Options) {
	o.ImagePool, o.TextPool = randomPool(6, 1), randomPool(4, 2)
}

// planOptions has an alignment besides.
func planOptions(t *testing.T, o *Options) {
	poolOptions(t, o)
	layer := func(d int) objectives.Layer {
		return objectives.Layer{Weight: randomPool(d, 3).data[:3*d], Bias: make([]float32, 3)}
	}
	o.Reference = &objectives.Reference{Image: layer(6), Text: layer(4)}
}

// judgedBy has a connector.
func judgedBy(t *testing.T, o *Options) {
	o.Vocab, o.Connector = tinyVocab, connectorOf(otherModel(t))
}

// taught is a student of a frozen teacher.
func taught(metric string) func() config.Config {
	return func() config.Config {
		cfg := taughtConfig(metric)
		cfg.Train.BatchSize = 8
		return cfg
	}
}

// withTeacher has the teacher.
func withTeacher(t *testing.T, o *Options) {
	o.Vocab = tinyVocab
	o.Teacher, _ = opened(t, build(t, scoreTeachers()["gssf"], "builtin", 1))
}

// randomPool is one of random rows.
func randomPool(width int, seed uint64) memoryPool {
	r, x := rand.New(rand.NewPCG(seed, 6)), make([]float32, rankPool*width)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return memoryPool{width, x}
}

// rankConfig is a case's configuration.
func rankConfig(t *testing.T, x rankCase) config.Config {
	t.Helper()
	if x.cfg != nil {
		return x.cfg()
	}
	dir := t.TempDir()
	check.OK(t, os.WriteFile(dir+"/vocab.txt", []byte("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nred\n"), 0o644))
	cfg, err := config.Load("../run/testdata/keys.toml", slices.Concat([]string{"data.root=" + dir, "data.vocab=vocab.txt"}, x.sets))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// rankOptions are a case's options, with an engine of their own.
func rankOptions(t *testing.T, x rankCase) Options {
	o := Options{Engine: newEngine(t), Vocab: rankVocab, MaskID: 4, Begin: 1, End: 1, BeginID: 2, EndID: 3}
	if x.o != nil {
		x.o(t, &o)
	}
	return o
}

// randomRows is a batch with something in every column.
func randomRows(columns []batch.Column, rows int, seed uint64) *batch.Batch {
	b, r := batch.New(rows, columns...), rand.New(rand.NewPCG(seed, 5))
	lens := map[string]int{} // of texts
	for _, c := range columns {
		if len(c.Shape) > 0 {
			lens[c.Name] = c.Shape[len(c.Shape)-1]
		}
	}
	for _, c := range columns {
		if x := b.Floats(c.Name); c.Type == batch.Float32 {
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			if c.Name == batch.AnswerWeights {
				for i := range x {
					x[i] = float32(i%3) / 2
				}
			}
			continue
		}
		x, l := b.Ints(c.Name), max(1, lens[c.Name])
		for i := range x {
			switch c.Name {
			case batch.Tokens, batch.SecondTokens, batch.ThirdTokens, batch.Answers:
				if x[i] = int32(5 + r.IntN(rankVocab-5)); i%l == 0 {
					x[i] = 2
				}
			case batch.Lengths, batch.SecondLengths, batch.ThirdLengths:
				x[i] = int32(3 + r.IntN(lens[batch.Tokens]-2))
			case batch.AnswerLengths:
				x[i] = int32(2 + r.IntN(lens[batch.Answers]-1))
			case batch.RegionLengths:
				x[i] = int32(1 + r.IntN(b.Columns()[slices.IndexFunc(b.Columns(), func(c batch.Column) bool { return c.Name == batch.Regions })].Shape[0]))
			case batch.IDs:
				x[i] = int32(i * 5 / 7)
			case batch.Labels:
				x[i] = int32(r.IntN(3)) - 1
			case batch.Segments, batch.Paired:
				x[i] = int32(r.IntN(2))
			case batch.ImageNeighbours, batch.TextNeighbours:
				x[i] = int32(r.IntN(rankPool))
			}
		}
	}
	return b
}

const (
	rankVocab = 20
	rankPool  = 30
)

// shareOf are the rows of a batch that a rank of n has.
func shareOf(b *batch.Batch, rank, n int) *batch.Batch {
	rows := b.Rows() / n
	own := batch.New(rows, b.Columns()...)
	for i := range rows {
		own.Row(i).Copy(b.Row(rank*rows + i))
	}
	return own
}

// withRanks builds the model of one process and those of n ranks.
func withRanks(t *testing.T, x rankCase) (whole *Trainer, ranks []*Trainer) {
	t.Helper()
	cfg := rankConfig(t, x)
	whole = newTrainer(t, cfg, rankOptions(t, x))
	for _, g := range paralleltest.Ranks(max(2, x.ranks)) {
		o := rankOptions(t, x)
		o.Group = &recorder{Group: g}
		m := newTrainer(t, cfg, o)
		ranks = append(ranks, m)
	}
	return whole, ranks
}

// recorder writes down what a rank exchanges.
type recorder struct {
	parallel.Group
	log []string
}

func (r *recorder) note(what string, n int) { r.log = append(r.log, fmt.Sprint(what, " ", n)) }

func (r *recorder) SumShare(own, x []float32) error {
	r.note("share", len(own))
	return r.Group.SumShare(own, x)
}

func (r *recorder) Gather(dst, x []float32) ([]float32, error) {
	r.note("gather", len(x))
	return r.Group.Gather(dst, x)
}

func (r *recorder) GatherInts(dst, x []int32) ([]int32, error) {
	r.note("integers", len(x))
	return r.Group.GatherInts(dst, x)
}

// logOf is what a model's rank has exchanged.
func logOf(m *Trainer) *[]string { return &m.o.Group.(*recorder).log }

// onRanks calls f for all ranks at once.
func onRanks(t *testing.T, ranks []*Trainer, f func(i int, m *Trainer) error) {
	t.Helper()
	errs := make([]error, len(ranks))
	var wg sync.WaitGroup
	for i, m := range ranks {
		wg.Go(func() { errs[i] = f(i, m) })
	}
	done := make(chan bool)
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("the ranks wait for each other: %v", errs)
	}
	check.OK(t, errors.Join(errs...))
}

// far says how far a value is from the one that it should be, as a share of scale.
func far(got, want, scale float64) float64 { return math.Abs(got-want) / max(scale, 1e-30) }

// looser are tolerances of gradients other than 1e-5: behind many batch norms of few values, and where they all but
// cancel out.
var looser = map[string]float64{"clip, resnet": 1e-3, "classes, resnet": 1e-3, "moco, resnet": 1e-3, "moco, shuffled": 1e-3, "moco, running": 1e-3, "swav, resnet": 1e-3, "clip, region graph": 1e-4, "matching, one row each": 1e-4,
	"moco, geodesic": 1e-4}

// exchangeless are the cases whose losses need nothing of other ranks.
var exchangeless = []string{"vqa", "captions", "sentence pairs, joint"}

// TestRanks: several ranks and one process have, of one global batch, the same losses, gradients and queues, with all
// that is random.
func TestRanks(t *testing.T) {
	for name, x := range rankCases() {
		t.Run(name, func(t *testing.T) {
			whole, ranks := withRanks(t, x)
			least, f := estimate{ranks[0].Model}.footprint(), ranks[0].Footprint()
			if least.Buffers > f.Buffers || least.Queue != f.Queue || least.Plans != f.Plans || least.Batches >= (estimate{whole.Model}).footprint().Batches {
				t.Errorf("estimated %+v of %+v", least, f)
			}
			for step := range 3 {
				agree(t, x, whole, ranks, step, looser[name])
			}
		})
	}
}

// agree makes an update of one process and of ranks and compares them.
func agree(t *testing.T, x rankCase, whole *Trainer, ranks []*Trainer, step int, gradients float64) {
	t.Helper()
	b := randomRows(whole.Columns(), whole.cfg.Train.BatchSize, uint64(step))
	at := feed.Step{Batch: b, Update: step, Counter: step, PerEpoch: 1}
	check.OK(t, whole.Before(step))
	want := stepOf(t, whole, &at)
	got := make([]*Result, len(ranks))
	onRanks(t, ranks, func(i int, m *Trainer) error {
		own := at
		own.Batch, own.Rank, own.Ranks = shareOf(b, i, len(ranks)), i, len(ranks)
		err := m.Before(step)
		if err == nil {
			got[i], err = m.Step(t.Context(), &own)
		}
		return err
	})
	const tol = 1e-5
	for k, p := range want.Parts {
		if strings.HasSuffix(p.Name, "/seconds") || slices.Contains(x.local, p.Name) {
			continue
		}
		mean := 0.
		for _, r := range got {
			mean += r.Parts[k].Value / float64(len(ranks))
		}
		if d := far(mean, p.Value, max(math.Abs(p.Value), 1e-1)); d > tol || math.IsNaN(d) {
			t.Errorf("step %d: %s of the ranks is %v, of one process %v", step, p.Name, mean, p.Value)
		}
	}
	for i, m := range ranks {
		if own, first := *logOf(m), *logOf(ranks[0]); !slices.Equal(own, first) {
			t.Errorf("step %d: rank %d exchanges %v, rank 0 %v", step, i, own, first)
		}
	}
	if len(x.local) == 0 {
		compareGradients(t, step, whole, ranks, max(tol, gradients))
	}
	move(whole, whole.params.Grads())
	check.OK(t, whole.After())
	onRanks(t, ranks, func(_ int, m *Trainer) error {
		move(m, whole.params.Grads())
		return m.After()
	})
	for i, m := range ranks {
		if q := m.Queue(); q != nil {
			compareQueues(t, fmt.Sprintf("step %d, rank %d", step, i), q, whole.Queue())
			for k, ring := range rings(whole.Queue()) { // an angle near 0 is the root of rounding
				copy(rings(q)[k], ring)
			}
		}
		copy(m.params.Values(), whole.params.Values()) // running statistics too, to rounding
	}
}

// move is plain gradient descent, with the twins.
func move(m *Trainer, grads []float32) {
	for i, v := range grads {
		m.params.Values()[i] -= .05 * v
	}
	m.UpdateMomentum(.9)
}

// compareGradients compares the sum of the ranks' gradients over their number with those of one process, by name.
func compareGradients(t *testing.T, step int, whole *Trainer, ranks []*Trainer, tol float64) {
	t.Helper()
	largest := func(x []float32) (most float64) {
		for _, v := range x {
			most = max(most, math.Abs(float64(v)))
		}
		return most
	}
	floor := 1e-2 * largest(whole.params.Grads())
	for _, q := range whole.params.List() {
		if q.Locked || !whole.Learnable(q.Name) {
			continue
		}
		want := whole.params.Grad(q)
		scale, worst, sum := max(largest(want), floor), 0., make([]float64, len(want))
		for _, m := range ranks {
			p, _ := m.params.Get(q.Name)
			for i, v := range m.params.Grad(p) {
				sum[i] += float64(v) / float64(len(ranks))
			}
		}
		for i, v := range sum {
			if d := far(v, float64(want[i]), scale); !(d <= worst) {
				worst = d
			}
		}
		if !(worst <= tol) {
			t.Errorf("step %d: gradient of %s is off by %.2g of its largest element %.3g", step, q.Name, worst, largest(want))
		}
	}
}

// rings are the features of a queue.
func rings(q *Queue) [][]float32 {
	return [][]float32{q.Image, q.Text, q.ImageBackbone, q.TextBackbone}
}

// compareQueues compares what is in them, to rounding.
func compareQueues(t *testing.T, name string, got, want *Queue) {
	t.Helper()
	if got.Pointer != want.Pointer || got.Filled != want.Filled || !slices.Equal(got.IDs, want.IDs) {
		t.Errorf("%s: the queue is at %d, %d are filled, ids %v; want %d, %d and %v", name, got.Pointer, got.Filled, got.IDs, want.Pointer, want.Filled, want.IDs)
	}
	for k, ring := range rings(got) {
		for i, v := range ring {
			if w := rings(want)[k][i]; !(far(float64(v), float64(w), 1) < 1e-5) {
				t.Errorf("%s: value %d of queue %d is %v, want %v", name, i, k, v, w)
				break
			}
		}
	}
}

// TestExchangesKeepTheirOrder: however often a model is built, its ranks exchange the same in the same order.
func TestExchangesKeepTheirOrder(t *testing.T) {
	for _, name := range []string{"albef", "clip, hinge", "moco, shuffled"} {
		var first []string
		for range 6 {
			_, ranks := withRanks(t, rankCases()[name])
			b := randomRows(ranks[0].Columns(), ranks[0].cfg.Train.BatchSize, 1)
			onRanks(t, ranks, func(i int, m *Trainer) error {
				_, err := m.Step(t.Context(), &feed.Step{Batch: shareOf(b, i, len(ranks)), PerEpoch: 1, Rank: i, Ranks: len(ranks)})
				return err
			})
			if first == nil {
				first = *logOf(ranks[0])
			}
			if log := *logOf(ranks[1]); !slices.Equal(log, first) || len(log) < 4 {
				t.Errorf("%s: exchanges %v, at first %v", name, log, first)
			}
		}
	}
}

// TestOwnRanksAlone: with parallel.contrast "local" a rank has the losses of a process whose batch is its own.
func TestOwnRanksAlone(t *testing.T) {
	plain := []string{"model.text.dropout=0"}
	for name, x := range rankCases() {
		if !slices.Contains([]string{"clip", "clip, ids", "clip, sigmoid", "clip, hinge", "matching, tokens", "clip, queues", "simcse, triplets", "clip, taught by scores", "heads, walks"}, name) || x.ranks > 2 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if x.sets != nil {
				x.sets = slices.Concat(x.sets, plain)
			}
			local, alone := rankConfig(t, x), rankConfig(t, x)
			local.Parallel.Contrast, local.Model.Text.Dropout, local.Model.Heads.Dropout = config.OfOwnRank, 0, 0
			alone.Train.BatchSize, alone.Model.Text.Dropout, alone.Model.Heads.Dropout = local.Train.BatchSize/2, 0, 0
			x.cfg = func() config.Config { return local }
			_, ranks := withRanks(t, x)
			x.cfg = func() config.Config { return alone }
			one, _ := withRanks(t, x)
			b := randomRows(ranks[0].Columns(), local.Train.BatchSize, 3)
			got := make([]*Result, 2)
			onRanks(t, ranks, func(i int, m *Trainer) (err error) {
				got[i], err = m.Step(t.Context(), &feed.Step{Batch: shareOf(b, i, 2), PerEpoch: 1, Rank: i, Ranks: 2})
				return err
			})
			for i, r := range got {
				want := stepOf(t, one, &feed.Step{Batch: shareOf(b, i, 2), PerEpoch: 1})
				for k, p := range want.Parts {
					if far(r.Parts[k].Value, p.Value, max(1, math.Abs(p.Value))) > 1e-6 {
						t.Errorf("rank %d: %s is %v, alone %v", i, p.Name, r.Parts[k].Value, p.Value)
					}
				}
			}
		})
	}
}

// TestOneProcessExchangesNothing: a step of one process has no exchange in it.
func TestOneProcessExchangesNothing(t *testing.T) {
	for name, x := range rankCases() {
		t.Run(name, func(t *testing.T) {
			whole, ranks := withRanks(t, x)
			count := func(p *Trainer) (n int) {
				for _, n2 := range p.step.machine.Profile().Kinds {
					if strings.Contains(n2.Kind, "of ranks") {
						n++
					}
				}
				return n
			}
			if n := count(whole); n != 0 {
				t.Errorf("%d kinds of exchanges of one process", n)
			}
			if n := count(ranks[0]); n == 0 && !slices.Contains(exchangeless, name) {
				t.Error("no exchange of two: the test shows nothing")
			}
		})
	}
}

// TestOneRankIsNotFiniteWithinAnOp: with compute.check_nan a rank that meets a number that is not finite within the
// computation of an op makes the exchanges of its step all the same, and no rank waits for it.
func TestOneRankIsNotFiniteWithinAnOp(t *testing.T) {
	x := rankCases()["heads, regularised"]
	x.sets = append(x.sets, "compute.check_nan=true")
	x.o = func(t *testing.T, o *Options) {
		poolOptions(t, o)
		last := o.ImagePool.(memoryPool)
		for i := range last.width {
			last.data[len(last.data)-1-i] = float32(math.Inf(1))
		}
	}
	whole, ranks := withRanks(t, x)
	b := randomRows(whole.Columns(), 8, 1)
	near := b.Ints(batch.ImageNeighbours)
	for i, row := range near {
		near[i] = min(row, rankPool-2)
	}
	near[len(near)-1] = rankPool - 1 // of the last rank
	onRanks(t, ranks, func(i int, m *Trainer) error {
		_, err := m.Step(t.Context(), &feed.Step{Batch: shareOf(b, i, len(ranks)), Rank: i, Ranks: len(ranks)})
		if bad := errors.As(err, new(*exec.NonFiniteError)); bad != (i == len(ranks)-1) || !bad && err != nil {
			return fmt.Errorf("rank %d: %v", i, err)
		}
		return nil
	})
	if first, last := *logOf(ranks[0]), *logOf(ranks[len(ranks)-1]); len(first) == 0 || !slices.Equal(first, last) {
		t.Errorf("rank 0 exchanged %v, the last one %v", first, last)
	}
}

// TestTiledContrast: one process and two that make the logits of the contrast in tiles have the losses and gradients of
// one that holds them; where a loss reads logits they are held.
func TestTiledContrast(t *testing.T) {
	cases := rankCases()
	for name, sets := range map[string][]string{
		"clip": {"objective.itc.log_temperature=false"}, "heads": nil,
		"clip, a metric":     {"objective.itc.score=gssf", "objective.gssf.form=diag"},
		"clip, truncated":    {"objective.matryoshka.dims=[4]", "model.head.topology=sphere"},
		"clip, half a score": {"objective.itc.scores=[{kind=\"cosine\", weight=0.5}]"},
		"clip, log of scale": {"objective.itc.log_temperature=true"},
	} {
		x := cases[strings.Split(name, ",")[0]]
		x.sets = slices.Concat(x.sets, sets, []string{"objective.itc.positives=pair"})
		for _, n := range []int{1, 2} {
			t.Run(fmt.Sprint(name, ", ", n), func(t *testing.T) {
				cfg := rankConfig(t, x)
				whole := newTrainer(t, cfg, rankOptions(t, x))
				defer func(most int) { mostLogits = most }(mostLogits)
				mostLogits = 0
				var ranks []*Trainer
				for _, g := range paralleltest.Ranks(n) {
					o := rankOptions(t, x)
					o.Group = &recorder{Group: g}
					ranks = append(ranks, newTrainer(t, cfg, o))
				}
				if !tiles(ranks[0]) || tiles(whole) {
					t.Error("tiles are not where they should be")
				}
				for step := range 3 {
					agree(t, x, whole, ranks, step, 0)
				}
			})
		}
	}
	for _, name := range []string{"clip, ids", "albef, matching", "clip, patches"} {
		mostLogits = 0
		m := newTrainer(t, rankConfig(t, cases[name]), rankOptions(t, cases[name]))
		mostLogits = 1 << 26
		if tiles(m) != (name == "clip, patches") {
			t.Errorf("%s: tiled %t", name, tiles(m))
		}
	}
}

// tiles says whether a step makes logits in tiles.
func tiles(m *Trainer) bool {
	return slices.ContainsFunc(m.step.machine.Profile().Kinds, func(k exec.KindStats) bool { return k.Kind == "tiled contrast" })
}
