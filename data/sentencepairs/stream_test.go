package sentencepairs

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
)

// letters is a tokenizer whose tokens are the letters of a text.
type letters struct{}

func (letters) Encode(text string, most int) (ids []int32) {
	for _, r := range text {
		if ids = append(ids, int32(r)); len(ids) == most {
			break
		}
	}
	return ids
}

func (letters) PadID() int32 { return 0 }

// TestStream: a sample is a pair with both its sentences, cut, and its label or score; every epoch has each pair once.
func TestStream(t *testing.T) {
	set := &Set{Task: taskOf(t, "stsb"), Pairs: []Pair{{"Abcd", "X", -1, 2.5}, {"B", "yz", -1, 5}, {"C", "?", -1, 1}}}
	cfg := StreamConfig{Seed: 3, Text: &data.Texts{Tokenizer: letters{}, Tokens: 3}, Clean: data.CleanLower}
	s, err := NewStream(set, cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := batch.New(1, s.Columns()...)
	for epoch := range 3 {
		var seen []float32
		for i := range 3 {
			c := uint64(3*epoch + i)
			if err := s.Sample(c, b.Row(0)); err != nil {
				t.Fatal(err)
			}
			score := b.Floats(batch.Scores)[0]
			seen = append(seen, score)
			if score == 2.5 {
				if !slices.Equal(b.Ints(batch.Tokens), []int32{'a', 'b', 'c'}) || b.Ints(batch.Lengths)[0] != 3 || !slices.Equal(b.Ints(batch.SecondTokens), []int32{'x', 0, 0}) || b.Ints(batch.SecondLengths)[0] != 1 ||
					b.Ints(batch.Labels)[0] != data.UnknownLabel {
					t.Errorf("%v", b)
				}
				if text, id, err := s.Describe(c); text != "Abcd | X" || id != 0 || err != nil {
					t.Errorf("%q %d %v", text, id, err)
				}
			}
		}
		if slices.Sort(seen); !slices.Equal(seen, []float32{1, 2.5, 5}) {
			t.Errorf("epoch %d has %v", epoch, seen)
		}
	}
	cfg.Clean = ""
	if err := set.Fill(2, cfg, b.Row(0)); err == nil || !strings.Contains(err.Error(), "pair 2: nothing is left of \"C\" and \"?\" by data.clean") {
		t.Error(err)
	}
	if _, err := NewStream(&Set{}, cfg); err == nil {
		t.Error("a set without pairs is a stream")
	}
	classes := &Set{Task: taskOf(t, "rte"), Pairs: []Pair{{"A", "B", 1, 0}}}
	s, err = NewStream(classes, StreamConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if names, ok := s.Labels(); !ok || len(names) != 2 || s.SampleLabel(7) != 1 || len(s.Columns()) != 3 {
		t.Errorf("%v %v", names, s.Columns())
	}
}

// TestThin: pairs at even distances, the first among them.
func TestThin(t *testing.T) {
	s := &Set{Parts: []Part{{"a", 0, 3}, {"b", 3, 10}}}
	for i := range 10 {
		s.Pairs = append(s.Pairs, Pair{Label: int32(i)})
	}
	for _, most := range []int{0, 10, 11} {
		if s.Thin(most); len(s.Pairs) != 10 || len(s.Parts) != 2 {
			t.Errorf("%d: %+v", most, s)
		}
	}
	s.Thin(4)
	var got []int32
	for _, p := range s.Pairs {
		got = append(got, p.Label)
	}
	if !slices.Equal(got, []int32{0, 2, 5, 7}) || !slices.Equal(s.Parts, []Part{{"", 0, 4}}) {
		t.Errorf("%v %v", got, s.Parts)
	}
}

// joins is a tokenizer of letters that makes one text of two.
type joins struct{ letters }

func (joins) HasPairs() error { return nil }

func (joins) EncodePair(a, b string, most int) ([]int32, int) {
	ids := append(joins{}.Encode(a, most-1), '|')
	first := len(ids)
	ids = append(ids, joins{}.Encode(b, most)...)
	return ids[:min(len(ids), most)], first
}

// TestJointStream: both sentences are one text, whose tokens say which they are of.
func TestJointStream(t *testing.T) {
	set := &Set{Task: taskOf(t, "rte"), Pairs: []Pair{{"ab", "xyz", 1, 0}}}
	cfg := StreamConfig{Text: &data.Texts{Tokenizer: joins{}, Tokens: 7}, Clean: data.CleanNone, Joint: true}
	s, err := NewStream(set, cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := batch.New(1, s.Columns()...)
	for i := range b.Ints(batch.Tokens) { // of the batch before
		b.Ints(batch.Tokens)[i], b.Ints(batch.Segments)[i] = 9, 9
	}
	if err := s.Sample(0, b.Row(0)); err != nil {
		t.Fatal(err)
	}
	if _, ok := batch.Find(s.Columns(), batch.SecondTokens); ok || b.Ints(batch.Lengths)[0] != 6 || b.Ints(batch.Labels)[0] != 1 ||
		!slices.Equal(b.Ints(batch.Tokens), []int32{'a', 'b', '|', 'x', 'y', 'z', 0}) || !slices.Equal(b.Ints(batch.Segments), []int32{0, 0, 0, 1, 1, 1, 0}) {
		t.Errorf("%v of types %v", b.Ints(batch.Tokens), b.Ints(batch.Segments))
	}
	cfg.Text.Tokenizer = letters{}
	if _, err := NewStream(set, cfg); err == nil || !strings.Contains(err.Error(), "makes no text of two") {
		t.Errorf("a tokenizer of single texts: %v", err)
	}
}
