package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train"
)

// regionSettings are files of six images with five captions each, and the configuration of a model of them.
func regionSettings(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(3, 4))
	var captions strings.Builder
	for i := range regionBatch {
		for c := range 5 {
			fmt.Fprintf(&captions, "Picture name%d isn't number %d.\n", i, c)
		}
	}
	for _, split := range []string{"train", "dev"} {
		err := features.WriteArray(filepath.Join(dir, split+"_ims.npy"), []int{4, 5}, func(emit func([]float32) error) error {
			for i := range regionBatch {
				row := make([]float32, 4*5)
				for k := range 1 + i%4 {
					for d := range 5 {
						row[k*5+d] = float32(math.Sin(float64(7*i+d))) + .05*float32(r.NormFloat64())
					}
				}
				if err := emit(row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		check.OK(t, os.WriteFile(filepath.Join(dir, split+"_caps.txt"), []byte(captions.String()), 0o644))
	}
	return []string{"data.kind=regions", "data.root=" + dir, "data.regions.test=", "data.clean=none", "data.tokens=8", "model.text.positions=8", "data.vocab_min_count=1"}
}

// TestRegionFilesTrain: from files of regions and a vocabulary of their words to a model that finds the images of
// captions.
func TestRegionFilesTrain(t *testing.T) {
	cfg := check.Get(config.Load("", append([]string{
		"model.system=clip", "model.text.layers=1", "model.text.width=16", "model.text.heads=2", "model.head.dim=8", "model.text.fusion_layers=0",
		fmt.Sprintf("train.batch_size=%d", regionBatch), "optimizer.lr=3e-3", "queue.size=0", "momentum.enabled=false", "objective.distill.alpha=0",
		"objective.itc.weight=0", "objective.itc.in_batch_weight=1", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0",
	}, regionSettings(t)...)))(t)
	captions, err := source.Texts(t.Context(), cfg.Source(), source.Options{})
	if err != nil || len(captions) != 5*regionBatch {
		t.Fatalf("%d captions, %v", len(captions), err)
	}
	tok := check.Get(tokenizer.LearnWords(func(yield func(string) bool) {
		for _, c := range captions {
			if !yield(c) {
				return
			}
		}
	}, 100, cfg.Data.VocabMinCount))(t)
	stream := check.Get(source.Stream(t.Context(), cfg.Source(), source.Options{Tokenizer: tok}))(t)
	engine := check.Get(compute.New(compute.Options{Threads: 2}))(t)
	defer engine.Close()
	m, err := model.New(cfg, model.Options{Engine: engine, Vocab: tok.Size(), MaskID: tok.MaskID(), Image: regionTower{Regions: 4, In: 5, Width: 12, Heads: 3}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	l, err := data.NewLoader(stream, data.LoaderConfig{BatchSize: regionBatch, Columns: m.Columns(), Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	optimizer := check.Get(train.NewOptimizer(cfg.Optimizer, engine, m))(t)
	for step := range 200 {
		b := check.Get(l.Next(t.Context()))(t)
		check.OK(t, m.Before(step))
		check.Get(m.Step(t.Context(), &feed.Step{Batch: b.Batch, Update: step, Counter: step}))(t)
		optimizer.StepTwins(cfg.Optimizer.LR, 1, optimizer.GradNorm(1), 0)
		check.OK(t, m.After())
		l.Recycle(b)
	}
	set := check.Get(source.Galleries(t.Context(), cfg.Source(), "val", source.Options{}))(t)
	texts := check.Get(set.Texts(&data.Texts{Tokenizer: tok, Tokens: cfg.Data.Tokens}))(t)
	encode := func(e *model.Encoder, g data.Gallery) []float32 {
		b := batch.New(g.Len(), e.Columns()...)
		check.OK(t, data.LoadRows(t.Context(), g, 0, g.Len(), b, 1))
		_, x := check.Get2(e.Encode(t.Context(), b))(t)
		return x
	}
	images, words := encode(m.Image(), set.Images()), encode(m.Text(), texts)
	found := 0
	for j := range texts.Len() {
		best, at := math.Inf(-1), 0
		for i := range regionBatch {
			score := 0.0
			for c := range 8 {
				score += float64(images[8*i+c]) * float64(words[8*j+c])
			}
			if score > best {
				best, at = score, i
			}
		}
		if at == set.TextImage(j) {
			found++
		}
	}
	if found < 24 { // by chance 5
		t.Errorf("%d of 30 captions find their image", found)
	}
}
