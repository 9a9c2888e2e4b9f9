package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
)

// pairOfTowers is a design of a tower for images and one for texts, each with the head of
// model.head.style: the linear one given, which is left out where model.head.identity says so and has a bias
// for texts of SigLIP, one with tanh behind it, or an MLP.
func pairOfTowers(cfg config.Config, o Options, space space.Space, head encoders.Projection) design {
	m := cfg.Model
	of := func(side string, tower, own encoders.Tower) encoders.Head {
		if h := m.Head; h.Style == config.HeadMLP {
			if own != nil {
				tower = own
			}
			_, width := tower.Shape()
			return encoders.MLP{Space: space, Shared: h.Shared, Layers: 1, Hidden: h.Hidden(width), Activation: h.Activation}
		}
		if m.Head.Style == config.HeadTanh {
			return objectives.SentenceHead(space)
		}
		p := head
		p.Identity = m.Head.Whole(side)
		p.NoBias = head.NoBias && !(side == "text" && m.Text.Style == config.StyleSigLIP)
		return p
	}
	texts, images := textTower(cfg, o, space), imageTower(cfg, space)
	return design{
		image:   side{name: "image", tower: images, proj: "image_proj", head: of("image", images, o.Image), frozen: m.Image.Freeze},
		text:    side{name: "text", tower: texts, proj: "text_proj", head: of("text", texts, o.Text), frozen: m.Text.Freeze},
		teacher: cfg.Momentum.Enabled,
		keys:    teacherKeys(cfg),
	}
}

// imageTower is the tower of images that a style names.
func imageTower(cfg config.Config, space space.Space) encoders.Tower {
	switch cfg.Model.Image.Style {
	case config.StyleRegions:
		return regionTower(cfg)
	case config.StyleResNet:
		return resNetTower(cfg.Model)
	}
	return encoders.ImageTower{ViT: imageEncoder(cfg.Model, space)}
}

// textTower is the tower of texts of a model.
func textTower(cfg config.Config, o Options, space space.Space) encoders.TextTower {
	m := cfg.Model
	return encoders.TextTower{
		Encoder: textEncoder(m, o, space), Tokens: cfg.Data.Tokens,
		Pool: encoders.Pool(m.Text.Pooling()), Padding: m.Text.Style == config.StyleSigLIP, Begin: o.Begin, End: o.End,
	}
}

// imageEncoder is the vision transformer of a model, with the class tokens that the space of
// its features asks for. The structure is that of a style, or of the system without one.
func imageEncoder(m config.Model, space space.Space) encoders.ViT {
	im := m.Image
	v := encoders.ViT{Size: im.Size, Patch: im.Patch, Depth: im.Depth, Width: im.Width, Heads: im.Heads, MLP: im.MLP,
		Classes: space.Classes(), TokenBlocks: m.Head.TokenBlocks, Registers: im.Registers, Activation: im.Activation,
		Metric: attentionMetric(m, config.AttendImage), Pool: encoders.Pool(im.Pooling()), Eps: float32(im.LayerNormEps(m.System)), TorchStart: m.System == "clip"}
	v.NormFirst = im.Style != config.StyleViT && im.Style != config.StyleDeiT && im.Style != ""
	preset := ""
	switch im.Style {
	case config.StyleCLIP:
		v.NoPatchBias, v.PreNorm, preset = true, true, "quick_gelu"
	case config.StyleDINOv2:
		v.LayerScale = true
	case config.StyleSigLIP:
		v.NoClass, preset = true, "gelu_tanh"
	case "":
		if m.System == "clip" { // clip-mtob's
			v.NoPatchBias, v.PreNorm = true, true
		}
	}
	if v.Activation == "" {
		v.Activation = preset
	}
	return v
}

