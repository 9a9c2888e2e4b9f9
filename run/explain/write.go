package explain

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	pages "github.com/geoalign/geoalign/report"
)

// Page is the name of the page in the folder of an explanation.
const Page = "explain.html"

// mostPage bounds a page that is there already, in bytes.
const mostPage = 64 << 20

// mostInlined is the longer side in pixels of a picture within a page; its file has all.
const mostInlined = 720

// explainFolder is a folder of pictures under construction with its page.
type explainFolder struct {
	dir   string
	e     *Explanation
	small image.Image // the image for maps of which there are many; nil before the first
	page  pages.Explanation
	files []string
}

// Write writes the pictures of an explanation and a page with all of them to the folder dir, which it makes, and
// returns the names of the files, the page first. The pictures of an explanation that was there before are removed.
func (e *Explanation) Write(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("%w: choose another folder with --out", err)
	}
	f := explainFolder{dir: dir, e: e, files: []string{Page}}
	f.page = pages.Explanation{Title: e.Text, Facts: e.facts(), Notes: e.Notes}
	if e.Text == "" {
		f.page.Title = "two images"
	}
	if err := f.seen(); err != nil {
		return nil, err
	}
	var tokens []Relevance
	for _, r := range e.Scores {
		if r.Kind == GroupScore {
			tokens = append(tokens, r)
		}
	}
	for _, r := range e.Scores {
		var err error
		switch {
		case r.Kind == PairScore:
			err = f.pair(r)
			if err == nil && len(tokens) > 0 {
				err = f.groups(tokens)
			}
		case r.Kind == MatchScore:
			err = f.match(r)
		case r.Kind == StatementScore:
			err = f.statement(r)
		}
		if err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	f.page.Beside = f.files[1:]
	if err := pages.WriteExplanation(&b, f.page); err != nil {
		return nil, err
	}
	before, _ := files.Read(filepath.Join(dir, Page), mostPage) // none, or a page of something else
	if err := f.write(Page, b.Bytes()); err != nil {
		return nil, err
	}
	for _, name := range pages.Beside(before) {
		if slices.Contains(f.files, name) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("a picture of the explanation before: %w: choose another folder with --out", err)
		}
	}
	return f.files, nil
}

// facts are the head of the page.
func (e *Explanation) facts() []pages.Fact {
	list := []pages.Fact{{Name: "system", Value: e.System}, {Name: "step", Value: fmt.Sprint(e.Step)}}
	if e.Split != "" {
		what := "image"
		if e.Said != "" {
			what = "statement"
		}
		list = append(list, pages.Fact{Name: "row of " + e.Split, Value: fmt.Sprint(e.Row)},
			pages.Fact{Name: what, Value: e.Name})
	}
	for _, r := range e.Scores {
		switch r.Kind {
		case PairScore, StatementScore:
			list = append(list, pages.Fact{Name: "score (" + e.Score + ")", Value: fmt.Sprintf("%.3f", r.Score)})
		case MatchScore:
			list = append(list, pages.Fact{Name: "match logit", Value: fmt.Sprintf("%.3f", r.Score)})
		}
	}
	if e.Regions > 0 {
		list = append(list, pages.Fact{Name: "regions", Value: fmt.Sprint(e.Regions)})
	}
	for _, f := range []pages.Fact{{Name: "answer", Value: e.Said}, {Name: "right", Value: e.Truth}} {
		if f.Value != "" {
			list = append(list, f)
		}
	}
	if e.Formula == FormulaTerms || e.Formula == FormulaAttention {
		return list
	}
	list = append(list, pages.Fact{Name: "image block", Value: fmt.Sprint(e.Block)})
	if e.Layer >= 0 {
		list = append(list, pages.Fact{Name: "text layer", Value: fmt.Sprint(e.Layer)})
	}
	if e.Fusion >= 0 {
		list = append(list, pages.Fact{Name: "fusion layer", Value: fmt.Sprint(e.Fusion)})
	}
	return list
}

