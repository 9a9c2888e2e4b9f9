package model

import (
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// tcl returns the terms that triple contrastive learning adds to a contrast (Yang et al.
// 2022): the contrast within each modality and the local ones. Each is logged too.
func (s *builder) tcl(c objectives.MomentumContrast) (terms gorgonia.Nodes) {
	t := s.m.cfg.Objective.TCL
	add := func(name string, n *gorgonia.Node) {
		terms = append(terms, n)
		s.tg.parts = append(s.tg.parts, namedNode{name, n, true})
	}
	if t.Intra {
		i2i, t2t := c.Intra()
		add("itc_i2i", i2i)
		add("itc_t2t", t2t)
	}
	if t.Local {
		add("itc_local_image", s.localImage(t.Grid))
		add("itc_local_text", s.localText())
	}
	return terms
}

// localImage is the contrast of an image with its grid x grid parts, the means of the
// teacher's projected patches.
func (s *builder) localImage(grid int) *gorgonia.Node {
	patches := s.m.head.Rows(s.mom.In("image_proj"), s.momentum.imageTokens) // (B*T, C)
	return objectives.Local{
		Whole: s.online.image, Parts: contrast.PoolPatches(patches, s.t, s.m.vit.Size/s.m.vit.Patch, grid), // (B*grid*grid, C)
		IDs: s.tg.ids, Temperature: s.scores.temperature(),
	}.Build()
}

// localText is the contrast of a caption with its tokens, [CLS] left out.
func (s *builder) localText() *gorgonia.Node {
	states := s.momentum.clean
	if s.softMLM {
		states = layout.StridedRows(states, 0, 1, s.b*s.l) // masked captions come after them
	}
	return objectives.Local{
		Whole: s.online.text, Parts: s.m.head.Rows(s.mom.In("text_proj"), states), // (B*L, C)
		Lengths: s.tg.clean.lengths, First: 1, IDs: s.tg.ids, Temperature: s.scores.temperature(),
	}.Build()
}
