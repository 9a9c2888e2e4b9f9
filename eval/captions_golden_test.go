package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
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
	b := check.Get(os.ReadFile("testdata/captions.json"))(t)
	if err := json.Unmarshal(b, &g); err != nil || len(g.Corpora) == 0 || len(g.Words) == 0 {
		t.Fatal("no cases", err)
	}
	return g
}

// checkCaptionScores compares scores with official ones: each is the scores of single captions.
func checkCaptionScores(t *testing.T, name string, all []Captioned, bleu [4]float64, bleuEach [][4]float64,
	cider float64, each []float64) {
	t.Helper()
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9) {
			t.Errorf("%s: %s is %v, want %v", name, what, got, want)
		}
	}
	got := check.Get(Bleu(all))(t)
	for n, want := range bleu {
		near(fmt.Sprint("BLEU-", n+1), got[n], want)
	}
	for i := range bleuEach {
		one := check.Get(Bleu(all[i : i+1]))(t)
		for n, want := range bleuEach[i] {
			near(fmt.Sprintf("BLEU-%d of caption %d", n+1, i), one[n], want)
		}
	}
	mean, gotEach := check.Get2(Cider(all))(t)
	near("CIDEr", mean, cider)
	for i, want := range each {
		near(fmt.Sprint("CIDEr of caption ", i), gotEach[i], want)
	}
}

func TestCaptionMetricsGolden(t *testing.T) {
	for k, c := range readCaptionsGolden(t).Corpora {
		var all []Captioned
		for i, text := range c.Captions {
			p := Captioned{Words: strings.Fields(text)}
			for _, r := range c.References[i] {
				p.References = append(p.References, strings.Fields(r))
			}
			all = append(all, p)
		}
		checkCaptionScores(t, fmt.Sprint("corpus ", k), all, c.Bleu, nil, c.Cider, c.Each)
	}
}

func TestCaptionWordsGolden(t *testing.T) {
	golden := readCaptionsGolden(t).Words
	var captions []string
	for _, c := range golden {
		captions = append(captions, c.Caption)
	}
	for i, got := range CaptionWords(captions) {
		if !slices.Equal(got, golden[i].Words) {
			t.Errorf("%q:\n got %q\nwant %q", captions[i], got, golden[i].Words)
		}
	}
}

// captioned makes words of captions and of their references.
func captioned(captions []string, references [][]string) []Captioned {
	all := make([]Captioned, len(captions))
	r := ReferenceWords(references)
	for i, words := range CaptionWords(captions) {
		all[i] = Captioned{words, r[i]}
	}
	return all
}

// TestCaptionsHostile has captions that are hard to split, with what the official evaluation makes of them
// (tools/goldens/captions_hostile.py).
func TestCaptionsHostile(t *testing.T) {
	b := check.Get(os.ReadFile("testdata/captions_hostile.json"))(t)
	var corpora []struct {
		Captions       []string
		References     [][]string
		Words          [][]string
		ReferenceWords [][][]string `json:"reference_words"`
		Bleu           [4]float64
		BleuEach       [][4]float64 `json:"bleu_each"`
		Cider          float64
		Each           []float64
	}
	if err := json.Unmarshal(b, &corpora); err != nil || len(corpora) == 0 {
		t.Fatal("no cases", err)
	}
	for k, c := range corpora {
		all := captioned(c.Captions, c.References)
		for i, p := range all {
			if !slices.Equal(p.Words, c.Words[i]) {
				t.Errorf("%q:\n got %q\nwant %q", c.Captions[i], p.Words, c.Words[i])
			}
			for j, got := range p.References {
				if !slices.Equal(got, c.ReferenceWords[i][j]) {
					t.Errorf("%q:\n got %q\nwant %q", c.References[i][j], got, c.ReferenceWords[i][j])
				}
			}
		}
		checkCaptionScores(t, fmt.Sprint("corpus ", k), all, c.Bleu, c.BleuEach, c.Cider, c.Each)
	}
}

// TestCaptionCases has cases that were collected beside the repository.
func TestCaptionCases(t *testing.T) {
	b, err := os.ReadFile("../../shared/cases/captions.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no cases beside the repository")
	} else if err != nil {
		t.Fatal(err)
	}
	var sets []struct {
		Set      string
		Captions []struct {
			Caption    string
			References []string
		}
		Bleu  [4]float64
		Cider float64
	}
	if err := json.Unmarshal(b, &sets); err != nil || len(sets) == 0 {
		t.Fatal("no cases", err)
	}
	for _, s := range sets {
		var captions []string
		var references [][]string
		for _, c := range s.Captions {
			captions, references = append(captions, c.Caption), append(references, c.References)
		}
		checkCaptionScores(t, s.Set, captioned(captions, references), s.Bleu, nil, s.Cider, nil)
	}
}
