// Command parity writes what a shipped configuration computes on made-up data: parameters, inputs, the parts of the loss,
// gradients, scores of pairs and recalls, in one safetensors file. parity.py gives them to the modules of published
// repositories and compares:
//
//	go run ./interop/parity -config gssf-scan -out scan.safetensors [-rows 32] [KEY=VALUE ...]
//
// KEY=VALUE sets a key of the configuration, for variants that the published code has under options of its own. Dropout
// and random masks of regions are switched off, since both sides draw from generators of their own.
package main

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
)

// The made-up data: images of as many regions with as many features as the published files have, captions of a
// vocabulary of words from id 5 on, between the ids of a start and an end.
const (
	regionsMost, regionFeatures = 36, 2048

	vocabulary                         = 1000
	padID, clsID, sepID, maskID, words = 0, 2, 3, 4, 5

	captions = 5 // of an image of the evaluation
)

func main() {
	name := flag.String("config", "", "the `name` of a shipped configuration; sts: correlations of sentence similarity; klot, asif: alignment")
	out := flag.String("out", "parity.safetensors", "the `file` to write")
	rows := flag.Int("rows", 0, "pairs of the training step; 0: those of the configuration")
	images := flag.Int("images", 40, "images of the evaluation, each with 5 captions")
	top := flag.Int("rerank", 0, "candidates that the matching head scores again; 0: none")
	flag.Parse()
	if err := run(*name, *out, *rows, *images, *top, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(1)
	}
}

func run(name, out string, rows, images, top int, sets []string) error {
	e, err := compute.New(compute.Options{})
	if err != nil {
		return err
	}
	defer e.Close()
	if p := (&parity{engine: e, meta: map[string]string{}}); p.alone(name) != nil {
		if err := p.alone(name)(); err != nil {
			return err
		}
		return p.write(out)
	}
	cfg, err := load(name, sets)
	if err != nil {
		return err
	}
	rows = cmp.Or(rows, cfg.Train.BatchSize)
	cfg.Train.BatchSize = rows
	m, err := model.New(cfg, model.Options{Engine: e, Vocab: vocabulary, MaskID: maskID, Begin: 1, End: 1, BeginID: clsID,
		EndID: sepID, Pad: padID})
	if err != nil {
		return err
	}
	defer m.Close()
	perturb(m.Params())
	p := &parity{cfg: cfg, model: m, engine: e, meta: map[string]string{
		"config": name, "image_heads": strconv.Itoa(cfg.Model.Image.Heads), "text_heads": strconv.Itoa(cfg.Model.Text.Heads)}}
	if err := p.step(rows); err != nil {
		return err
	}
	if err := p.evaluate(images); err != nil {
		return err
	}
	if top > 0 {
		if err := p.rerank(top); err != nil {
			return err
		}
	}
	return p.write(out)
}

// alone is what is compared without a configuration, nil where there is no such thing of a name.
func (p *parity) alone(name string) func() error {
	return map[string]func() error{"sts": p.sts, "klot": p.klot, "asif": p.asif}[name]
}

// load reads a configuration, switches random choices off, and gives it the sizes that data of regions has.
func load(name string, sets []string) (config.Config, error) {
	cfg, err := config.Load(name, sets)
	m, regions := &cfg.Model, &cfg.Model.Image.Regions
	m.Text.Dropout, m.Interaction.Dropout, cfg.Objective.Captioning.Dropout = 0, 0, 0
	regions.Mask, regions.Drop = 0, 0
	if m.Image.Style == encoders.StyleRegions {
		cfg.Data.Regions.Most, regions.In = regionsMost, regionFeatures
	}
	return cfg, err
}

// perturb moves vectors, such as biases and scales of norms, off their start, where many are 0 or 1: a wrong one would
// go unseen. A learned metric of pairs stays the identity, which published hosts have.
func perturb(p *model.Params) {
	r := rand.New(rand.NewPCG(7, 0))
	for _, q := range p.List() {
		if q.Frozen || len(q.Shape) > 1 || q.Len() == 1 || strings.Contains(q.Name, "gssf") {
			continue
		}
		for i := range p.Value(q) {
			p.Value(q)[i] += float32(0.1 * r.NormFloat64())
		}
	}
}

// parity collects what the file will hold.
type parity struct {
	cfg     config.Config
	model   *model.Trainer
	engine  *compute.Engine
	tensors []safetensors.Tensor
	meta    map[string]string
	sides   [2]*batch.Batch // images and texts of the evaluation
}

func (p *parity) add(name string, shape []int, data any) {
	switch x := data.(type) {
	case []float32:
		data = slices.Clone(x)
	case []int32:
		wide := make([]int64, len(x)) // as torch indexes
		for i, v := range x {
			wide[i] = int64(v)
		}
		data = wide
	}
	p.tensors = append(p.tensors, safetensors.Tensor{Name: name, Shape: shape, Data: data})
}