// seen adds the images as they are and as the model sees them.
func (f *explainFolder) seen() error {
	first, second := "The image", "The second image"
	if f.e.Said != "" {
		first, second = "The left picture", "The right picture"
	}
	for _, x := range []struct {
		m          *transform.Image
		name, says string
	}{{f.e.image, "image", first}, {f.e.other, "with", second}} {
		if x.m == nil {
			continue
		}
		if err := f.add(&f.page.Seen, x.name+".png", explain.Enlarged(x.m.NRGBA()),
			pages.Picture{Alt: x.says, Caption: fmt.Sprintf("%s, %d x %d pixels", x.says, x.m.W, x.m.H)}); err != nil {
			return err
		}
		if f.e.Regions > 0 {
			continue // which the model does not see
		}
		side := f.e.cfg.Model.Image.Size
		if x.m.W == side && x.m.H == side {
			continue // the model sees it as it is
		}
		in := f.e.cfg.ImageInput()
		pixels := make([]float32, 3*side*side)
		if err := (transform.Eval{Input: in, Size: side}).Apply(x.m, nil, pixels); err != nil {
			return err
		}
		shown, err := in.Denormalize(pixels, side, side)
		if err != nil {
			return err
		}
		if err := f.add(&f.page.Seen, x.name+"-seen.png", explain.Enlarged(shown.NRGBA()),
			pages.Picture{Alt: "the image as the model sees it",
				Caption: fmt.Sprintf("As the model sees it, %d x %d pixels", side, side)}); err != nil {
			return err
		}
	}
	if f.e.Regions == 0 {
		return nil
	}
	m, err := explain.Regions(f.photo(), f.e.Boxes, f.e.Regions, nil)
	if err != nil {
		return err
	}
	return f.add(&f.page.Seen, "regions.png", m,
		pages.Picture{Alt: "the regions",
			Caption: words.Count(f.e.Regions, "region") + ", numbered as in the data, from 0 on"})
}

// formulas say in the page what a patch adds.
var formulas = map[string]string{
	FormulaElementwise: "the gradient of the score to its token, times the token, where the sum over the channels is above 0",
	FormulaChannels:    "the gradient of the score to each channel of its token, times the channel, where that is above 0",
	FormulaGradCAM:     "the mean gradient of the score to all patches, times its token",
	FormulaTerms:       "what the terms of its token add",
}

// part is what images are made of.
func (e *Explanation) part() string {
	if e.Regions > 0 {
		return "region"
	}
	return "patch"
}

// pair adds the score of the features, or of an interaction.
func (f *explainFolder) pair(r Relevance) error {
	s := pages.ExplainedScore{ID: "pair", Title: "Score of the pair", Words: r.Words, Intro: f.e.intro(r)}
	if err := f.heat(&s.Pictures, "pair.png", f.e.image, *r.Image,
		pages.Picture{Alt: "what each " + f.e.part() + " adds to the score", Caption: f.e.caption(r)}); err != nil {
		return err
	}
	if r.Other != nil {
		if err := f.heat(&s.Pictures, "pair-with.png", f.e.other, *r.Other,
			pages.Picture{Alt: "what patches of the second image add to the score",
				Caption: "The second image"}); err != nil {
			return err
		}
	}
	f.page.Parts = append(f.page.Parts, s)
	if err := f.strip("pair-words.png", r.Words); err != nil {
		return err
	}
	return f.compared(r)
}

// intro says how the score of the features is explained.
func (e *Explanation) intro(r Relevance) string {
	part := e.part()
	if e.Formula == FormulaTerms {
		return fmt.Sprintf("The score is a sum of terms, one for each word with each %s. Bright ones add most: the sum of their terms with all words. Words likewise; the figure is their share.", part)
	}
	many := "patches"
	if e.Regions > 0 {
		many = "regions"
	}
	s := fmt.Sprintf("Bright %s matter for the score, by %s, in block %d. The brightest one is the largest of its map, however small it is.", many, strings.ReplaceAll(formulas[e.Formula], "patches", many), e.Block)
	if r.Words != nil {
		s += fmt.Sprintf(" Words likewise, by the gradient to each channel of their tokens in layer %d, times the channel, where that is above 0; the figure is their share. Pale tokens stand around every text and are left out of it.", e.Layer)
	}
	return s
}

func (e *Explanation) caption(r Relevance) string {
	return fmt.Sprintf("score %.3f (%s)", r.Score, e.Score)
}

// groups adds the scores of class tokens or spheres.
func (f *explainFolder) groups(list []Relevance) error {
	what := "sphere"
	s := pages.ExplainedScore{ID: "tokens", Title: "Spheres", Small: true}
	if f.e.tokens {
		what, s.Title = "class token", "Class tokens"
	}
	s.Intro = fmt.Sprintf("The score of one %s: the product of image and text within its channels. The largest scores come first.", what)
	if n := len(f.e.Tokens); n > len(list) {
		s.Intro += fmt.Sprintf(" %d of %d are shown.", len(list), n)
	}
	for _, r := range list {
		err := f.heatSmall(&s.Pictures, r.Name+".png", *r.Image,
			pages.Picture{Alt: fmt.Sprintf("what patches add to the score of %s %d", what, r.Group),
				Caption: fmt.Sprintf("%s %d: %.3f", what, r.Group, r.Score), Words: plainWords(r.Words)})
		if err == nil {
			err = f.strip(r.Name+"-words.png", r.Words)
		}
		if err != nil {
			return err
		}
	}
	f.page.Parts = append(f.page.Parts, s)
	return nil
}

// plainWords are those that are not special tokens.
func plainWords(list []explain.Word) (out []explain.Word) {
	for _, w := range list {
		if !w.Special {
			out = append(out, w)
		}
	}
	return out
}

