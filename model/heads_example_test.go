package model_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train"
)

// Alignment heads over stored features of two frozen encoders. Here the features are
// noise, and the text feature of a pair is a rotation of its image feature.
func ExampleHeads() {
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
	heads, err := model.NewHeads(cfg, engine)
	if err != nil {
		return err
	}
	optimizer, err := train.NewOptimizer(cfg.Optimizer, engine, heads)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, 2))
	batch := func() model.Features {
		f := model.Features{Image: make([]float32, 32*16), Text: make([]float32, 32*16)}
		for i := range f.Image {
			f.Image[i] = float32(r.NormFloat64())
			f.Text[i/16*16+(i+5)%16] = f.Image[i]
		}
		return f
	}
	for step := range 200 {
		if _, err := heads.Forward(batch(), step); err != nil {
			return err
		}
		optimizer.Step(cfg.Optimizer.LR, 1, optimizer.GradNorm(1))
		heads.ClampTemperature()
	}

	test := batch()
	images, err := heads.EncodeImages(test.Image, 32)
	if err != nil {
		return err
	}
	texts, err := heads.EncodeTexts(test.Text, 32)
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
