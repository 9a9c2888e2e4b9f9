package objectives

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// Fused is a loss over pairs that pass the fusion layers. Its methods are called once each,
// in this order, so that it may keep what one of them makes for the next.
type Fused interface {
	Prepare(s *Step) // as of Preparer
	// Pairs says which pairs the loss reads, and where; first pairs go before them in the
	// pass.
	Pairs(s *Step, first int) FusedPairs
	// Loss returns the parts for the fused states (M, D) at the places of Pairs.
	Loss(s *Step, states *gorgonia.Node) []Part
}

// FusedPairs are R pairs of a text and an image.
type FusedPairs struct {
	Count         int            // R
	Texts, Images gorgonia.Nodes // int32 indices of texts and images, R in all; none: row r is text r and image r
	Second        gorgonia.Nodes // of second pictures, R in all, where fusion layers read two
	Places        encoders.Places
	WholePlaces   int // places of the global batch, where this process is one of several
	// OtherTexts and OtherImages are numbers in the global batch of texts and images that Texts and Images name too:
	// they stand behind those of this rank, in this order. nil: none.
	OtherTexts, OtherImages *gorgonia.Node
}

var (
	_ Loss     = Fusing(nil)
	_ Preparer = Fusing(nil)
)

// Fusing runs the fusion layers once over the pairs of all its losses. The rows are those
// of the first loss, then those of the next. Rows share the keys of an image through an
// index, so an image is projected once, and the last layer computes the states that a loss
// reads, and no others.
type Fusing []Fused

// Group returns losses in their order, with all that are Fused as one at the place of the first.
func Group(all []any) (list []Loss) {
	fused, at := Fusing(nil), -1
	for _, x := range all {
		switch x := x.(type) {
		case Loss:
			list = append(list, x)
		case Fused:
			if fused = append(fused, x); at < 0 {
				at, list = len(list), append(list, nil)
			}
		}
	}
	if at >= 0 {
		list[at] = fused
	}
	return list
}

// Prepare implements Preparer.
func (l Fusing) Prepare(s *Step) {
	Need(s.Fusion != nil, "fusion", "this system has no fusion layers: set objective.itm.weight and objective.mlm.weight = 0")
	for _, x := range l {
		x.Prepare(s)
	}
}

// Build implements Loss.
func (l Fusing) Build(s *Step) (parts []Part) {
	var texts, images, second, rows, sequences, otherTexts, otherImages gorgonia.Nodes
	var at, whole []int // where each loss's states begin, and how many the global batch has
	var each []encoders.Places
	first, places := 0, 0
	for _, x := range l {
		p := x.Pairs(s, first)
		at = append(at, places)
		texts, images, second = append(texts, p.Texts...), append(images, p.Images...), append(second, p.Second...)
		rows, sequences = append(rows, p.Places.Rows), append(sequences, p.Places.Sequences)
		each, whole = append(each, p.Places), append(whole, p.WholePlaces)
		if p.OtherTexts != nil {
			otherTexts = append(otherTexts, p.OtherTexts)
		}
		if p.OtherImages != nil {
			otherImages = append(otherImages, p.OtherImages)
		}
		first, places = first+p.Count, places+p.Places.Rows.Shape()[0]
	}
	var pairs encoders.Pairs
	if len(texts) > 0 {
		pairs = encoders.Pairs{Texts: layout.ConcatInts(texts...), Images: layout.ConcatInts(images...)} // (R)
	}
	if len(second) > 0 {
		pairs.Second = layout.ConcatInts(second...) // (R)
	}
	read := &encoders.Places{Rows: layout.ConcatInts(rows...), Sequences: layout.ConcatInts(sequences...),
		Whole: wholePlaces(each, whole)}
	a := encoders.FusionArgs{
		Images: s.Online.Image.Tokens, Pairs: pairs, At: read,
		TextLen: s.Fusion.TextLen, ImageLen: s.Fusion.ImageLen,
	}
	a.Texts, a.Lengths = s.Online.Text.states(s)
	s.others(&a, otherTexts, otherImages)
	fused := s.Fusion.Fusion(s.Student, s.Fusion.Params, a) // (M, D)
	for i, x := range l {
		n := rows[i].Shape()[0]
		parts = append(parts, x.Loss(s, layout.StridedRows(fused, at[i], 1, n))...)
	}
	return parts
}

// FirstTokens are the first tokens of n fused pairs, which first pairs stand before.
func (s *Step) FirstTokens(first, n int) encoders.Places {
	l := s.Fusion.TextLen
	return encoders.Places{Rows: s.Count("first tokens of pairs", first*l, n, l),
		Sequences: s.Count("pairs", first, n, 1), Whole: s.stacked(n / s.Rows)}
}

// others puts texts and images of the global batch behind those of this rank, whose numbers texts and images (R) int32
// say.
func (s *Step) others(a *encoders.FusionArgs, texts, images gorgonia.Nodes) {
	if len(texts) > 0 {
		of := layout.ConcatInts(texts...)
		own := s.Rows * a.TextLen
		clean := s.Gather(layout.StridedRows(a.Texts, 0, 1, own)) // (N*L, D)
		lengths := s.Gather(s.Captions.Clean[batch.Lengths])      // (N)
		a.TextNumbers = layout.ConcatInts(s.stacked(a.Texts.Shape()[0]/own), of)
		a.Texts = layout.ConcatRows(a.Texts, nn.GatherRows(clean, of, a.TextLen))
		a.Lengths = layout.ConcatInts(a.Lengths, layout.GatherInts(lengths, of))
	}
	if len(images) > 0 {
		of := layout.ConcatInts(images...)
		a.Images = layout.ConcatRows(a.Images, nn.GatherRows(s.Gather(a.Images), of, a.ImageLen))
	}
}

// states are the token states of the captions that losses read, (N*L, D), with their
// lengths (N): clean ones, then masked ones.
func (x Side) states(s *Step) (states, lengths *gorgonia.Node) {
	switch in := s.Captions; {
	case x.Tokens == nil:
		return x.Masked, in.Masked[batch.Lengths]
	case s.Reads.Online.Text.Masked:
		return x.Tokens, in.All[batch.Lengths]
	default:
		return x.Tokens, in.Clean[batch.Lengths]
	}
}
