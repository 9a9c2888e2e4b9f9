package model

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
)

// albef is the system of Li et al. 2021: a vision transformer, a text encoder and a fusion
// encoder, trained by image-text contrast against a momentum teacher and a queue,
// image-text matching with hard negatives, and masked language modelling.
func albef(cfg config.Config, o Options, space space.Space) design {
	d := pairOfTowers(cfg, o, encoders.Projection{Space: space})
	if bert, ok := textEncoder(cfg.Model, o, space).(encoders.BERT); ok {
		bert.Pictures = cfg.Pictures()
		d.fusion = &bert
	}
	return d
}

// clip is a dual encoder (Radford et al. 2021) with the towers and heads of clip-mtob (its
// section 3.1): a pre-norm vision transformer and a post-norm text encoder, each with a
// projection without bias onto the topology of model.head. The paper trains it by symmetric
// contrast within the batch alone; a teacher and a queue are a matter of configuration.
func clip(cfg config.Config, o Options, space space.Space) design {
	return pairOfTowers(cfg, o, encoders.Projection{Space: space, NoBias: true, Gaussian: true})
}

// matchingSystem is a system of image-text matching, in the manner of VSE++ (Faghri et al. 2018) and
// SCAN (Lee et al. 2018): a tower for each side, compared by features or by tokens
// (model.interaction). A tower as wide as the space gives its rows directly; any other has a
// projection with a bias. It is trained by the losses over the scores of a batch, as a rule by
// objective.hinge.
func matchingSystem(cfg config.Config, o Options, space space.Space) design {
	d := pairOfTowers(cfg, o, encoders.Projection{Space: space})
	for _, x := range []struct {
		*side
		own encoders.Tower // in the place of the side's
	}{{&d.image, o.Image}, {&d.text, o.Text}} {
		tower := x.tower
		if x.own != nil {
			tower = x.own
		}
		head := x.head.(encoders.Projection)
		_, width := tower.Shape()
		head.Identity = width == space.Dim && !space.Tokens
		x.head = head
	}
	return d
}

// views are the systems of images alone, MoCo and SwAV: a vision transformer whose class token passes an MLP of one
// hidden layer and ReLU to the unit sphere (Chen et al. 2020), or a residual network whose mean does. The transformer
// and the head have no batch normalisation; a residual network has.
//
// MoCo is contrast of two views of an image with a momentum encoder and a queue of its features (He et al. 2020): the
// first view passes the encoder, the second the momentum encoder. SwAV is swapped prediction between two views that
// pass one encoder (Caron et al. 2020), and from smaller views to them where there are any (crops.go). Views pass it
// one after the other, so that each has batch norms of its own statistics, and all crops together. Its queue holds
// features of first views, and both views' codes are balanced together with it, where SwAV keeps a queue for each view.
func views(cfg config.Config) design {
	im, sphere := cfg.Model.Image, space.Space{Dim: cfg.Model.Head.Dim}
	first := side{
		name: "image", proj: "image_proj", frozen: im.Freeze,
		tower: imageTower(cfg, sphere),
		head:  cfg.Model.Views.Head(im.TokenWidth(), sphere),
	}
	second := first
	second.column = map[string]string{batch.Images: batch.Views}
	second.teacher = second.column
	d := design{image: first, text: second, views: true, teacher: cfg.Momentum.Enabled}
	if n := cfg.SmallCrops(); n > 0 {
		small := cfg
		small.Model.Image.Size = cfg.Data.Crops.Size
		d.crops = crops{tower: imageTower(small, sphere), count: n, size: cfg.Data.Crops.Size}
	}
	d.keys = func(s *objectives.Step) keyNodes {
		if s.HasTeacher() {
			return keyNodes{image: s.Teacher.Text.Features}
		}
		return keyNodes{image: s.Online.Image.Features}
	}
	return d
}

// crops are further, smaller views of an image (multi-crop, Caron et al. 2020, section 3.2).
type crops struct {
	tower       encoders.Tower // of images of their size, with the parameters of the image tower
	count, size int
}

// column is that of the batch.
func (c crops) column() batch.Column {
	return batch.Column{Name: batch.Crops, Shape: []int{c.count, 3, c.size, c.size}}
}

