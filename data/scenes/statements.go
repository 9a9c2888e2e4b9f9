package scenes

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/internal/rng"
)

// Statement is a sentence about two pictures that is true of them or false.
type Statement struct {
	Text     string
	Kind     string // what one has to look at, see StatementKinds
	True     bool
	Pictures [2]Scene // the left one and the right one
}

// StatementKinds are the kinds of statements, here of a red circle. The pictures lie side by side.
var StatementKinds = []string{
	"side", // there is a red circle on the left; or on the right
	"some", // there is a red circle
	"both", // there is a red circle on both sides
	"one",  // there is a red circle on one side only
	"none", // there is no red circle
	"more", // there are more red shapes on the left; or on the right, and of circles
}

// statementTurns are the kinds in the order in which they take turns. What is easy comes more often: most statements
// are the truer the more there is to see, which is learned first, and turning that round for some of them, and
// comparing, builds on it.
var statementTurns = []string{"side", "some", "both", "more", "side", "some", "both", "one", "none"}

// statementGroup is how many statements in a row say the same, each of other pictures: half of them are true, so that
// the text alone tells nothing, as in NLVR2 (Suhr et al. 2019, section 3).
const statementGroup = 4

// statementDraws is how often a picture is looked for among those of a split before one is drawn that is in none.
const statementDraws = 4096

// Statement returns statement i of a split: a function of seed, name and i alone. Statements 4n to 4n+3 have one text,
// and two of them are true, in any order; kinds take turns. at gives pictures of the split for any number. Of a split
// that has none a statement needs, pictures are drawn anew.
func (w *World) Statement(at func(i uint64) Scene, seed uint64, name string, i uint64) Statement {
	group := i / statementGroup
	r := rng.New(seed, rng.Scenes+"/statements/"+name, group)
	s := Statement{Kind: statementTurns[group%uint64(len(statementTurns))]}
	claim := w.claim(s.Kind, r)
	s.Text = claim.text
	truths := [statementGroup]bool{true, true}
	r.Shuffle(len(truths), func(a, b int) { truths[a], truths[b] = truths[b], truths[a] })
	s.True = truths[i%statementGroup]
	r = rng.New(seed, rng.Scenes+"/statements/pictures/"+name, i)
	draws := 0
	s.Pictures = claim.pictures(s.True, r, func() Scene {
		if draws++; draws > statementDraws {
			return generate(r, w.cfg)
		}
		return at(r.Uint64() >> 1)
	})
	return s
}

// claim is what a statement says.
type claim struct {
	text string
	// holds says whether it is true of two pictures that have so many of what it is about.
	holds func(left, right int) bool
	count func(s Scene) int
	// exists: the claim is about whether there are any, so that pictures are looked for one by one.
	exists bool
}

// claim draws one of a kind.
func (w *World) claim(kind string, r *rand.Rand) claim {
	x := w.wanted(r)
	left := r.IntN(2) == 0
	side := map[bool]string{true: " on the left", false: " on the right"}[left]
	has := func(text string, holds func(left, right bool) bool) claim {
		return claim{text, func(l, r int) bool { return holds(l > 0, r > 0) }, x.count, true}
	}
	switch one := "there is " + x.one(); kind {
	case "side":
		return has(one+side, func(l, r bool) bool { return left && l || !left && r })
	case "some":
		return has(one, func(l, r bool) bool { return l || r })
	case "both":
		return has(one+" on both sides", func(l, r bool) bool { return l && r })
	case "one":
		return has(one+" on one side only", func(l, r bool) bool { return l != r })
	case "none":
		return has("there is no "+x.words(), func(l, r bool) bool { return !l && !r })
	}
	if x.colour >= 0 && x.shape >= 0 { // of which a picture has one at most
		x.shape = -1
	}
	return claim{"there are more " + x.many() + side, func(l, r int) bool { return left && l > r || !left && r > l },
		x.count, false}
}

// pictures draws two that the claim is true of, or false. A claim about whether there are any is made true or false in
// every way equally often.
func (c claim) pictures(truth bool, r *rand.Rand, draw func() Scene) [2]Scene {
	if !c.exists {
		for {
			if p := [2]Scene{draw(), draw()}; c.holds(c.count(p[0]), c.count(p[1])) == truth {
				return p
			}
		}
	}
	var ways [][2]int
	for k := range 4 {
		if way := [2]int{k % 2, k / 2}; c.holds(way[0], way[1]) == truth {
			ways = append(ways, way)
		}
	}
	way := ways[r.IntN(len(ways))]
	var p [2]Scene
	for k := range p {
		for p[k] = draw(); min(1, c.count(p[k])) != way[k]; p[k] = draw() {
		}
	}
	return p
}

// wanted is what a claim is about: objects of a colour, of a shape, or of both; -1: any.
type wanted struct{ colour, shape int }

// wanted draws one that the world has: both, a colour alone or a shape alone equally often.
func (w *World) wanted(r *rand.Rand) wanted {
	x := wanted{r.IntN(w.cfg.Colours), r.IntN(w.cfg.Shapes)}
	switch r.IntN(3) {
	case 0:
		x.colour = -1
	case 1:
		x.shape = -1
	}
	return x
}

// count is the number of such objects of a scene.
func (x wanted) count(s Scene) (n int) {
	for _, o := range s.Objects {
		if (x.colour < 0 || int(o.Colour) == x.colour) && (x.shape < 0 || int(o.Shape) == x.shape) {
			n++
		}
	}
	return n
}

// words are the words of it, of which the last is a noun.
func (x wanted) words() string {
	noun := "shape"
	if x.shape >= 0 {
		noun = Shape(x.shape).String()
	}
	if x.colour >= 0 {
		noun = Colour(x.colour).String() + " " + noun
	}
	return noun
}

// one is "a red circle".
func (x wanted) one() string {
	if x.colour == int(Orange) {
		return "an " + x.words()
	}
	return "a " + x.words()
}

// many is "red circles".
func (x wanted) many() string {
	if x.shape == int(Cross) {
		return x.words() + "es"
	}
	return x.words() + "s"
}
