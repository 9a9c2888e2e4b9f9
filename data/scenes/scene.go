package scenes

import (
	"fmt"
	"math/rand/v2"
	"sort"
)

// MaxObjects is the largest number of objects of a scene: a caption of more
// would not stay within 25 words.
const MaxObjects = 4

// jitter is the largest distance of an object from its cell's centre along one
// axis, as a share of the picture's width.
const jitter = 0.03

// tint is the largest change of one colour channel of one object.
const tint = 10

// Config describes a world. The zero value of each field means its default.
type Config struct {
	MinObjects int // fewest objects of a scene; 0: 1
	MaxObjects int // most objects of a scene, at most 4; 0: 4
	Size       int // width and height of the pictures in pixels, kept for the reader of World.Config; 0: 64
	Shapes     int // number of shapes used, the first of the list; 0: all 8
	Colours    int // number of colours used, the first of the list; 0: all 8
	Sizes      int // number of sizes used; 0: both

	ValSamples  int // scenes of the validation split; 0: 1,000
	TestSamples int // scenes of the test split; 0: 1,000
}

// withDefaults fills in defaults and reports values out of range.
func (c Config) withDefaults() (Config, error) {
	fill := func(p *int, value int) {
		if *p == 0 {
			*p = value
		}
	}
	fill(&c.MinObjects, 1)
	fill(&c.MaxObjects, MaxObjects)
	fill(&c.Size, 64)
	fill(&c.Shapes, numShapes)
	fill(&c.Colours, numColours)
	fill(&c.Sizes, numSizes)
	fill(&c.ValSamples, 1000)
	fill(&c.TestSamples, 1000)
	for _, f := range []struct {
		name          string
		value, lo, hi int
	}{
		{"min_objects", c.MinObjects, 1, MaxObjects},
		{"max_objects", c.MaxObjects, c.MinObjects, MaxObjects},
		{"size", c.Size, 8, 4096},
		{"shapes", c.Shapes, 1, numShapes},
		{"colours", c.Colours, 1, numColours},
		{"sizes", c.Sizes, 1, numSizes},
		{"val_samples", c.ValSamples, 1, 1 << 20},
		{"test_samples", c.TestSamples, 1, 1 << 20},
	} {
		if f.value < f.lo || f.value > f.hi {
			return c, fmt.Errorf("scenes: %s must be from %d to %d (got %d)", f.name, f.lo, f.hi, f.value)
		}
	}
	if looks := c.Shapes * c.Colours; looks < c.MaxObjects {
		return c, fmt.Errorf("scenes: %d shapes x %d colours give %d different objects, fewer than max_objects (%d): "+
			"allow more shapes or colours, or fewer objects", c.Shapes, c.Colours, looks, c.MaxObjects)
	}
	return c, nil
}

// Object is one shape of a scene. Lengths are shares of the picture's width;
// X grows to the right, Y grows downwards.
type Object struct {
	Shape  Shape
	Colour Colour
	Size   Size
	Place  Place

	X, Y   float64  // centre
	Radius float64  // half the width of the square that the outline fills
	RGB    [3]uint8 // colour with this object's tint
}

// Name returns colour and shape, which are unique within a scene: "red circle".
func (o Object) Name() string { return o.Colour.String() + " " + o.Shape.String() }

// FullName returns size, colour and shape: "small red circle".
func (o Object) FullName() string { return o.Size.String() + " " + o.Name() }

// Box is an axis-aligned rectangle in shares of the picture's width.
type Box struct{ X0, Y0, X1, Y1 float64 }

// Box returns the tight bounding box of the object's outline.
func (o Object) Box() Box {
	e := shapeExtent[o.Shape]
	return Box{o.X + e.X0*o.Radius, o.Y + e.Y0*o.Radius, o.X + e.X1*o.Radius, o.Y + e.Y1*o.Radius}
}

// Scene is one picture with everything that is true about it. Objects are in
// reading order of their places.
type Scene struct {
	Objects    []Object
	Background Background
	Curtain    Curtain // hides a column; NoCurtain in the scenes of a World
}

// Generate draws a scene. The zero fields of cfg mean their defaults; values
// out of range are the caller's mistake and panic, [New] reports them as errors.
func Generate(r *rand.Rand, cfg Config) Scene {
	cfg, err := cfg.withDefaults()
	if err != nil {
		panic(err)
	}
	return generate(r, cfg)
}

// generate is Generate for a configuration that was completed and checked.
func generate(r *rand.Rand, cfg Config) Scene {
	return generateCount(r, cfg, cfg.MinObjects+r.IntN(cfg.MaxObjects-cfg.MinObjects+1))
}

// generateCount draws a scene of n objects.
func generateCount(r *rand.Rand, cfg Config, n int) Scene {
	s := Scene{Objects: make([]Object, 0, n), Background: Background(r.IntN(numBackgrounds))}
	var placeUsed [numPlaces]bool
	var lookUsed [numShapes * numColours]bool
	for len(s.Objects) < n {
		p := Place(r.IntN(numPlaces))
		shape, colour := Shape(r.IntN(cfg.Shapes)), Colour(r.IntN(cfg.Colours))
		size := Size(r.IntN(cfg.Sizes))
		look := int(shape)*numColours + int(colour)
		if placeUsed[p] || lookUsed[look] {
			continue
		}
		placeUsed[p], lookUsed[look] = true, true
		o := Object{Shape: shape, Colour: colour, Size: size, Place: p, Radius: sizeRadius[size]}
		o.X = (float64(p.Column())+0.5)/3 + jitter*(2*r.Float64()-1)
		o.Y = (float64(p.Row())+0.5)/3 + jitter*(2*r.Float64()-1)
		for c, v := range colour.RGB() {
			o.RGB[c] = uint8(min(255, max(0, int(v)+r.IntN(2*tint+1)-tint)))
		}
		s.Objects = append(s.Objects, o)
	}
	sort.Slice(s.Objects, func(i, j int) bool { return s.Objects[i].Place < s.Objects[j].Place })
	return s
}

// Key packs the facts that captions name: shape, colour, size and place of each
// object, 12 bits an object. Two scenes with one key are described identically.
func (s Scene) Key() uint64 {
	var k uint64
	for _, o := range s.Objects {
		code := uint64(o.Place)<<7 | uint64(o.Shape)<<4 | uint64(o.Colour)<<1 | uint64(o.Size)
		k = k<<12 | (code + 1)
	}
	return k
}
