package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/tasks/captioning"
)

// tinyHost is a host of GSSF over features of regions, by name, of the sizes of tools/goldens/hosts.py.
func tinyHost(name string) config.Config {
	c := tinyCLIP("sphere")
	c.Model.System = "matching"
	c.Data.Kind, c.Data.Regions.Most = "regions", 4
	c.Model.Image = encoders.ImageOptions{Style: encoders.StyleRegions, Width: 8, Regions: encoders.RegionTower{In: 6, Encoder: encoders.RegionsLinear}}
	c.Model.Text = encoders.TextOptions{Style: encoders.StyleGRU, Layers: 1, Width: 8, GRU: encoders.GRU{Embedding: 7, Directions: encoders.DirectionForward}}
	c.Objective.ITC.InBatchWeight = 0
	c.Objective.Hinge = objectives.Hinge{Weighted: section.Weigh(1), Margin: 0.2, Negatives: "hardest"}
	name, c.Model.Image.Regions.BatchNorm = strings.CutSuffix(name, "_norm")
	name, caption := strings.CutSuffix(name, "_caption")
	if caption {
		c.Objective.Captioning = captioning.Loss{Weighted: section.Weigh(0.5), Width: 6, Embedding: 5}
	}
	switch r := &c.Model.Image.Regions; name {
	case "vseinf":
		r.Encoder, c.Model.Image.Pool, c.Model.Text.Pool, c.Model.Text.GRU.Directions = encoders.RegionsMLP, "gpo", "gpo", encoders.DirectionsMean
	case "esa":
		r.Encoder, c.Model.Image.Pool, c.Model.Text.Pool, c.Model.Text.GRU.Directions = encoders.RegionsMLP, "esa", "esa", encoders.DirectionsMean
	case "vsrn":
		r.Encoder, r.Layers, r.Metric, c.Model.Image.Pool = encoders.RegionsGraph, 2, "dense", "gru"
	case "scan", "scan_i2t", "bfan", "imram", "naaf":
		c.Model.Text.GRU.Directions = encoders.DirectionsMean
		kind, i2t := strings.CutSuffix(name, "_i2t")
		c.Model.Interaction = interact.Options{Kind: kind, Steps: 3, Penalty: 2, Metric: interact.MetricBoth}
		if i2t {
			c.Model.Interaction.Direction = interact.DirectionImageToText
		}
		c.Objective.ITC.Score, c.Objective.GSSF = "gssf", objectives.GSSF{Form: "dense"}
	}
	return c
}

// hosts compare features, tokenHosts tokens.
var (
	hosts      = []string{"vsepp", "vseinf", "vsrn", "vseinf_norm", "vsrn_norm", "vsrn_caption", "esa_norm"}
	tokenHosts = []string{"scan", "scan_i2t", "bfan", "imram", "naaf"}
)

// hostBatch is a batch of the inputs of a golden.
func hostBatch(m *Trainer, g golden) *batch.Batch {
	b := g.fill(batch.New(5, m.Columns()...))
	copy(b.Ints(batch.IDs), []int32{0, 1, 2, 3, 4})
	return b
}

// hostFeatures are the features of both sides.
func hostFeatures(t *testing.T, m *Trainer, b *batch.Batch) (image, text []float32) {
	t.Helper()
	of := func(e *Encoder) []float32 {
		_, f := check.Get2(e.Encode(t.Context(), hostColumns(e, b)))(t)
		return slices.Clone(f)
	}
	return of(m.Image()), of(m.Text())
}

// hostStep gives a host the golden's weights, which it must have all, and compares the loss and all gradients of a
// step, and running statistics behind the update.
func (g golden) hostStep(t *testing.T, m *Trainer) *batch.Batch {
	t.Helper()
	g.giveAll(m)
	b := hostBatch(m, g)
	g.value("loss", stepOf(t, m, &feed.Step{Batch: b}).Loss)
	check.OK(t, m.After())
	g.gradients(m)
	for _, q := range m.params.List() {
		if strings.Contains(q.Name, "running_") {
			g.near(q.Name, m.params.Value(q), "after/"+q.Name, 1e-5)
		}
	}
	return b
}

// hostColumns are the columns of a batch that a side reads.
func hostColumns(e *Encoder, b *batch.Batch) *batch.Batch {
	x := batch.New(b.Rows(), e.Columns()...)
	for i := range b.Rows() {
		x.Row(i).Copy(b.Row(i))
	}
	return x
}

