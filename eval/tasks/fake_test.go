package tasks

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
)

// Sizes of the fake model.
const (
	fakeSize   = 2 // pixels of a side
	fakeTokens = 3 // tokens of an image and places of a text
	fakeWidth  = 2
	fakeDim    = 4
)

// fakeModel has given features and match scores. Images carry their index in every
// pixel, texts in their second token, states in every value. Results are overwritten
// by the next call, as those of a real model.
type fakeModel struct {
	images, texts     [][]float32 // features by index
	scores            [][]float32 // match score by image and text
	noHead            bool
	fail              string // name of the method that fails
	states, features  []float32
	match             []float32
	imageRuns, batchN int
}

var errFake = errors.New("fake failure")

var _ Model = (*fakeModel)(nil)

func (m *fakeModel) PairScore() scoring.Score {
	return scoring.Score{Space: space.Space{Dim: fakeDim}, Terms: []scoring.Term{{Kind: scoring.Cosine, Weight: 1}}}
}
func (m *fakeModel) HasMatching() bool { return !m.noHead }
func (m *fakeModel) ImageSize() int    { return fakeSize }
func (m *fakeModel) ImageTokens() int  { return fakeTokens }
func (m *fakeModel) ImageWidth() int   { return fakeWidth }
func (m *fakeModel) TextTokens() int   { return fakeTokens }
func (m *fakeModel) TextWidth() int    { return fakeWidth }
func (m *fakeModel) Dim() int          { return fakeDim }

// encode writes n rows of states and features into buffers that are used again.
func (m *fakeModel) encode(n int, index func(i int) int, features [][]float32) ([]float32, []float32) {
	m.states = append(m.states[:0], make([]float32, n*fakeTokens*fakeWidth)...)
	m.features = m.features[:0]
	for i := range n {
		for k := range fakeTokens * fakeWidth {
			m.states[i*fakeTokens*fakeWidth+k] = float32(index(i))
		}
		m.features = append(m.features, features[index(i)]...)
	}
	return m.states, m.features
}

func (m *fakeModel) EncodeImages(images []float32, n int) (states, features []float32, err error) {
	if m.fail == "EncodeImages" {
		return nil, nil, errFake
	}
	m.imageRuns, m.batchN = m.imageRuns+1, n
	states, features = m.encode(n, func(i int) int { return int(images[i*3*fakeSize*fakeSize]) }, m.images)
	return states, features, nil
}

func (m *fakeModel) EncodeTexts(ids, lengths []int32, n int) (states, features []float32, err error) {
	if m.fail == "EncodeTexts" {
		return nil, nil, errFake
	}
	states, features = m.encode(n, func(i int) int { return int(ids[i*fakeTokens+1]) }, m.texts)
	return states, features, nil
}

func (m *fakeModel) Match(states []float32, lengths, index []int32, images []float32, n, k int) ([]float32, error) {
	if m.fail == "Match" {
		return nil, errFake
	}
	const size = fakeTokens * fakeWidth
	if len(states) != n*size || len(images) != k*size || len(lengths) != n || len(index) != n {
		return nil, errors.New("sizes do not fit")
	}
	m.match = m.match[:0]
	for i := range n {
		text := int(states[i*size+size-1])
		if int(lengths[i]) != 2+text%2 {
			return nil, errors.New("length of another text")
		}
		m.match = append(m.match, m.scores[int(images[int(index[i])*size+size-1])][text])
	}
	return m.match, nil
}

// fakeTokenizer makes the number of a text its second token; odd ones have a third.
type fakeTokenizer struct{}

func (fakeTokenizer) Encode(text string, _ int) []int32 {
	j, _ := strconv.Atoi(text)
	return []int32{1, int32(j), 9}[:2+j%2]
}

// fakeSet is a split whose text j is the number j.
type fakeSet struct {
	owner []int // image of each text
	n     int
	bad   int // image that cannot be read, if > 0
}

var _ data.EvalSet = fakeSet{}

func (s fakeSet) NumImages() int                      { return s.n }
func (s fakeSet) NumTexts() int                       { return len(s.owner) }
func (s fakeSet) Text(j int) string                   { return strconv.Itoa(j) }
func (s fakeSet) TextImage(j int) int                 { return s.owner[j] }
func (s fakeSet) ImageTexts(int) []int                { panic("not used") }
func (s fakeSet) ImageID(i int) int64                 { return int64(i) }
func (s fakeSet) ImageName(i int) string              { return strconv.Itoa(i) }
func (s fakeSet) Image(int) (*transform.Image, error) { panic("not used") }
func (s fakeSet) LoadImage(i int, dst []float32) error {
	if s.bad > 0 && i == s.bad {
		return errFake
	}
	for k := range dst {
		dst[k] = float32(i)
	}
	return nil
}

var engine = func() *kernel.Engine {
	e, err := kernel.New(kernel.Options{Threads: 2})
	if err != nil {
		panic(err)
	}
	return e
}()

// fake returns an evaluation of n images with texts captions each, features and match
// scores drawn at random.
func fake(t testing.TB, seed uint64, n, texts int) (Retrieval, *fakeModel) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	m, set := &fakeModel{}, fakeSet{n: n}
	row := func() []float32 {
		v := make([]float32, fakeDim)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	for range n {
		m.images = append(m.images, row())
	}
	for k := range n * texts {
		set.owner = append(set.owner, k%n) // captions of an image are not neighbours
		m.texts = append(m.texts, row())
	}
	for range n {
		var s []float32
		for range n * texts {
			s = append(s, float32(r.NormFloat64()))
		}
		m.scores = append(m.scores, s)
	}
	return Retrieval{Model: m, Tokenizer: fakeTokenizer{}, Engine: engine, Set: set, BatchSize: 4, Workers: 2}, m
}
