package train

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/tasks/multimodal"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// judging makes a model of a task that tells classes.
func judging(t *testing.T, e *kernel.Engine, sets ...string) (*model.Trainer, config.Config) {
	t.Helper()
	cfg, err := config.Load("../cmd/trainer/testdata/tiny.toml", append([]string{"objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itm.weight=0",
		"objective.mlm.weight=0", "queue.size=0", "queue.start_steps=0", "eval.rerank_top=0", "objective.distill.alpha=0"}, sets...))
	if err != nil {
		t.Fatal(err)
	}
	world, err := scenes.New(scenes.Config{MinObjects: 1, MaxObjects: 2, Size: cfg.Model.Image.Size}, cfg.Run.Seed)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Learn(slices.Values(data.SceneCaptions(world, 200, data.CleanALBEF)), cfg.Data.VocabSize)
	if err != nil {
		t.Fatal(err)
	}
	m := check.Get(NewModel(cfg, ModelOptions{Engine: e, Tokenizer: tok}))(t)
	t.Cleanup(func() { m.Close() })
	return m, cfg
}

// TestInitOfOtherClasses: the head of a task of other classes starts anew, teacher included, and one of as many goes on.
func TestInitOfOtherClasses(t *testing.T) {
	e := check.Get(kernel.New(kernel.Options{Backend: "plain", Threads: 1}))(t)
	defer e.Close()
	sentences := func(task string) []string {
		return []string{"model.system=sentence_pairs", "momentum.enabled=false", "data.kind=sentence_pairs", "objective.sentence_pairs.weight=1",
			"data.sentence_pairs.task=" + task, `data.sentence_pairs.train_files=["pairs.csv"]`, `data.sentence_pairs.val_files=["pairs.csv"]`,
			"model.text.fusion_layers=0", "model.head.dim=32"}
	}
	entailment := []string{"objective.entailment.weight=1", "data.kind=entailment", "data.examples.source=scenes"}
	statements := []string{"objective.nlvr.weight=1", "data.kind=nlvr", "data.examples.source=scenes"}
	for _, c := range []struct {
		was, now []string
		head     string
		anew     bool
	}{
		{entailment, statements, multimodal.HeadName, true},
		{entailment, entailment, multimodal.HeadName, false},
		{sentences("mnli"), sentences("rte"), sentencepairs.HeadName, true},
		{sentences("mrpc"), sentences("rte"), sentencepairs.HeadName, false},
	} {
		old, oldCfg := judging(t, e, c.was...)
		text := check.Get(oldCfg.Encode())(t)
		snap := check.Get(checkpoint.Take(append(old.Params().State(), state.Part(&runPart{}))))(t)
		snap.Files = map[string][]byte{configFile: text}
		store := check.Get(checkpoint.NewStore(filepath.Join(t.TempDir(), "checkpoints"), checkpoint.Retention{}))(t)
		check.OK(t, store.Save(1, snap))
		ck := check.Get(checkpoint.Load(store.Dir()))(t)
		defer ck.Close()
		now, cfg := judging(t, e, append(c.now, "run.seed=8")...)
		r, err := InitModel(now, ck, cfg.Model)
		if err != nil {
			t.Errorf("%s: %v", c.head, err)
			continue
		}
		for _, q := range now.Params().List() {
			if !strings.HasPrefix(q.Name, c.head+"/") {
				continue
			}
			p, _ := old.Params().Get(q.Name)
			if anew := slices.Contains(r.Fresh, q.Name); anew != c.anew || !anew && !slices.Equal(now.Params().Value(q), old.Params().Value(p)) {
				t.Errorf("%s of %v starts anew: %v, want %v", q.Name, c.now, anew, c.anew)
			}
			if q.Momentum && !slices.Equal(now.Params().Value(q), now.Params().MomentumValue(q)) {
				t.Errorf("the teacher of %s is another", q.Name)
			}
		}
	}
}
