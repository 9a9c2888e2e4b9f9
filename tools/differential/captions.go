package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/rng"
)

// corpus are captions with the references of each, as captions.py reads them.
type corpus struct {
	Captions   []string   `json:"captions"`
	References [][]string `json:"references"`
	Lines      int        `json:"lines,omitempty"` // ends of lines inside captions
}

// official is what captions.py writes of a corpus.
type official struct {
	Words      [][]string
	References [][][]string
	Bleu       [4]float64
	BleuEach   [][4]float64 `json:"bleu_each"`
	Cider      float64
	CiderEach  []float64 `json:"cider_each"`

	All           []string // words of a corpus with Lines
	ReferencesAll []string `json:"references_all"`
	Error         string
}

// compareCaptions compares words, BLEU and CIDEr of captions with pycocoevalcap's. A case is a caption with its
// references.
func compareCaptions(o *options) (*result, error) {
	r := &result{cases: o.n}
	texts := &captionTexts{Rand: rng.New(o.seed, "captions", 0)}
	var err error
	if texts.real, err = realCaptions(filepath.Join("..", "shared", "data", "flickr8k", "test.json")); err != nil {
		return nil, err
	}
	if texts.real == nil {
		r.note("no real captions beside the repository: all are made up")
	}
	corpora := texts.corpora(o.n)
	in, out := filepath.Join(o.dir, "captions.json"), filepath.Join(o.dir, "official.json")
	b, err := json.Marshal(corpora)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(in, b, 0o666); err != nil {
		return nil, err
	}
	if err := o.python("captions.py", in, out); err != nil {
		return nil, err
	}
	if b, err = os.ReadFile(out); err != nil {
		return nil, err
	}
	var theirs []official
	if err := json.Unmarshal(b, &theirs); err != nil {
		return nil, err
	}
	words := 0
	for i, c := range corpora {
		if c.Lines > 0 {
			compareAll(r, c, theirs[i])
			continue
		}
		words += compareCorpus(r, i, c, theirs[i])
	}
	r.note("%d corpora, %d words", len(corpora), words)
	return r, nil
}

// compareCorpus compares the words one by one, and the scores of the whole and of each caption.
func compareCorpus(r *result, number int, c corpus, theirs official) (words int) {
	same := func(caption string, got, want []string) {
		words += len(want)
		if !slices.Equal(got, want) {
			r.differ("%q: %q, ours %q", caption, want, got)
		}
	}
	all := make([]eval.Captioned, len(c.Captions))
	references := eval.ReferenceWords(c.References)
	for i, w := range eval.CaptionWords(c.Captions) {
		all[i] = eval.Captioned{Words: w, References: references[i]}
		same(c.Captions[i], w, theirs.Words[i])
		for k, caption := range c.References[i] {
			same(caption, references[i][k], theirs.References[i][k])
		}
	}
	if theirs.Error != "" {
		r.note("corpus %d of %d: the official program has no scores: %s", number, len(c.Captions), theirs.Error)
		return words
	}
	near := func(what string, got, want float64) {
		if !(math.Abs(got-want) <= 1e-9) {
			r.differ("%s: %v, ours %v", what, want, got)
		}
	}
	bleu, err := eval.Bleu(all)
	if err != nil {
		r.differ("corpus %d: %v", number, err)
		return words
	}
	mean, each, err := eval.Cider(all)
	if err != nil {
		r.differ("corpus %d: %v", number, err)
		return words
	}
	for k := range bleu {
		near(fmt.Sprintf("corpus %d of %d: BLEU-%d", number, len(all), k+1), bleu[k], theirs.Bleu[k])
	}
	near(fmt.Sprintf("corpus %d of %d: CIDEr", number, len(all)), mean, theirs.Cider)
	for i := range all {
		near(fmt.Sprintf("%q: CIDEr", c.Captions[i]), each[i], theirs.CiderEach[i])
		one, err := eval.Bleu(all[i : i+1])
		if err != nil {
			r.differ("%q: %v", c.Captions[i], err)
			continue
		}
		for k := range one {
			near(fmt.Sprintf("%q: BLEU-%d", c.Captions[i], k+1), one[k], theirs.BleuEach[i][k])
		}
	}
	return words
}

// compareAll compares the words of a corpus of which captions have several lines: the official program has them, but
// not of which caption each is.
func compareAll(r *result, c corpus, theirs official) {
	for what, p := range map[string]struct {
		captions []string
		want     []string
	}{"captions": {c.Captions, theirs.All}, "references": {slices.Concat(c.References...), theirs.ReferencesAll}} {
		got := slices.Concat(eval.CaptionWords(append(slices.Clone(p.captions), make([]string, c.Lines)...))...)
		for i := range max(len(got), len(p.want)) {
			if i >= min(len(got), len(p.want)) || got[i] != p.want[i] {
				r.differ("%s with several lines: at word %d %q, ours %q", what, i,
					p.want[max(0, i-3):min(i+3, len(p.want))], got[max(0, i-3):min(i+3, len(got))])
				break
			}
		}
	}
}

// realCaptions reads captions of photographs, none if there is no such file.
func realCaptions(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []struct{ Caption []string }
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var out []string
	for _, row := range rows {
		out = append(out, row.Caption...)
	}
	return out, nil
}

// corpora makes n captions with references: corpora of one and of few pictures, one of captions with several lines, and
// large ones.
func (g *captionTexts) corpora(n int) (all []corpus) {
	const large = 1000
	for k := 0; n > 0; k++ {
		size := min(n, []int{1, 1, 2, 5, 40, 40}[min(k, 5)])
		if k >= 6 {
			size = min(n, large)
		}
		g.lines = k == 5
		c := corpus{}
		for range size {
			references := make([]string, 1+g.IntN(5))
			for i := range references {
				references[i] = g.caption()
				if i > 0 && g.IntN(2) == 0 {
					references[i] = g.edited(references[0])
				}
			}
			caption := g.caption()
			if g.IntN(5) > 1 {
				caption = g.edited(references[g.IntN(len(references))])
			}
			c.Captions, c.References = append(c.Captions, caption), append(c.References, references)
		}
		if g.lines {
			c.Lines = 1
			for _, caption := range append(slices.Concat(c.References...), c.Captions...) {
				c.Lines += strings.Count(caption, "\r") + strings.Count(caption, "\v") + strings.Count(caption,
					"\f") + strings.Count(caption, "\u2028") + strings.Count(caption, "\u2029")
			}
		}
		all, n = append(all, c), n-size
	}
	return all
}