// step adds parameters, a batch, the parts of its loss and all gradients.
func (p *parity) step(rows int) error {
	m := p.model
	if p.cfg.Has(section.Prototypes) { // which are brought to unit length
		if err := m.Before(0); err != nil {
			return err
		}
	}
	for _, q := range m.Params().List() {
		p.add("param/"+q.Name, q.Shape, m.Params().Value(q))
		if q.Momentum {
			p.add("momentum/"+q.Name, q.Shape, m.Params().MomentumValue(q))
		}
	}
	b := batch.New(rows, m.Columns()...)
	fill(b, rand.New(rand.NewPCG(11, 0)))
	of := 1 // rows of an identity
	if p.cfg.Has(section.Identities) {
		of = p.cfg.Data.Identities.Images
	}
	for i, ids := 0, b.Ints(batch.IDs); i < len(ids); i++ {
		ids[i] = int32(i / of)
	}
	p.inputs("input/", b)
	p.queue()
	step := &feed.Step{Batch: b, Update: 1e6, PerEpoch: 100} // past every warm-up
	if err := p.masks(step); err != nil {
		return err
	}
	res, err := m.Step(context.Background(), step)
	if err != nil {
		return err
	}
	p.add("loss", []int{1}, []float32{float32(res.Loss)})
	for _, x := range res.Parts {
		p.add("loss/"+x.Name, []int{1}, []float32{float32(x.Value)})
	}
	for _, q := range m.Params().List() {
		if !q.Frozen {
			p.add("grad/"+q.Name, q.Shape, m.Params().Grad(q))
		}
	}
	return p.enqueued()
}

// inputs adds the columns of a batch.
func (p *parity) inputs(prefix string, b *batch.Batch) {
	for _, c := range b.Columns() {
		p.add(prefix+c.Name, append([]int{b.Rows()}, c.Shape...), b.Data(c.Name))
	}
}

// fill makes up the columns of a batch.
func fill(b *batch.Batch, r *rand.Rand) {
	for _, c := range b.Columns() {
		x := b.Floats(c.Name)
		for i := range x {
			x[i] = float32(r.NormFloat64())
			if c.Name == batch.Regions { // as those behind a ReLU of a detector
				x[i] = max(x[i], 0)
			}
		}
	}
	if n := b.Ints(batch.RegionLengths); n != nil {
		for i := range n {
			n[i] = regionsMost
		}
	}
	for _, t := range []batch.Text{batch.OwnText, batch.PositiveText, batch.NegativeText} {
		tokens, lengths := b.Ints(t.Tokens), b.Ints(t.Lengths)
		if lengths == nil {
			continue
		}
		most := len(tokens) / len(lengths)
		for i := range lengths {
			n := 5 + r.IntN(min(most, 20)-4)
			row := tokens[i*most:][:n]
			for k := range row {
				row[k] = int32(words + r.IntN(vocabulary-words))
			}
			row[0], row[n-1], lengths[i] = clsID, sepID, int32(n)
		}
	}
}

// evaluate adds the scores of all images of a split with all its captions, and the recalls.
func (p *parity) evaluate(n int) error {
	switch {
	case p.cfg.Has(section.Sentences):
		return p.sentences(n)
	case p.cfg.Has(section.ImagesAlone):
		return p.images(n)
	}
	r := rand.New(rand.NewPCG(13, 0))
	side := func(e *model.Encoder, n int) *batch.Batch {
		b := batch.New(n, e.Columns()...)
		fill(b, r)
		return b
	}
	images, texts := side(p.model.Image(), n), side(p.model.Text(), n*captions)
	p.inputs("eval/", images)
	p.inputs("eval/", texts)
	p.sides = [2]*batch.Batch{images, texts}
	scores, err := p.scores(images, texts)
	if err != nil {
		return err
	}
	p.add("scores", []int{n, n * captions}, scores)
	c, err := correspondence(n)
	if err != nil {
		return err
	}
	ranks, err := eval.Rank(c, n, eval.Matrix(scores, n*captions))
	if err != nil {
		return err
	}
	p.found(ranks.Metrics().Values(), "%.1f")
	return nil
}

// correspondence is that of n images with their captions, one image after the other.
func correspondence(n int) (*eval.Correspondence, error) {
	ids, of := make([]int, n), make([]int, n*captions)
	for i := range of {
		ids[i/captions], of[i] = i/captions, i/captions
	}
	return eval.NewCorrespondence(ids, of)
}

// found notes the numbers of an evaluation as they are printed.
func (p *parity) found(values eval.Values, format string) {
	var list []string
	for _, v := range values {
		list = append(list, v.Name+"="+fmt.Sprintf(format, v.Value))
	}
	p.meta["recalls"] = strings.Join(list, " ")
}

// sentences adds features of texts as scores.
func (p *parity) sentences(n int) error {
	b := batch.New(n, p.model.Text().Columns()...)
	fill(b, rand.New(rand.NewPCG(13, 0)))
	p.inputs("eval/", b)
	x, err := p.model.Text().Features(context.Background(), b)
	p.add("scores", []int{n, len(x) / n}, x)
	return err
}

// scores are those of the tokens or features of both sides.
func (p *parity) scores(images, texts *batch.Batch) ([]float32, error) {
	ctx, m := context.Background(), p.model
	if m.Interaction() != nil {
		x, nx, err := m.Image().EncodeTokens(ctx, images)
		if err != nil {
			return nil, err
		}
		x, nx = slices.Clone(x), slices.Clone(nx)
		y, ny, err := m.Text().EncodeTokens(ctx, texts)
		if err != nil {
			return nil, err
		}
		return m.Interaction().Scores(ctx, x, nx, slices.Clone(y), slices.Clone(ny))
	}
	x, err := m.Image().Features(ctx, images)
	if err != nil {
		return nil, err
	}
	x = slices.Clone(x)
	y, err := m.Text().Features(ctx, texts)
	if err != nil {
		return nil, err
	}
	score, err := m.PairScore()
	if err != nil {
		return nil, err
	}
	dst := make([]float32, images.Rows()*texts.Rows())
	return dst, score.Rows(p.engine, x, images.Rows(), y, texts.Rows(), dst)
}

func (p *parity) write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return cmp.Or(safetensors.Write(w, p.tensors, p.meta), w.Flush(), f.Close())
}