// crops encodes the small views of the batch, all together: their features come image by image.
func (b *builder) crops() {
	c, x, s := b.design.crops, b.design.image, b.s
	if c.count == 0 {
		return
	}
	n := s.Rows * c.count
	scope, context := b.scope(s.Params, x.name), s.Student
	if x.frozen {
		scope, context = scope.As(encoders.Traits{Locked: true}), &encoders.Context{}
	}
	in := encoders.Inputs{batch.Images: s.Shaped(c.column(), s.Rows, n, 3, c.size, c.size)}
	q := c.tower.Encode(context, scope, in, encoders.Want{Classes: true})
	s.Crops = x.head.Project(s.Student, b.scope(s.Params, x.proj), q.Classes) // (B*V, C)
}

// identities is metric learning of images alone: one tower and a projection without bias onto the unit sphere. Its
// losses compare the images of a batch by their identities. Both sides are this tower, so that whatever asks
// for either side of a score has it; a step encodes the images once.
func identities(cfg config.Config, space space.Space) design {
	one := side{
		name: "image", proj: "image_proj", frozen: cfg.Model.Image.Freeze,
		tower: imageTower(cfg, space),
		head:  encoders.Projection{Space: space, NoBias: true, Gaussian: true},
	}
	return design{image: one, text: one, views: true}
}

// classes is fine-tuning of an image tower for classification: the tower without a head of its own, whose features are
// its class tokens on the unit sphere. Both sides are this tower, so that whatever asks for either side of a score has
// it; a step encodes the images once.
func classes(cfg config.Config, space space.Space) design {
	one := side{name: "image", proj: "image_proj", frozen: cfg.Model.Image.Freeze, tower: imageTower(cfg, space),
		head: encoders.Projection{Space: space, Identity: true}}
	return design{image: one, text: one, views: true}
}

// simcse is learning of sentence embeddings from texts alone (Gao et al. 2021): one text tower, whose losses compare
// the texts of a batch. Both sides are this tower, so that whatever asks for either side of a score has it; a step
// encodes the texts once. An embedding is what model.text.pool gives, on the unit sphere, or with objective.simcse.head
// = "always" what the head makes of it.
func simcse(cfg config.Config, o Options, space space.Space) design {
	one := side{name: "text", proj: "text_proj", frozen: cfg.Model.Text.Freeze, tower: textTower(cfg, o, space)}
	if cfg.Objective.SimCSE.Head == objectives.SentenceHeadAlways {
		one.head = encoders.TanhHead(space)
	} else {
		one.head = encoders.Projection{Space: space, Identity: true}
	}
	return design{image: one, text: one, views: true}
}

// sentencePairs is fine-tuning of a text tower on pairs of sentences: that of simcse without a head of its own, and in
// training with the types of tokens where both sentences are one text. A sentence alone is encoded as before, all of
// the first type.
func sentencePairs(cfg config.Config, o Options, space space.Space) design {
	t := textTower(cfg, o, space)
	one := side{name: "text", proj: "text_proj", frozen: cfg.Model.Text.Freeze, tower: t,
		head: encoders.Projection{Space: space, Identity: true}}
	if cfg.JointPairs() {
		t.Segments = true
		one.inTraining = t
	}
	return design{image: one, text: one, views: true}
}

// oneEncoder is a tower of texts or of images as it is used, with its projection or with the layers behind its pool.
// Both sides are this tower.
func oneEncoder(cfg config.Config, o Options, space space.Space) (design, error) {
	one := side{name: "text", proj: "text_proj"}
	if cfg.Has(section.Images) {
		one = side{name: "image", proj: "image_proj", tower: imageTower(cfg, space)}
	} else {
		one.tower = textTower(cfg, o, space)
	}
	h := encoders.Dense{Projection: encoders.Projection{Space: space, Identity: cfg.Model.Head.Whole(one.name),
		NoBias: one.name == "image" || cfg.Model.Text.Style != encoders.StyleSigLIP}}
	var err error
	if h.Layers, err = cfg.Model.Head.Layers(""); err != nil {
		return design{}, fmt.Errorf("model: model.head.dense: %w", err)
	}
	if one.head = h; len(h.Layers) == 0 {
		one.head = h.Projection
	}
	return design{image: one, text: one, views: true}, nil
}
