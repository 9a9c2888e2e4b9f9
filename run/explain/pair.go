package explain

import (
	"context"
	"fmt"
	"sort"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
)

// Scores that are explained, by the names that files and JSON have.
const (
	PairScore  = "pair"  // of the features of image and text: eval.score
	GroupScore = "token" // of one class token or sphere of both
	MatchScore = "match" // logit of the match head
)

// Relevance is a score with what it rests on.
type Relevance struct {
	Name  string  // pair, token-03, match or statement
	Kind  string  // PairScore, GroupScore, MatchScore or StatementScore
	Group int     // of GroupScore, from 0 on
	Score float64 // before any temperature
	// Image and Other are what the patches of the image, and of the second one of a system of images
	// alone or of a statement, add to the score; of a match, the mean over the words. Regions are a row.
	Image, Other *explain.Map
	// Words are what the words of the text add, of a match the relevance of the image for them.
	Words []explain.Word
	// WordMaps are the patches or regions that each word of a match, or of an interaction, looks at, in the
	// order of Words.
	WordMaps []explain.Map
	Compared *Comparison // of an interaction whose kind says what its scores are made of
}

// Explainer explains scores of pairs by the towers of a model, one pair after the other, for one goroutine.
type Explainer struct {
	t       *run.Trained
	model   *model.Model
	at      model.Blocks
	formula string // for patches
	b       *batch.Batch
	words   []textWord
	ids     []int32 // tokens of the text
}

// New opens the model, which must have patches or words, and checks the options. Of those that say
// which pair is explained it looks at none.
func New(t *run.Trained, o Options) (*Explainer, error) {
	if err := Explainable(t.Config); err != nil {
		return nil, err
	}
	if err := o.check(t.Config); err != nil {
		return nil, err
	}
	if err := onePicture(t.Config); err != nil {
		return nil, err
	}
	if err := t.Load(); err != nil {
		return nil, err
	}
	m, ok := run.TowersOf(t.Model)
	if !ok {
		return nil, console.Argument("model.system %q has no towers to explain a score by", t.Config.Model.System)
	}
	x := &Explainer{t: t, model: m, formula: o.Formula}
	switch {
	case o.Formula == FormulaTerms && !m.Explainer().HasTerms():
		return nil, console.Argument("model.interaction.kind %q does not say what its scores are made of: leave out --formula, and gradients do", t.Config.Model.Interaction.Kind)
	case o.Formula == "" && m.Explainer().HasTerms() && o.Block == nil && o.Layer == nil:
		x.formula = FormulaTerms
	case o.Formula == "":
		x.formula = FormulaChannels
	}
	if err := m.Explainer().Check(); err != nil {
		return nil, &console.ArgumentError{Err: err}
	}
	x.at = m.Explainer().DefaultBlocks()
	for _, b := range []struct {
		to  *int
		ask *int
	}{{&x.at.Image, o.Block}, {&x.at.Text, o.Layer}, {&x.at.Fusion, o.Fusion}} {
		if b.ask != nil {
			*b.to = *b.ask
		}
	}
	if err := m.Explainer().CheckBlocks(x.at); err != nil {
		return nil, &console.ArgumentError{Err: err}
	}
	columns := append(m.Image().Columns(), m.Text().Columns()...)
	if t.Config.Has(section.ImagesAlone) {
		columns = m.Image().Columns()
		second := columns[0]
		second.Name = batch.Views
		columns = append(columns, second)
	}
	x.b = batch.New(1, columns...)
	return x, nil
}

// Set makes an image and a text the pair to explain.
func (x *Explainer) Set(m *transform.Image, text string) error {
	clean, _, err := x.seenText(text)
	if err != nil {
		return err
	}
	x.setText(clean)
	return x.setImage(m, batch.Images)
}

// setImage makes m the image of the pair, or with a column of its own the second one.
func (x *Explainer) setImage(m *transform.Image, column string) error {
	cfg := x.t.Config
	return transform.Eval{Input: cfg.ImageInput(), Size: cfg.Model.Image.Size}.Apply(m, nil, x.b.Floats(column))
}

// setText makes a text that is clean already that of the pair.
func (x *Explainer) setText(clean string) {
	x.t.TextColumns().Fill(clean, x.b.Row(0))
	x.ids = x.b.Ints(batch.Tokens)[:x.b.Ints(batch.Lengths)[0]]
	x.words = wordsOf(x.t.Tokenizer, x.ids)
}

// groups is m, the class tokens or spheres that have scores of their own, 0 where the whole score is all there is.
func (x *Explainer) groups() int {
	if sp := x.model.Space(); sp.Groups() > 1 && !x.t.Config.Has(section.ImagesAlone) {
		return sp.Groups()
	}
	return 0
}

// Pair explains the score of the features.
func (x *Explainer) Pair(ctx context.Context) (Relevance, error) {
	e, err := x.model.Explainer().Pair(ctx, x.b, x.at)
	if err != nil {
		return Relevance{}, err
	}
	return x.relevance(Relevance{Name: PairScore, Kind: PairScore}, e), nil
}

