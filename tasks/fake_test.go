package tasks_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/retrieval"
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
	owner             []int       // image of each text
	fail              string      // what fails: "images", "texts" or "match"
	states, features  []float32
	match             []float32
	imageRuns, batchN int
}

var errFake = errors.New("fake failure")

var (
	_ tasks.Encoder = fakeImages{}
	_ tasks.Encoder = fakeTexts{}
	_ tasks.Matcher = (*fakeModel)(nil)
)

// fakeSide is what both sides of the model share.
type fakeSide struct{ *fakeModel }

func (fakeSide) Len() int   { return fakeTokens }
func (fakeSide) Width() int { return fakeWidth }
func (fakeSide) Dim() int   { return fakeDim }

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

type fakeImages struct{ fakeSide }

func (fakeImages) Columns() []batch.Column {
	return []batch.Column{{Name: batch.Images, Shape: []int{3, fakeSize, fakeSize}}}
}

func (m fakeImages) Encode(_ context.Context, b *batch.Batch) (states, features []float32, err error) {
	if m.fail == "images" {
		return nil, nil, errFake
	}
	m.imageRuns, m.batchN = m.imageRuns+1, b.Rows()
	states, features = m.encode(b.Rows(), func(i int) int { return int(b.Row(i).Floats(batch.Images)[0]) }, m.images)
	return states, features, nil
}

func (m fakeImages) Features(ctx context.Context, b *batch.Batch) ([]float32, error) {
	_, features, err := m.Encode(ctx, b)
	return features, err
}

func (m fakeImages) EncodeClasses(ctx context.Context, b *batch.Batch) ([]float32, error) {
	return firstTokens(ctx, m, b)
}

type fakeTexts struct{ fakeSide }

func (fakeTexts) Columns() []batch.Column { return captions.Columns() }

func (m fakeTexts) Encode(_ context.Context, b *batch.Batch) (states, features []float32, err error) {
	if m.fail == "texts" {
		return nil, nil, errFake
	}
	states, features = m.encode(b.Rows(), func(i int) int { return int(b.Row(i).Ints(batch.Tokens)[1]) }, m.texts)
	return states, features, nil
}

func (m fakeTexts) Features(ctx context.Context, b *batch.Batch) ([]float32, error) {
	_, features, err := m.Encode(ctx, b)
	return features, err
}

func (m fakeTexts) EncodeClasses(ctx context.Context, b *batch.Batch) ([]float32, error) {
	return firstTokens(ctx, m, b)
}

// firstTokens are the class tokens of a model with one.
func firstTokens(ctx context.Context, m tasks.Encoder, b *batch.Batch) (classes []float32, err error) {
	states, _, err := m.Encode(ctx, b)
	for ; len(states) > 0; states = states[m.Len()*m.Width():] {
		classes = append(classes, states[:m.Width()]...)
	}
	return classes, err
}

func (m *fakeModel) Match(_ context.Context, states []float32, lengths, index []int32, images []float32, n,
	k int) ([]float32, error) {
	if m.fail == "match" {
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
		s := m.scores[int(images[int(index[i])*size+size-1])][text]
		m.match = append(m.match, -s, s)
	}
	return m.match, nil
}

// fakeTokenizer makes the number of a text its second token; odd ones have a third.
type fakeTokenizer struct{}

func (fakeTokenizer) Encode(text string, _ int) []int32 {
	j, _ := strconv.Atoi(text)
	return []int32{1, int32(j), 9}[:2+j%2]
}

func (fakeTokenizer) PadID() int32 { return 0 }

// captions makes columns of texts.
var captions = &data.Texts{Tokenizer: fakeTokenizer{}, Tokens: fakeTokens}

// fakeSet is a split whose text j is the number j.
type fakeSet struct {
	owner []int   // image of each text
	ids   []int64 // of the images; nil: their numbers
	n     int
	bad   int // image that cannot be read, if > 0
}

// into makes the set that of an evaluation.
func (s fakeSet) into(r *retrieval.Retrieval) {
	r.Images, r.Texts, r.TextImage = imageRows{s}, textRows{s}, func(j int) int { return s.owner[j] }
	r.ImageID = func(i int) int64 {
		if s.ids == nil {
			return int64(i)
		}
		return s.ids[i]
	}
}

type imageRows struct{ fakeSet }

func (s imageRows) Len() int             { return s.n }
func (imageRows) Columns() []data.Column { return fakeImages{}.Columns() }

func (s imageRows) Fill(i int, row batch.Row) error {
	if s.bad > 0 && i == s.bad {
		return errFake
	}
	pixels := row.Floats(batch.Images)
	for k := range pixels {
		pixels[k] = float32(i)
	}
	return nil
}

type textRows struct{ fakeSet }

func (s textRows) Len() int             { return len(s.owner) }
func (textRows) Columns() []data.Column { return captions.Columns() }

func (textRows) Fill(j int, row batch.Row) error {
	captions.Fill(strconv.Itoa(j), row)
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
func fake(t testing.TB, seed uint64, n, texts int) (retrieval.Retrieval, *fakeModel) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	m := &fakeModel{}
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
		m.owner = append(m.owner, k%n) // captions of an image are not neighbours
		m.texts = append(m.texts, row())
	}
	for range n {
		var s []float32
		for range n * texts {
			s = append(s, float32(r.NormFloat64()))
		}
		m.scores = append(m.scores, s)
	}
	e := retrieval.Retrieval{
		Member: retrieval.Member{Image: fakeImages{fakeSide{m}}, Text: fakeTexts{fakeSide{m}}, Engine: engine,
			Score: scoring.Score{Space: space.Space{Dim: fakeDim}, Terms: []scoring.Term{{Kind: scoring.Cosine, Weight: 1}}}},
		Matcher: m, Encoding: tasks.Encoding{BatchSize: 4, Workers: 2},
	}
	fakeSet{n: n, owner: m.owner}.into(&e)
	return e, m
}
