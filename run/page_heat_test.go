package run

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/explain"
	pages "github.com/geoalign/geoalign/report"
)

// openTask trains testdata/keys.toml for a step as a run of a task on scenes.
func openTask(t *testing.T, sets ...string) *Run {
	t.Helper()
	base, err := os.ReadFile("testdata/keys.toml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "vocab.txt"), []byte("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nis\nthere\nred\nblue\ngreen\nsquare\ncircle\nand\non\nthe\nside\ntop\nleft\nright\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("keys.toml", base, slices.Concat([]string{"data.root=" + dir, "data.vocab=vocab.txt"}, aloneSets, sets))
	if err != nil {
		t.Fatal(err)
	}
	r, err := openRun(t.Context(), cfg, Options{}, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if _, err := r.session.Step(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPagesHaveHeatMaps: behind the pictures of each card are their heat maps, those of the example by itself for the class that was
// said of it; the page says what they are, and nothing else of the outcome changes.
func TestPagesHaveHeatMaps(t *testing.T) {
	for task, pictures := range map[string]int{TaskEntailment: 1, TaskNLVR: 2} {
		r := openTask(t, "objective."+task+".weight=1", "data.kind="+task, "data.examples.source=scenes")
		scores, err := Evaluate(t.Context(), Evaluation{Config: r.cfg, Engine: r.engine, Model: r.model, Tokenizer: r.tok})
		if err != nil {
			t.Fatal(err)
		}
		s, ok := scores.(JudgedExamples)
		if x, two := scores.(JudgedStatements); two {
			s, ok = x.JudgedExamples, true
		}
		if !ok || s.Heat == nil {
			t.Fatalf("%s: %T has no heat maps", task, scores)
		}
		m, rows := r.model.(towers).Model, source.ExampleColumns(r.cfg.Source(), s.Examples, r.tok)
		for i := range s.Said { // else a model that has learned nothing says the same of all
			s.Said[i] = int32(i*i%7) % int32(len(s.Examples.Labels()))
		}
		s.Heat = Evaluation{Task: task, Config: r.cfg, Model: r.model}.judgedHeat(s.Said, rows)
		before, _ := json.Marshal(scores.JSON("val", "x"))
		p, err := s.ExamplesPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if after, _ := json.Marshal(scores.JSON("val", "x")); !bytes.Equal(before, after) {
			t.Errorf("%s: drawing changes the outcome:\n%s\n%s", task, before, after)
		}
		if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "look at in fusion layer 1 of 1") {
			t.Errorf("%s: notes %q", task, p.Notes)
		}
		cards := slices.Concat(p.Wrong, p.Right)
		if len(cards) <= heatRows || len(cards) > 20 {
			t.Fatalf("%s: %d cards", task, len(cards))
		}
		for _, c := range cards {
			i := 0
			for k := range s.Examples.Len() {
				if s.Examples.Example(k).ID == c.Name {
					i = k
				}
			}
			b := batch.New(1, m.Classifier().Columns()...)
			if err := rows.Fill(i, b.Row(0)); err != nil {
				t.Fatal(err)
			}
			maps, err := m.Classifier().HeatMaps(t.Context(), b, s.Said[i:i+1])
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Pictures) != 2*pictures || len(maps) != 4*pictures {
				t.Fatalf("%s: a card has %d pictures, and %d values in their maps", task, len(c.Pictures), len(maps))
			}
			if names := [2]string{c.Pictures[0].Caption, c.Pictures[1].Caption}; pictures == 2 && names != [2]string{"left", "right"} {
				t.Errorf("%s: captions %q", task, names)
			}
			for k := range pictures {
				sameHeat(t, s, i, k, maps[4*k:][:4], c.Pictures[pictures+k])
			}
		}
		s.Heat = nil
		if p, err := s.ExamplesPage(t.Context()); err != nil || len(p.Notes) > 0 || len(slices.Concat(p.Wrong, p.Right)[0].Pictures) != pictures {
			t.Errorf("%s: a page without heat maps: %v, %v", task, p.Notes, err)
		}
	}
}

// sameHeat compares a picture with the map of picture k of example i drawn over it, of at most two shades.
func sameHeat(t *testing.T, s JudgedExamples, i, k int, values []float32, got pages.Picture) {
	t.Helper()
	img, err := s.Examples.Picture(i, k)
	if err != nil {
		t.Fatal(err)
	}
	over := explain.Map{Rows: 2, Columns: 2}
	for _, v := range values {
		over.Values = append(over.Values, float64(v))
	}
	want := explain.Overlay(img.NRGBA(), over, 0, 0, float64(img.W), float64(img.H))
	m, err := png.Decode(bytes.NewReader(got.PNG))
	if err != nil || m.Bounds() != want.Bounds() {
		t.Fatalf("%v, %v", m, err)
	}
	if dark := over.Most() == 0; dark != (got.Caption == "no patch speaks for it") {
		t.Errorf("example %d: a map of %v is called %q", i, values, got.Caption)
	}
	for y := range want.Rect.Dy() {
		for x := range want.Rect.Dx() {
			a, b, c, _ := m.At(x, y).RGBA()
			p := want.Pix[want.PixOffset(x, y):]
			for d, v := range []uint32{a >> 8, b >> 8, c >> 8} {
				if int(v)-int(p[d]) > 2 || int(p[d])-int(v) > 2 {
					t.Fatalf("example %d, picture %d: at (%d, %d) %d, want %d", i, k, x, y, v, p[d])
				}
			}
		}
	}
}

// TestWrittenHeat: answers and captions are given to the model as it wrote them, with the tokens around them.
func TestWrittenHeat(t *testing.T) {
	for _, sets := range [][]string{vqaSets[len(aloneSets):], captionSets[len(aloneSets):]} {
		r := openTask(t, sets...)
		scores, err := Evaluate(t.Context(), Evaluation{Config: r.cfg, Engine: r.engine, Model: r.model, Tokenizer: r.tok, Set: r.set})
		if err != nil {
			t.Fatal(err)
		}
		e := Evaluation{Task: scores.Task(), Config: r.cfg, Engine: r.engine, Tokenizer: r.tok, Model: r.model}
		var gallery data.Gallery
		as := data.Answers{Tokens: 5, Clean: data.CleanNone}
		if s, ok := scores.(Answered); ok {
			gallery = source.ExampleColumns(r.cfg.Source(), s.Examples, r.tok)
		} else {
			gallery = scores.(Captioned).Set.Images()
		}
		said, rows := []string{"red", "top left", "", "red"}, []int{3, 2, 1}
		maps, err := e.writtenHeat(said, as, gallery).of(t.Context(), rows)
		if err != nil || len(maps) != 3 || len(maps[1]) != 1 || len(maps[1][0].Values) != 4 {
			t.Fatalf("%v, %v", maps, err)
		}
		id := func(word string) int32 { i, _ := r.tok.ID(word); return i }
		want := [][]int32{{id("[CLS]"), id("red"), id("[SEP]")}, {id("[CLS]"), id("[SEP]")}, {id("[CLS]"), id("top"), id("left"), id("[SEP]")}}
		if got := e.textsOf(said, as, rows); !slices.EqualFunc(got, want, slices.Equal[[]int32]) {
			t.Errorf("texts %v, want %v", got, want)
		}
	}
}
