package encoders

import (
	"cmp"
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/exchange"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// ResNetTower is a residual network as a tower. Its tokens are the mean of the places of the last layer, which is the
// class token, and then the places, row by row: 1 + 49 of an image of 224 x 224.
//
// With ShuffleGroups above 1 the batch norms of a training step normalise each of so many groups of the images by its
// own statistics, as processes do that have a part of a batch each: a group passes the network by itself, and running
// statistics move by the mean over the groups. Where the context shuffles images, groups are of shuffled ones, and what
// comes out is in the order of the images again (shuffling BN, He et al. 2020, section 3.3).
type ResNetTower struct{ ResNet }

var _ Tower = ResNetTower{}

// Columns is the image, (3, S, S).
func (t ResNetTower) Columns() []batch.Column {
	return []batch.Column{{Name: batch.Images, Shape: []int{3, t.Size, t.Size}}}
}

// Classes returns 1.
func (t ResNetTower) Classes() int { return 1 }

// Shape returns the tokens of an image, 1 + P, and their width.
func (t ResNetTower) Shape() (length, width int) { return 1 + t.Places(), t.Channels() }

// Encode encodes images (B, 3, S, S).
func (t ResNetTower) Encode(c *Context, s Scope, in Inputs, want Want) Sequence {
	p := t.Places()
	x := t.places(c, s, squareImages("resnet", in, t.Size)) // (B*P, D)
	return placesBehind(nn.MeanTokens(s.tap.pooled(x, p), nil, p, 0), x, p, t.Channels(), want)
}

// squareImages are the images (B, 3, S, S) that a network of convolutions reads.
func squareImages(name string, in Inputs, size int) *gorgonia.Node {
	images := in[batch.Images]
	if x := images.Shape(); len(x) != 4 || x[1] != 3 || x[2] != size || x[3] != size {
		misuse(name, images, "want images (B, 3, %d, %d)", size, size)
	}
	return images
}

// placesBehind is the sequence of p places of each image, x (B*P, D), behind their mean (B, D), the class token.
func placesBehind(mean, x *gorgonia.Node, p, width int, want Want) Sequence {
	q := Sequence{Len: 1 + p, Width: width, Begin: 1}
	if want.Classes {
		q.Classes = mean
	}
	if want.Tokens {
		q.Tokens = layout.InsertRows(x, mean, p, 1, 0) // (B*(1+P), D)
	}
	return q
}

// places encodes images to the places of the last layer, (B*P, D).
func (t ResNetTower) places(c *Context, s Scope, images *gorgonia.Node) *gorgonia.Node {
	n, groups := images.Shape()[0], max(1, t.ShuffleGroups)
	if groups == 1 || c.Statistics == nil {
		return t.Forward(c, s, imageRows(images, nil))
	}
	if c.Group != nil { // each has as many groups
		if groups%c.Group.Size() != 0 {
			misuse("resnet", images, "%d groups must be a multiple of the processes (got %d)", groups, c.Group.Size())
		}
		groups /= c.Group.Size()
	}
	if n%groups != 0 {
		misuse("resnet", images, "%d groups must divide the images", groups)
	}
	var order, back *gorgonia.Node
	if c.Shuffle != nil {
		order, back = c.Shuffle(n)
		if c.Group != nil { // among the images of all
			images = exchange.Gather(c.Group, images)
		}
	}
	x, each := imageRows(images, order), n/groups*t.Size*t.Size
	own, heard := *c, newGroupMoments()
	own.Statistics, own.Group = heard.add, nil
	var y *gorgonia.Node
	for g := range groups {
		z := t.Forward(&own, s, layout.StridedRows(x, g*each, 1, each))
		if y == nil {
			y = z
		} else {
			y = layout.ConcatRows(y, z)
		}
	}
	heard.tell(c)
	if back != nil {
		if c.Group != nil {
			y = exchange.Gather(c.Group, y)
		}
		y = nn.GatherRows(y, back, t.Places())
	}
	return y
}

// ConvNetTower is a network of convolutions as a tower. Its tokens are those of ResNetTower: the mean of the places of
// the last layer and the places. With the pool by attention they are what that gives, and what it would give of each
// place alone.
type ConvNetTower struct{ ConvNet }

var _ Tower = ConvNetTower{}

// Columns is the image, (3, S, S).
func (t ConvNetTower) Columns() []batch.Column {
	return []batch.Column{{Name: batch.Images, Shape: []int{3, t.Size, t.Size}}}
}

// Classes returns 1.
func (t ConvNetTower) Classes() int { return 1 }

// Shape returns the tokens of an image, 1 + P, and their width.
func (t ConvNetTower) Shape() (length, width int) { return 1 + t.Places(), t.Width() }

// Encode encodes images (B, 3, S, S).
func (t ConvNetTower) Encode(c *Context, s Scope, in Inputs, want Want) Sequence {
	p := t.Places()
	x := t.Forward(c, s, imageRows(squareImages("convnet", in, t.Size), nil)) // (B*P, D)
	if t.PoolHeads > 0 {
		class, x := t.attend(s.In("pool"), s.tap.pooled(x, p), p, want)
		return placesBehind(class, x, p, t.Width(), want)
	}
	mean := nn.MeanTokens(s.tap.pooled(x, p), nil, p, 0)
	if t.FinalNorm {
		mean = norm(s, "norm", mean, float32(cmp.Or(t.FinalEps, t.Eps)))
	}
	return placesBehind(mean, x, p, t.Channels(), want)
}

// attend is the pool by attention of the p places of each image, x (B*p, D): what stands for an image, (B, W), and
// what would for each place alone, (B*p, W), nil where nobody reads tokens.
func (t ConvNetTower) attend(s Scope, x *gorgonia.Node, p int, want Want) (class, places *gorgonia.Node) {
	d, start := t.Channels(), torchLinear
	y := layout.InsertRows(x, nn.MeanTokens(x, nil, p, 0), p, 1, 0) // (B*(1+p), D)
	y = nn.AddPositions(y, s.Param("pos_embed", Normal(1/math.Sqrt(float64(d))), 1+p, d), 1+p)
	project := func(x *gorgonia.Node) *gorgonia.Node {
		if t.PoolWidth == 0 {
			return x
		}
		return linear(s, "proj", start, x, t.PoolWidth)
	}
	q := linearPart(s, "qkv", start, layout.SequenceRows(y, 1+p, 0, 1), 0, d, 3*d) // (B, D)
	kv := linearPart(s, "qkv", start, y, d, 2*d, 3*d)                              // (B*(1+p), 2D)
	class = project(attention.CrossAttention(attention.CrossArgs{Q: q, KV: kv, QueryLen: 1, KeyLen: 1 + p,
		Heads: t.PoolHeads, Keep: 1}))
	if want.Tokens {
		places = project(linearPart(s, "qkv", start, layout.SequenceRest(y, 1+p, 0, 1), 2*d, d, 3*d))
	}
	return class, places
}

// groupMoments are the statistics of groups by the running ones that they move.
type groupMoments struct {
	running []Moments
	of      map[Moments][]Moments
}

func newGroupMoments() *groupMoments { return &groupMoments{of: map[Moments][]Moments{}} }

// add is Context.Statistics of a group.
func (m *groupMoments) add(running Moments, batch ...Moments) {
	if m.of[running] == nil {
		m.running = append(m.running, running)
	}
	m.of[running] = append(m.of[running], batch...)
}

// tell tells a context of all groups.
func (m *groupMoments) tell(c *Context) {
	for _, running := range m.running {
		c.Statistics(running, m.of[running]...)
	}
}
