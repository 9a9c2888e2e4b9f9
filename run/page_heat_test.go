package run

import (
	"bytes"
	"context"
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
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/captioning"
	"github.com/geoalign/geoalign/tasks/multimodal"
	"github.com/geoalign/geoalign/tasks/vqa"
)

// openTask trains testdata/keys.toml for a step as a run of a task on scenes.
func openTask(t *testing.T, sets ...string) *Run {
	t.Helper()
	base := check.Get(os.ReadFile("testdata/keys.toml"))(t)
	dir := t.TempDir()
	filetest.Write(t, filepath.Join(dir, "vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nis\nthere\nred\nblue\ngreen\nsquare\ncircle\nand\non\nthe\nside\ntop\nleft\nright\n")
	cfg, err := config.Parse("keys.toml", base, slices.Concat([]string{"data.root=" + dir, "data.vocab=vocab.txt"}, aloneSets, sets))
	if err != nil {
		t.Fatal(err)
	}
	r := check.Get(openRun(t.Context(), cfg, Options{}, true))(t)
	t.Cleanup(func() { r.Close() })
	check.Get(r.session.Step(t.Context(), 0))(t)
	return r
}

// TestPagesHaveHeatMaps: behind the pictures of each card are their heat maps, those of the example by itself for the class that was
// said of it; the page says what they are, and nothing else of the outcome changes.
func TestPagesHaveHeatMaps(t *testing.T) {
	for task, pictures := range map[string]int{multimodal.EntailmentName: 1, multimodal.NLVRName: 2} {
		r := openTask(t, "objective."+task+".weight=1", "data.kind="+task, "data.examples.source=scenes")
		scores, err := Evaluate(t.Context(), Evaluation{Config: r.cfg, Engine: r.engine, Model: r.model, Tokenizer: r.tok})
		if err != nil {
			t.Fatal(err)
		}
		s, ok := scores.(multimodal.Scores)
		if !ok || s.Heat == nil {
			t.Fatalf("%s: %T has no heat maps", task, scores)
		}
		m, rows := r.model.(towers).Classifier(), source.ExampleColumns(r.cfg.Source(), s.Samples, r.tok)
		for i := range s.Predicted { // else a model that has learned nothing says the same of all
			s.Predicted[i] = int32(i*i%7) % int32(len(s.Samples.Labels()))
		}
		s.Heat = multimodal.Heat(Evaluation{Config: r.cfg, Model: r.model}.setup(tasks.Task{Name: task}), s.Predicted, rows)
		before, _ := json.Marshal(scores.JSON("val", "x"))
		p := check.Get(s.ExamplesPage(t.Context()))(t)
		if after, _ := json.Marshal(scores.JSON("val", "x")); !bytes.Equal(before, after) {
			t.Errorf("%s: drawing changes the outcome:\n%s\n%s", task, before, after)
		}
		if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "look at in fusion layer 1 of 1") {
			t.Errorf("%s: notes %q", task, p.Notes)
		}
		cards := slices.Concat(p.Wrong, p.Right)
		if len(cards) <= tasks.HeatRows || len(cards) > 20 {
			t.Fatalf("%s: %d cards", task, len(cards))
		}
		for _, c := range cards {
			i := 0
			for k := range s.Samples.Len() {
				if s.Samples.Example(k).ID == c.Name {
					i = k
				}
			}
			b := batch.New(1, m.Columns()...)
			check.OK(t, rows.Fill(i, b.Row(0)))
			maps := check.Get(m.HeatMaps(t.Context(), b, s.Predicted[i:i+1]))(t)
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
func sameHeat(t *testing.T, s multimodal.Scores, i, k int, values []float32, got pages.Picture) {
	t.Helper()
	img := check.Get(s.Samples.Picture(i, k))(t)
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
		setup := Evaluation{Config: r.cfg, Engine: r.engine, Tokenizer: r.tok, Model: r.model}.setup(tasks.Task{Name: scores.Task()})
		seen := &texts{Writer: setup.Model.Writer}
		setup.Model.Writer = seen
		var gallery data.Gallery
		as := data.Answers{Tokens: 5, Clean: data.CleanNone}
		if s, ok := scores.(vqa.Scores); ok {
			gallery = setup.Rows(s.Samples)
		} else {
			gallery = scores.(captioning.Scores).Set.Images()
		}
		h := setup.TextHeat("", []string{"red", "top left", "", "red"}, as, gallery)
		maps, err := h.Of(t.Context(), []int{3, 2, 1})
		if err != nil || len(maps) != 3 || len(maps[1]) != 1 || len(maps[1][0].Values) != 4 {
			t.Fatalf("%v, %v", maps, err)
		}
		id := func(word string) int32 { i, _ := r.tok.ID(word); return i }
		want := [][]int32{{id("[CLS]"), id("red"), id("[SEP]")}, {id("[CLS]"), id("[SEP]")}, {id("[CLS]"), id("top"), id("left"), id("[SEP]")}}
		if !slices.EqualFunc(seen.got, want, slices.Equal[[]int32]) {
			t.Errorf("texts %v, want %v", seen.got, want)
		}
	}
}

// texts notes which texts maps are asked for.
type texts struct {
	tasks.Writer
	got [][]int32
}

func (x *texts) HeatMaps(ctx context.Context, b *batch.Batch, list [][]int32) ([]float32, error) {
	x.got = append(x.got, list...)
	return x.Writer.HeatMaps(ctx, b, list)
}