// tokenScores are the scores of a model that compares tokens.
func tokenScores(t *testing.T, m *Trainer, b *batch.Batch) []float32 {
	t.Helper()
	of := func(e *Encoder) ([]float32, []int32) {
		x, n := check.Get2(e.EncodeTokens(t.Context(), hostColumns(e, b)))(t)
		return slices.Clone(x), slices.Clone(n)
	}
	x, nx := of(m.Image())
	y, ny := of(m.Text())
	return check.Get(m.Interaction().Scores(t.Context(), x, nx, y, ny))(t)
}

// TestGoldenHosts compares the loss, all gradients by name, running statistics behind an update, and features and
// scores with PyTorch's modules, whose inputs have rubbish in the regions and words behind a length.
func TestGoldenHosts(t *testing.T) {
	for _, name := range append(slices.Clone(hosts), tokenHosts...) {
		t.Run(name, func(t *testing.T) {
			g := openGolden(t, "host_"+name)
			m := buildCLIP(t, tinyHost(name))
			b := g.hostStep(t, m)
			outputs := map[string][]float32{}
			if slices.Contains(tokenHosts, name) {
				outputs["scores"] = tokenScores(t, m, b)
			} else {
				image, text := hostFeatures(t, m, b)
				scores := make([]float32, 25)
				for i := range scores {
					for c := range 8 {
						scores[i] += image[i/5*8+c] * text[i%5*8+c]
					}
				}
				outputs["image"], outputs["text"], outputs["scores"] = image, text, scores
			}
			for name, got := range outputs {
				g.near(name, got, "expect/"+name, 1e-5)
			}
		})
	}
}

// TestHostMetricStart: with a learned metric, which starts as the identity, a host scores its pairs bit for bit as with
// the cosine, and has its loss. The same holds of the metric between regions.
func TestHostMetricStart(t *testing.T) {
	for _, name := range append(slices.Clone(hosts), tokenHosts...) {
		cfg := tinyHost(name)
		cfg.Model.Image.Regions.Metric, cfg.Objective.ITC.Score = "", "cosine"
		plain := buildCLIP(t, cfg)
		b := batch.New(5, plain.Columns()...)
		for i := range b.Rows() {
			row := b.Row(i)
			row.Set(batch.RegionLengths, int32(1+i%4))
			row.Set(batch.Lengths, int32(2+i))
			row.Set(batch.IDs, int32(i))
			for k := range row.Floats(batch.Regions) {
				row.Floats(batch.Regions)[k] = float32(math.Sin(float64(100*i + k)))
			}
			for k := range row.Ints(batch.Tokens) {
				row.Ints(batch.Tokens)[k] = int32(5 + (3*i+k)%15)
			}
		}
		loss := func(m *Trainer) float64 {
			return stepOf(t, m, &feed.Step{Batch: b}).Loss
		}
		outputs := func(m *Trainer) (list [][]float32) {
			if plain.Interaction() != nil {
				return [][]float32{tokenScores(t, m, b)}
			}
			image, text := hostFeatures(t, m, b)
			return [][]float32{image, text}
		}
		rows := outputs(plain)
		want := loss(plain)
		for _, form := range []string{"diag", "block_diag", "dense"} {
			with := cfg
			with.Objective.ITC.Score = "gssf"
			with.Objective.GSSF = objectives.GSSF{Form: form, Blocks: 2}
			graph := strings.HasPrefix(name, "vsrn")
			if graph {
				with.Model.Image.Regions.Metric, with.Model.Image.Regions.MetricBlocks = form, 2
			}
			m := buildCLIP(t, with)
			for _, q := range plain.params.List() { // the order of parameters is that of their random numbers
				own, ok := m.params.Get(q.Name)
				if !ok {
					t.Fatalf("there is no %s", q.Name)
				}
				copy(m.params.Value(own), plain.params.Value(q))
			}
			if n := len(m.params.List()) - len(plain.params.List()); n < 1 || graph && n != 3 {
				t.Fatalf("%d weights of metrics", n)
			}
			if got := loss(m); got != want {
				t.Errorf("%s, %s: the loss is %v, %v of the cosine", name, form, got, want)
			}
			for k, got := range outputs(m) {
				if !sameBits(got, rows[k]) {
					t.Errorf("%s, %s: features or scores differ from those of the cosine", name, form)
				}
			}
		}
	}
}