// textEncoder is the text transformer of a model, as imageEncoder is that of images, with the
// fusion layers of the model.
func textEncoder(m config.Model, o Options, space space.Space) encoders.TextEncoder {
	tx, torch := m.Text, m.System == "clip"
	if tx.Style == config.StyleGRU {
		return encoders.GRU{Vocab: o.Vocab, Embedding: tx.GRU.Embedding, Layers: tx.Layers, Width: tx.Width,
			Directions: encoders.Directions(tx.GRU.Directions), Dropout: tx.Dropout}
	}
	activation := func(preset string) string {
		if tx.Activation != "" {
			return tx.Activation
		}
		return preset
	}
	if tx.PreNorm() {
		p := encoders.PreNormText{Vocab: o.Vocab, Positions: tx.Positions, Layers: tx.Layers, Width: tx.Width, Heads: tx.Heads, MLP: tx.MLP,
			Dropout: tx.Dropout, Eps: float32(tx.LayerNormEps(m.System)), TorchStart: torch, Metric: attentionMetric(m, config.AttendText)}
		if tx.Style == config.StyleCLIP {
			p.Causal, p.Activation = true, activation("quick_gelu")
		} else {
			p.Activation = activation("gelu_tanh")
		}
		return p
	}
	b := encoders.BERT{Vocab: o.Vocab, Pad: o.Pad, Positions: tx.Positions, Layers: tx.Layers, FusionLayers: tx.FusionLayers, Width: tx.Width, Heads: tx.Heads, MLP: tx.MLP,
		Dropout: tx.Dropout, Classes: space.Classes(), TokenBlocks: m.Head.TokenBlocks, Activation: tx.Activation, Eps: float32(tx.LayerNormEps(m.System)), TorchStart: torch,
		Metric: attentionMetric(m, config.AttendText), FusionMetric: attentionMetric(m, config.AttendFusion)}
	switch tx.Style {
	case config.StyleRoBERTa:
		b.NoTokenType = true
	case config.StyleMPNet:
		b.NoTokenType, b.Relative = true, mpnetBuckets
	case "":
		if torch { // clip-mtob's
			b.NoTokenType, b.FinalNorm = true, true
		}
	}
	return b
}

// mpnetBuckets are those of MPNet's bias by distance.
const mpnetBuckets = 32

// attentionMetric is the learned metric of the attention at a place, none where the configuration has none there.
func attentionMetric(m config.Model, where string) encoders.AttentionMetric {
	a := m.AttentionMetric
	if !a.At(where) {
		return encoders.AttentionMetric{}
	}
	width, heads := m.Attends(where)
	return encoders.AttentionMetric{Form: a.Form, Blocks: a.HeadBlocks(width / max(1, heads)), Shared: a.Heads == config.AttendShared}
}

// regionTower is the tower of images that come as features of regions.
func regionTower(cfg config.Config) encoders.RegionTower {
	im := cfg.Model.Image
	r := im.Regions
	t := encoders.RegionTower{Regions: cfg.Data.Regions.Most, In: r.In, Width: im.Width, MLP: r.Encoder == config.RegionsMLP, BatchNorm: r.BatchNorm && r.Encoder != config.RegionsLinear, Pool: encoders.Pool(im.Pooling())}
	if r.Encoder == config.RegionsGraph {
		t.Graph = encoders.RegionGraph{Layers: r.Layers, Metric: encoders.Metric{Form: r.Metric, Blocks: im.RegionBlocks(), Dim: im.Width}}
	}
	return t
}

// resNetTower is the residual network of a model.
func resNetTower(m config.Model) encoders.ResNetTower {
	r := m.Image.ResNet
	return encoders.ResNetTower{ResNet: encoders.ResNet{
		Size: m.Image.Size, Depth: r.Depth, Width: r.Width, SmallStem: r.SmallStem,
		FrozenStages: r.FrozenStages, FrozenNorm: r.FrozenNorm, Groups: r.ShuffleGroups, ZeroInitResidual: r.ZeroInitResidual,
	}}
}
