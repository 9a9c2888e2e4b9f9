package data

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
)

// ended is letters whose texts end with 1.
type ended struct{ letters }

func (ended) SepID() int32 { return 1 }

func (e ended) Encode(text string, most int) []int32 {
	if most == 0 {
		most = len(text) + 1
	}
	return e.letters.Encode(text, most)
}

// drawnExamples are examples about two scenes each.
func drawnExamples(t *testing.T, endless bool) *SceneExamples {
	t.Helper()
	w, err := scenes.New(scenes.Config{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	return &SceneExamples{Samples: 5, Size: 8, Classes: []string{"no", "yes"}, NoEnd: endless, Scenes: 2, Split: "train",
		Make: func(i int) (Example, []scenes.Scene) {
			return Example{Text: strings.Repeat("a", 1+i%4), Label: int32(i % 2), Answers: []Answer{{"b", .5}, {"cd", .25}}}, []scenes.Scene{w.Train(uint64(2 * i)), w.Train(uint64(2*i + 1))}
		}}
}

func exampleStream(t *testing.T, x Examples) *ExampleStream {
	t.Helper()
	s, err := NewExampleStream(x, ExampleConfig{
		TrainConfig: TrainConfig{Seed: 1, Transform: transform.Train{Size: 8, ScaleMin: 1}, Text: &Texts{Tokenizer: ended{}, Tokens: 6}},
		Answers:     Answers{Most: 3, Tokens: 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestExampleStream(t *testing.T) {
	x := drawnExamples(t, false)
	s := exampleStream(t, x)
	b := batch.New(5, s.Columns()...)
	seen := map[int32]bool{}
	for c := range 5 {
		if err := s.Sample(uint64(c), b.Row(c)); err != nil {
			t.Fatal(err)
		}
		i := b.Ints(batch.IDs)[c]
		seen[i] = true
		if label := b.Ints(batch.Labels)[c]; label != i%2 || label != s.SampleLabel(uint64(c)) {
			t.Errorf("sample %d of the list has label %d", i, label)
		}
		if n := b.Ints(batch.Lengths)[c]; n != 2+i%4 {
			t.Errorf("sample %d has %d tokens", i, n)
		}
	}
	if len(seen) != 5 {
		t.Errorf("an epoch saw %v", seen)
	}
	n := 3 * 8 * 8
	if first, second := b.Floats(batch.Images)[:n], b.Floats(batch.SecondImages)[:n]; slices.Equal(first, second) {
		t.Error("both pictures of a sample are one")
	}
	if got, want := b.Ints(batch.Answers)[:12], []int32{2, 'b', 1, 0, 2, 'c', 'd', 1, 0, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("answers %v, want %v", got, want)
	}
	if got, want := b.Ints(batch.AnswerLengths)[:3], []int32{3, 4, 1}; !slices.Equal(got, want) {
		t.Errorf("lengths %v, want %v", got, want)
	}
	if got, want := b.Floats(batch.AnswerWeights)[:3], []float32{.5, .25, 0}; !slices.Equal(got, want) {
		t.Errorf("weights %v, want %v", got, want)
	}

	// In an evaluation a sample is the same row, in its place.
	g := ExampleGallery{Of: x, Picture: transform.Eval{Size: 8}, Text: s.cfg.Text, Answers: s.cfg.Answers}
	e := batch.New(1, g.Columns()...)
	if err := g.Fill(3, e.Row(0)); err != nil {
		t.Fatal(err)
	}
	if e.Ints(batch.IDs)[0] != 3 || e.Ints(batch.Labels)[0] != 1 || e.Ints(batch.Lengths)[0] != 5 {
		t.Errorf("row 3 of the gallery is %v, %v, %v", e.Ints(batch.IDs), e.Ints(batch.Labels), e.Ints(batch.Lengths))
	}
}

func TestEndlessExamples(t *testing.T) {
	s := exampleStream(t, drawnExamples(t, true))
	b := batch.New(1, s.Columns()...)
	for _, c := range []uint64{0, 4, 5, 1234} {
		if err := s.Sample(c, b.Row(0)); err != nil || b.Ints(batch.IDs)[0] != int32(c) {
			t.Errorf("sample %d is %d of the list (%v)", c, b.Ints(batch.IDs)[0], err)
		}
	}
}

// TestBadExamples: what cannot be a row is an error that says what to do.
func TestBadExamples(t *testing.T) {
	one := func(e Example) *FileExamples {
		f := &FileExamples{}
		f.Add(e, "no/such.png")
		return f
	}
	for name, c := range map[string]struct {
		e    Example
		want string
	}{
		"no words":   {Example{Text: " ", Answers: []Answer{{"b", 1}}}, "nothing is left of the text"},
		"no answers": {Example{Text: "a"}, "no answer of at least one word"},
		"blank one":  {Example{Text: "a", Answers: []Answer{{" ", 1}}}, "no answer of at least one word"},
		"no picture": {Example{Text: "a", Answers: []Answer{{"b", 1}}}, "no/such.png"},
	} {
		s := exampleStream(t, one(c.e))
		b := batch.New(1, s.Columns()...)
		if err := s.Sample(0, b.Row(0)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewExampleStream(&FileExamples{}, ExampleConfig{}); err == nil || !strings.Contains(err.Error(), "no sample") {
		t.Errorf("no samples: %v", err)
	}
	f := one(Example{Text: "a"})
	if err := FindExampleFiles(t.Context(), f, 2, nil); err == nil || !strings.Contains(err.Error(), "1 of 1 image files") {
		t.Errorf("a picture that is missing: %v", err)
	}
	if err := (Answers{Most: 1, Tokens: 2}).check(&Texts{Tokenizer: ended{}, Tokens: 4}); err == nil {
		t.Error("answers of two tokens have no word")
	}
	if err := (Answers{Most: 1, Tokens: 4}).check(&Texts{Tokenizer: letters{}, Tokens: 4}); err == nil {
		t.Error("nothing ends an answer")
	}
}

// TestFilesOfExamples: of examples as images with captions the files are looked for where there are some, and drawn pictures have none.
func TestFilesOfExamples(t *testing.T) {
	missing := &FileExamples{}
	missing.Add(Example{Text: "a"}, "no/such.png")
	for want, x := range map[string]Examples{"": drawnExamples(t, false), "1 of 1 image files": missing} {
		e := evalOf(t, ExampleDataset{x}, EvalConfig{ImageSize: 8})
		if err := e.FindFiles(t.Context(), 2, nil); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%T: %v, want %q", x, err, want)
		}
	}
}

// TestLongAnswers: an answer that is cut ends all the same.
func TestLongAnswers(t *testing.T) {
	if got, want := (Answers{Most: 1, Tokens: 4}).Encode("abcdef", ended{}), []int32{2, 'a', 'b', 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
