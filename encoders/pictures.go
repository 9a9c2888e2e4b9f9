package encoders

import "gorgonia.org/gorgonia"

// A text that is read with two pictures, as a statement of NLVR2 is (Li et al. 2021, section 5), passes fusion layers
// in twos: the first of two attends to one picture and the second to the other. The two have one product for keys and
// values, the parameters crossattention/kv of the first, and everything else of their own. A pre-trained fusion layer j
// is where the layers 2j and 2j+1 start from.

// CrossLayers is the number of layers with cross-attention: FusionLayers for each picture of a text.
func (b BERT) CrossLayers() int { return b.FusionLayers * b.pictures() }

func (b BERT) pictures() int { return max(1, b.Pictures) }

// sharedKeys is the scope of the keys and values of fusion layer i.
func (b BERT) sharedKeys(s Scope, i int) Scope { return s.Layer("layers", b.Layers+i-i%b.pictures()) }

// picture returns the images that are picture k of each row, nil for image r of row r.
func (p Pairs) picture(k int) *gorgonia.Node {
	if k == 1 {
		return p.Second
	}
	return p.Images
}

// checkPictures tells pairs that do not say which pictures they are of.
func (b BERT) checkPictures(x *gorgonia.Node, p Pairs) {
	switch n := b.pictures(); {
	case n > 2:
		misuse("fusion", x, "a text has one picture or two (got %d)", n)
	case n == 2 && (p.Texts == nil || p.Images == nil || p.Second == nil):
		misuse("fusion", x, "a text with two pictures needs the indices of its text and of both pictures")
	case n == 1 && p.Second != nil:
		misuse("fusion", x, "a text with one picture has no second one")
	}
}
