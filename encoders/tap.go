package encoders

import "gorgonia.org/gorgonia"

// Tap sees inner nodes of a tower while it is built, so that a caller can ask for their values and
// for gradients at them. It changes nothing. A field that is nil sees nothing.
type Tap struct {
	// Tokens sees the tokens x (R*t, D) that the attention of block or text layer i reads, normalised
	// where a norm stands before it, of sequences of t: the last P of an image are its patches, the
	// last L of a text its places.
	Tokens func(i int, x *gorgonia.Node, t int)
	// Self sees the attention of image tokens to each other in block i, where the queries of all of them are
	// computed: rows [q | k | v] (R*t, 3D) and the values that heads have gathered (R*t, D), before the output layer.
	Self func(i int, qkv, gathered *gorgonia.Node, t int)
	// Pooled sees the tokens that a pool reads, other than one of class tokens.
	Pooled func(x *gorgonia.Node, t int)
	// Cross sees the attention of texts to images in fusion layer i, counted from 0: queries
	// (R*L, D), keys and values (N*T, 2D), rows [k | v], and the values that heads have gathered
	// (R*L, D), before the output layer.
	Cross func(i int, q, kv, gathered *gorgonia.Node)
}

// Tapped returns s with a tap for the towers that are built in it.
func (s Scope) Tapped(t Tap) Scope {
	s.tap = t
	return s
}

// tokens shows the tap what an attention reads.
func (t Tap) tokens(i int, x *gorgonia.Node, length int) {
	if t.Tokens != nil {
		t.Tokens(i, x, length)
	}
}

// self shows the tap an attention of image tokens to each other.
func (t Tap) self(i int, qkv, gathered *gorgonia.Node, length int) {
	if t.Self != nil {
		t.Self(i, qkv, gathered, length)
	}
}

// pooled shows the tap what a pool reads, and returns it.
func (t Tap) pooled(x *gorgonia.Node, length int) *gorgonia.Node {
	if t.Pooled != nil {
		t.Pooled(x, length)
	}
	return x
}

// cross shows the tap an attention to images.
func (t Tap) cross(i int, q, kv, gathered *gorgonia.Node) {
	if t.Cross != nil {
		t.Cross(i, q, kv, gathered)
	}
}
