package model

import (
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// towers is what the two encoders make of a batch. What no loss reads is nil and is
// not computed.
type towers struct {
	imageTokens *gorgonia.Node // (B*T, Dimage), the first class token and the patches
	clean       *gorgonia.Node // (B*L, D) states of the captions, or with masked ones after them (2B*L, D)
	masked      *gorgonia.Node // (B*L, D) states of the masked captions, where they are not in clean
	image, text *gorgonia.Node // (B, C) features
	// imageClasses (B*m, Dimage) and textClasses (B*m, D) are the class tokens that the
	// heads read.
	imageClasses, textClasses *gorgonia.Node
}

// encode runs both towers with the parameters of p. It returns the states of image
// tokens, of clean and of masked captions only if asked to.
func (s *builder) encode(p encoders.Scope, c *encoders.Context, images *gorgonia.Node, image, clean, masked bool) towers {
	var x towers
	if vit := p.In("image"); image {
		x.imageTokens, x.imageClasses = s.m.vit.Encode(vit, images)
	} else {
		x.imageClasses = s.m.vit.Class(vit, images)
	}
	x.image = s.m.head.Forward(p.In("image_proj"), x.imageClasses, s.m.head.Classes()) // (B, C)
	if s.m.head.Classes() > 1 {
		s.encodeClasses(&x, p.In("text"), c, clean, masked)
	} else {
		s.encodeFirst(&x, p.In("text"), c, clean, masked)
	}
	x.text = s.m.head.Forward(p.In("text_proj"), x.textClasses, s.m.head.Classes()) // (B, C)
	return x
}

// encodeFirst runs the text tower with one class token for each text: clean and masked
// captions in one pass where both are asked for.
func (s *builder) encodeFirst(x *towers, p encoders.Scope, c *encoders.Context, clean, masked bool) {
	text := func(in captions, at *encoders.Places) *gorgonia.Node {
		return s.m.bert.Text(c, p, in.ids, in.lengths, s.l, at)
	}
	if clean {
		in := s.tg.clean
		if masked {
			in = s.all
		}
		x.clean = text(in, nil)                                  // (B*L, D) or (2B*L, D)
		x.textClasses = layout.StridedRows(x.clean, 0, s.l, s.b) // (B, D)
		if masked {
			x.masked = layout.StridedRows(x.clean, s.b*s.l, 1, s.b*s.l) // (B*L, D)
		}
		return
	}
	x.textClasses = text(s.tg.clean, s.first()) // (B, D)
	if masked {
		x.masked = text(s.tg.masked, nil) // (B*L, D)
	}
}

// encodeClasses runs it with several class tokens for each clean caption. Masked captions
// have one: nothing reads more of theirs.
func (s *builder) encodeClasses(x *towers, p encoders.Scope, c *encoders.Context, clean, masked bool) {
	x.clean, x.textClasses = s.m.bert.TextClasses(c, p, s.tg.clean.ids, s.tg.clean.lengths, s.l, clean)
	if !masked {
		return
	}
	x.masked = s.m.bert.Text(c, p, s.tg.masked.ids, s.tg.masked.lengths, s.l, nil) // (B*L, D)
	if clean {
		x.clean = layout.ConcatRows(x.clean, x.masked) // (2B*L, D)
	}
}

// first is the places of the first tokens of B texts.
func (s *builder) first() *encoders.Places {
	return &encoders.Places{Rows: s.fixedInts("first tokens", iota32(0, s.b, s.l)), Sequences: s.fixedInts("texts", iota32(0, s.b, 1))}
}