// Group explains the score of class token k.
func (x *Explainer) Group(ctx context.Context, k int) (Relevance, error) {
	e, err := x.model.Explainer().Group(ctx, x.b, x.at, k)
	if err != nil {
		return Relevance{}, err
	}
	return x.relevance(Relevance{Name: fmt.Sprintf("%s-%02d", GroupScore, k), Kind: GroupScore, Group: k}, e), nil
}

// strongest explains the n class tokens with the largest scores; all holds the scores of all of them.
func (x *Explainer) strongest(ctx context.Context, n int) (list []Relevance, all []float64, err error) {
	for k := range x.groups() {
		r, err := x.Group(ctx, k)
		if err != nil {
			return nil, nil, err
		}
		list, all = append(list, r), append(all, r.Score)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Score > list[j].Score })
	return list[:min(n, len(list))], all, nil
}

// relevance reads what tokens add to a score.
func (x *Explainer) relevance(r Relevance, e *model.Explained) Relevance {
	r.Score = e.Score
	if e.Compared != nil && e.Compared.Terms != nil {
		x.compared(&r, e)
		if x.formula == FormulaTerms {
			return r
		}
	}
	formula := map[string]func(values, grads []float32, n, d int) []float64{
		FormulaChannels: explain.Channels, FormulaElementwise: explain.Elementwise, FormulaGradCAM: explain.Pooled,
	}[x.formula]
	r.Image = x.patches(formula(e.Image.Values, e.Image.Grads, e.Image.N, e.Image.D))
	if x.t.Config.Has(section.ImagesAlone) {
		r.Other = x.patches(formula(e.Text.Values, e.Text.Grads, e.Text.N, e.Text.D))
		return r
	}
	r.Words = spread(x.words, explain.Channels(e.Text.Values, e.Text.Grads, e.Text.N, e.Text.D))
	return r
}

// Match explains the logit of the match head.
func (x *Explainer) Match(ctx context.Context) (Relevance, error) {
	e, err := x.model.Explainer().Match(ctx, x.b, x.at)
	if err != nil {
		return Relevance{}, err
	}
	c := e.Cross
	all := explain.Attention{H: c.Heads, L: c.L, T: c.T, D: c.D, Queries: c.Queries, KeyValues: c.KeyValues,
		Grad: c.Grads}.Relevance()
	r := Relevance{Name: MatchScore, Kind: MatchScore, Score: e.Score}
	n := int(x.b.Ints(batch.Lengths)[0])
	mean := make([]float64, c.P)
	places := make([]float64, n) // relevance of all patches for a place
	row := func(l int) []float64 { return all[l*c.T+c.T-c.P:][:c.P] }
	for l := range n {
		for i, v := range row(l) {
			mean[i] += v / float64(n)
			places[l] += v
		}
	}
	r.Image = x.patches(mean)
	if x.at.Fusion == x.fusionLayers()-1 {
		return r, nil // of the last layer the head reads the first token alone
	}
	r.Words = spread(x.words, places)
	for _, w := range x.words {
		of := make([]float64, c.P)
		for _, l := range w.places {
			for i, v := range row(l) {
				of[i] += v / float64(len(w.places))
			}
		}
		r.WordMaps = append(r.WordMaps, *x.patches(of))
	}
	return r, nil
}

// fusionLayers is how many fusion layers the model has.
func (x *Explainer) fusionLayers() int { return x.t.Config.Model.Text.FusionLayers }

// patches is a map over the grid of the image tower, or a row of the regions that the image has.
func (x *Explainer) patches(values []float64) *explain.Map {
	if x.t.Config.Has(section.Regions) {
		n := int(x.b.Ints(batch.RegionLengths)[0])
		return &explain.Map{Values: values[:n], Rows: 1, Columns: n}
	}
	side := x.t.Config.Model.Image.Grid()
	return &explain.Map{Values: values, Rows: side, Columns: side}
}

// seenText is a text as the model reads it, with notes on what of it is lost.
func (x *Explainer) seenText(text string) (clean string, notes []string, err error) {
	cfg := x.t.Config
	if clean, err = x.t.Caption(text); err != nil {
		return "", nil, &console.ArgumentError{Err: err}
	}
	whole := uncut(cfg)(text)
	if whole != clean {
		notes = append(notes, fmt.Sprintf("The text is cut to its first %d words (data.max_words).", cfg.Data.MaxWords))
	}
	return clean, append(notes, x.cut(clean)...), nil
}

// cut is a note on the end of a clean text that the model does not read, nil where it reads all of it.
func (x *Explainer) cut(clean string) []string {
	n, most := len(x.t.Tokenizer.Encode(clean, 0)), x.t.Config.Data.Tokens
	if n <= most {
		return nil
	}
	return []string{fmt.Sprintf("The text has %d tokens and the model reads %d (data.tokens): its end is left out.", n,
		most)}
}
