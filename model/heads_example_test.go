package model_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train"
)

// Alignment heads over stored features of two frozen encoders. Here the features are
// noise, and the text feature of a pair is a rotation of its image feature.
func ExampleNew_heads() {
	if err := trainHeads(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// every image finds its text: true
}

func trainHeads() error {
	cfg, err := config.Load("", []string{
		"model.system=heads", "model.heads.in_image=16", "model.heads.in_text=16", "model.heads.hidden=64", "model.head.dim=16",
		"momentum.enabled=false", "queue.size=0", "objective.distill.alpha=0",
		"objective.itc.weight=0", "objective.itc.in_batch_weight=1", "objective.itm.weight=0", "objective.mlm.weight=0",
		"train.batch_size=32", "optimizer.lr=1e-3",
	})
	if err != nil {
		return err
	}
	engine, err := compute.New(compute.Options{Threads: 2})
	if err != nil {
		return err
	}
	defer engine.Close()
	heads, err := model.New(cfg, model.Options{Engine: engine})
	if err != nil {
		return err
	}
	optimizer, err := train.NewOptimizer(cfg.Optimizer, engine, heads)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, 2))
	rows := batch.New(32, heads.Columns()...)
	draw := func() {
		images, texts := rows.Floats(batch.ImageFeatures), rows.Floats(batch.TextFeatures)
		for i := range images {
			images[i] = float32(r.NormFloat64())
			texts[i/16*16+(i+5)%16] = images[i]
		}
	}
	for step := range 200 {
		draw()
		if _, err := heads.Step(context.Background(), &feed.Step{Batch: rows, Update: step, Counter: step}); err != nil {
			return err
		}
		optimizer.Step(cfg.Optimizer.LR, 1, optimizer.GradNorm(1))
		if err := heads.After(); err != nil {
			return err
		}
	}

	draw()
	_, images, err := heads.Image().Encode(context.Background(), rows)
	if err != nil {
		return err
	}
	_, texts, err := heads.Text().Encode(context.Background(), rows)
	if err != nil {
		return err
	}
	found := 0
	for i := range 32 {
		best, at := float32(-2), 0
		for j := range 32 {
			var cosine float32
			for k := range 16 {
				cosine += images[i*16+k] * texts[j*16+k]
			}
			if cosine > best {
				best, at = cosine, j
			}
		}
		if at == i {
			found++
		}
	}
	fmt.Println("every image finds its text:", found == 32)
	return nil
}
