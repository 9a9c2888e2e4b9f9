package eval

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// captionsGolden is what the official evaluation of COCO's captions makes of some (tools/goldens/captions.py).
type captionsGolden struct {
	Corpora []struct {
		Captions   []string
		References [][]string
		Bleu       [4]float64
		Cider      float64
		Each       []float64
	}
	Words []struct {
		Caption string
		Words   []string
	}
}

func readCaptionsGolden(t *testing.T) (g captionsGolden) {
	t.Helper()
	b, err := os.ReadFile("testdata/captions.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil || len(g.Corpora) == 0 || len(g.Words) == 0 {
		t.Fatal("no cases", err)
	}
	return g
}

func TestCaptionMetricsGolden(t *testing.T) {
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-9*max(1, math.Abs(want)) }
	for k, c := range readCaptionsGolden(t).Corpora {
		var all []Captioned
		for i, text := range c.Captions {
			p := Captioned{Words: strings.Fields(text)}
			for _, r := range c.References[i] {
				p.References = append(p.References, strings.Fields(r))
			}
			all = append(all, p)
		}
		bleu, err := Bleu(all)
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range c.Bleu {
			if !near(bleu[n], want) {
				t.Errorf("corpus %d: BLEU-%d is %v, want %v", k, n+1, bleu[n], want)
			}
		}
		mean, each, err := Cider(all)
		if err != nil {
			t.Fatal(err)
		}
		if !near(mean, c.Cider) {
			t.Errorf("corpus %d: CIDEr is %v, want %v", k, mean, c.Cider)
		}
		for i, want := range c.Each {
			if !near(each[i], want) {
				t.Errorf("corpus %d: CIDEr of caption %d is %v, want %v", k, i, each[i], want)
			}
		}
	}
}

func TestCaptionWordsGolden(t *testing.T) {
	for _, c := range readCaptionsGolden(t).Words {
		if got := CaptionWords(c.Caption); !slices.Equal(got, c.Words) {
			t.Errorf("%q:\n got %q\nwant %q", c.Caption, got, c.Words)
		}
	}
}
