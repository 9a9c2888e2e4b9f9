package config

import (
	"cmp"
	"fmt"
	"reflect"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives"
)

// limitHint is the cure for a value above a limit.
const limitHint = "lower it: docs/config.md lists the limit of every key"

// above says whether a number, or one of a list, is larger than most.
func above(v reflect.Value, most float64) bool {
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if above(v.Index(i), most) {
				return true
			}
		}
		return false
	case v.CanUint():
		return float64(v.Uint()) > most || v.Uint() > 1<<63-1
	case v.CanInt():
		return float64(v.Int()) > most
	}
	return v.Float() > most
}

// checkLimits checks every key against its tag max.
func (c *Config) checkLimits(k *section.Checker) {
	for _, f := range c.leaves() {
		if f.most > 0 && above(f.value, f.most) {
			k.Require(f.path, false, "must be at most "+f.tag.Get("max"), limitHint)
		}
	}
}

// product is a number that several keys make together, each of them within its own limit.
type product struct {
	path string // key that a problem is told of
	what string
	most float64
	cure string // empty: to lower one of them
	n    func(c *Config) float64
}

// Limits of products. They are those of no machine, whose memory the model asks for when
// it is built: they keep sizes where they can be counted and tables where they can be made.
const (
	mostPatches = 1 << 16 // as text positions
	mostValues  = 1 << 34 // of one array: 64 GiB
	mostWeights = 1 << 40 // of a tower
)

// products lists what is limited.
var products = []product{
	{"model.image.size", "patches of an image, (model.image.size / model.image.patch)^2", mostPatches, "lower it or raise model.image.patch", patches},
	{"train.batch_size", "pixel values of a batch, train.batch_size x 3 x model.image.size^2", mostValues, "",
		func(c *Config) float64 { return pixels(c, c.RankRows()) }},
	{"data.prefetch", "pixel values that are prepared ahead, of data.prefetch batches and data.workers samples",
		mostValues, "", func(c *Config) float64 {
			return pixels(c, (max(c.Data.Prefetch, 2)+2+c.HeldBatches())*c.RankRows()+2*c.Data.Workers)
		}},
	{"eval.batch_size", "pixel values of a batch, eval.batch_size x 3 x model.image.size^2", mostValues, "",
		func(c *Config) float64 { return pixels(c, c.Eval.BatchSize) }},
	{"train.batch_size", "values of a layer, train.batch_size x patches of an image x model.image.width, or those of its stem", mostValues, "",
		func(c *Config) float64 {
			width := c.Model.Image.Width
			switch {
			case c.Has(section.Convolutions):
				return float64(c.RankRows()) * c.Model.Image.Widest()
			case c.Has(section.Regions):
				width = max(width, c.Model.Image.Regions.In)
			}
			return pick(c.Has(section.Images), float64(c.RankRows())*patches(c)*float64(width))
		}},
	{"train.batch_size", "values of a layer, train.batch_size x data.tokens x model.text.width", mostValues, "",
		func(c *Config) float64 {
			width := c.Model.Text.Width
			if c.Has(section.Recurrent) {
				width = c.Model.Text.Recurrent().Widest()
			}
			return pick(c.Has(section.Words), float64(c.RankRows())*float64(c.Data.Tokens)*float64(width))
		}},
	{"train.batch_size", "values of hidden layers, train.batch_size x model.heads.layers x model.heads.hidden",
		mostValues, "", func(c *Config) float64 {
			return pick(c.Has(section.Stored),
				float64(c.RankRows())*float64(max(1, c.Model.Heads.Layers))*float64(c.Model.Heads.Hidden))
		}},
	{"objective.geometric.neighbours", "points of a batch, train.batch_size x objective.geometric.neighbours",
		1<<31 - 1, "", func(c *Config) float64 {
			return pick(c.Objective.Geometric.On() && c.Has(section.Stored),
				float64(c.RankRows())*float64(c.Objective.Geometric.Neighbours))
		}},
	{"queue.size", "values of a queue, queue.size x model.head.dim", mostValues, "",
		func(c *Config) float64 { return float64(c.Queue.Size) * float64(c.Model.Head.Dim) }},
	{"train.batch_size", "scores of a batch, n x (n + queue.size) of n = train.batch_size pairs that are compared, times train.accumulate_steps with train.accumulate = \"features\"", mostValues, "",
		func(c *Config) float64 {
			if objectives.Tiles(c.View()) && len(c.on()) == 1 { // no scores are held
				return 0
			}
			return float64(c.ComparedRows()) * (float64(c.ContrastRows()) + float64(c.Queue.Size))
		}},
	{"model.image.depth", "weights of the blocks of the image tower", mostWeights, "",
		func(c *Config) float64 {
			return pick(c.Has(section.Images) && !c.Has(section.Convolutions), float64(c.Model.Image.Weights()))
		}},
	{"model.text.layers", "weights of the layers of the text tower", mostWeights, "",
		func(c *Config) float64 {
			t := c.Model.Text
			fused := pick(c.Has(section.WordAttention), float64(t.BlockWeights()*int64(t.FusionLayers*c.Pictures())))
			return pick(c.Has(section.Words), float64(t.Weights())+fused)
		}},
	{"model.head.dim", "weights of the fusion of objective.adcl, model.head.dim^3 with a full core", mostWeights,
		"lower it or set objective.adcl.rank",
		func(c *Config) float64 { return float64(c.Objective.ADCL.Weights(c.Model.Head.Dim)) }},
	{"model.heads.hidden", "weights of a head, its input and the hidden layers below the last x model.heads.hidden",
		mostWeights, "", func(c *Config) float64 {
			h := c.Model.Heads
			return pick(c.Has(section.Stored),
				float64(max(h.InImage, h.InText, c.Model.Head.Dim)+max(0, h.Layers-1)*h.Hidden)*float64(h.Hidden))
		}},
}

// checkProducts checks them where every key is within its own limits.
func (c *Config) checkProducts(k *section.Checker) {
	if len(k.Errs) > 0 {
		return
	}
	for _, p := range products {
		n := p.n(c)
		k.Require(p.path, n <= p.most, fmt.Sprintf("makes %.0f %s, of which there must be at most %.0f", n, p.what,
			p.most), cmp.Or(p.cure, "lower one of these"))
	}
}

// patches returns the patches, regions or places of an image, 0 where none are read.
func patches(c *Config) float64 {
	switch {
	case c.Has(section.Stored):
		return 0
	case c.Has(section.Regions):
		return float64(c.Data.Regions.Most)
	}
	side := float64(c.Model.Image.Grid())
	return pick(c.Has(section.Images), side*side)
}

// pixels returns the values of so many images.
func pixels(c *Config, images int) float64 {
	if c.Has(section.Regions) {
		return 0
	}
	large, small := float64(c.Model.Image.Size), float64(c.Data.Crops.Size)
	return pick(c.Has(section.Images), 3*float64(images)*(float64(c.Data.Views)*large*large+
		float64(c.SmallCrops())*small*small))
}

func pick(read bool, n float64) float64 {
	if read {
		return n
	}
	return 0
}