// match adds the match head: the mean map, and one for each word.
func (f *explainFolder) match(r Relevance) error {
	s := pages.ExplainedScore{ID: "match", Title: "Match head", Words: r.Words, Small: r.WordMaps != nil,
		Intro: fmt.Sprintf("The attention of words to patches in fusion layer %d, times the gradient of the match logit to it where that is above 0, in the mean over heads.", f.e.Fusion)}
	if r.WordMaps != nil {
		s.Intro += " First the mean over all tokens, then one map for each word; each is scaled by itself."
	}
	if err := f.heat(&s.Pictures, "match.png", f.e.image, *r.Image,
		pages.Picture{Alt: "what the match head looks at",
			Caption: fmt.Sprintf("all tokens, logit %.3f", r.Score)}); err != nil {
		return err
	}
	for i, m := range r.WordMaps {
		w := r.Words[i]
		if w.Special {
			continue
		}
		name := fmt.Sprintf("match-word-%02d%s.png", i, plainName(w.Text))
		if err := f.heatSmall(&s.Pictures, name, m, pages.Picture{Alt: "what the word " + w.Text + " looks at",
			Caption: w.Text}); err != nil {
			return err
		}
	}
	f.page.Parts = append(f.page.Parts, s)
	return f.strip("match-words.png", r.Words)
}

// plainName is a word as part of a file name, empty where nothing of it can be.
func plainName(word string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(word) {
		if (r >= 'a' && r <= 'z' || r >= '0' && r <= '9') && b.Len() < 24 {
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "-" + b.String()
}

// heat writes a map over an image in its own size, or over its regions, and adds it to pictures of the page.
func (f *explainFolder) heat(to *[]pages.Picture, name string, m *transform.Image, over explain.Map,
	p pages.Picture) error {
	if f.e.Regions > 0 {
		return f.regions(to, name, over, p)
	}
	return f.add(to, name, overlay(f.e.cfg, m, m.NRGBA(), over), p)
}

// heatSmall is heat for one of many maps of the image: at most mostInlined pixels a side.
func (f *explainFolder) heatSmall(to *[]pages.Picture, name string, over explain.Map, p pages.Picture) error {
	if f.e.Regions > 0 {
		return f.regions(to, name, over, p)
	}
	m := f.e.image
	if f.small == nil {
		f.small = explain.Reduced(m.NRGBA(), mostInlined)
	}
	return f.add(to, name, overlay(f.e.cfg, m, f.small, over), p)
}

// regions is heat over regions, on the picture of the image where there is one.
func (f *explainFolder) regions(to *[]pages.Picture, name string, over explain.Map, p pages.Picture) error {
	m, err := explain.Regions(f.photo(), f.e.Boxes, f.e.Regions, over.Values)
	if err != nil {
		return err
	}
	return f.add(to, name, m, p)
}

// photo is the picture of an image of regions, not too large, nil without one.
func (f *explainFolder) photo() image.Image {
	if f.small == nil && f.e.image != nil {
		f.small = explain.Reduced(f.e.image.NRGBA(), mostInlined)
	}
	return f.small
}

// add writes a picture and adds it, not too large, to pictures of the page.
func (f *explainFolder) add(to *[]pages.Picture, name string, m image.Image, p pages.Picture) error {
	if err := f.picture(name, m); err != nil {
		return err
	}
	var err error
	if p.PNG, err = pngOf(explain.Reduced(m, mostInlined)); err != nil {
		return err
	}
	*to = append(*to, p)
	return nil
}

// strip writes words as a picture; nothing without words.
func (f *explainFolder) strip(name string, list []explain.Word) error {
	if list == nil {
		return nil
	}
	m, err := explain.Strip(list)
	if err != nil {
		return err
	}
	return f.picture(name, m)
}

func (f *explainFolder) picture(name string, m image.Image) error {
	text, err := pngOf(m)
	if err != nil {
		return err
	}
	f.files = append(f.files, name)
	return f.write(name, text)
}

func (f *explainFolder) write(name string, content []byte) error {
	if err := files.Replace(filepath.Join(f.dir, name), content); err != nil {
		return fmt.Errorf("%w: choose another folder with --out", err)
	}
	return nil
}

func pngOf(m image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(&b, m)
	return b.Bytes(), err
}

// Heat is the image, bright where its patches add to a score.
func (e *Explanation) Heat(r Relevance) image.Image {
	return overlay(e.cfg, e.image, e.image.NRGBA(), *r.Image)
}

// overlay lays a map over a picture m, shown in another size, where the model sees it.
func overlay(cfg config.Config, m *transform.Image, shown image.Image, over explain.Map) *image.RGBA {
	x, y, w, h := cfg.ImageInput().Seen(m.W, m.H, cfg.Model.Image.Size)
	b := shown.Bounds()
	sx, sy := float64(b.Dx())/float64(m.W), float64(b.Dy())/float64(m.H)
	return explain.Overlay(shown, over, x*sx, y*sy, w*sx, h*sy)
}
