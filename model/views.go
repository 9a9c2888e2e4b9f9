package model

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
)

// views are the systems of images alone, MoCo and SwAV: a vision transformer whose class
// token passes an MLP of one hidden layer and ReLU to the unit sphere (Chen et al. 2020), or a residual network whose mean does.
// The transformer and the head have no batch normalisation; a residual network has.
//
// MoCo is contrast of two views of an image with a momentum encoder and a queue of its
// features (He et al. 2020): the first view passes the encoder, the second its twin. SwAV
// is swapped prediction between two views that pass one encoder (Caron et al. 2020), and from
// smaller views to them where there are any (crops.go). Views pass it one after the other, so that each
// has batch norms of its own statistics, and all crops together. Its queue holds features of first views, and both views' codes are
// balanced together with it, where SwAV keeps a queue for each view.
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
