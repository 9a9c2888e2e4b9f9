package explain

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
)

// Formulas of what patches add to the score of features; words have FormulaChannels.
const (
	FormulaChannels    = "channels"    // explain.Channels
	FormulaElementwise = "elementwise" // explain.Elementwise
	FormulaGradCAM     = "gradcam"     // explain.Pooled
	FormulaTerms       = "terms"       // of model.interaction, for words too: explain.Terms
)

// DefaultTokens is how many class tokens are shown unless asked otherwise.
const DefaultTokens = 16

// Options say which score is explained and where.
type Options struct {
	Image string // file
	// instead of Image: the picture itself
	Picture *transform.Image
	Row     *int   // instead of Image: a row of the images of a split, from 0 on
	Split   string // of Row; empty: eval.split
	Text    string // empty with Row: the first text of the image
	// file of the second image, of a system of images alone, or of the right picture of a statement about two
	With string

	Block, Layer, Fusion *int // image block, text layer and fusion layer, from 0 on; nil: model.DefaultBlocks
	// for patches and regions; empty: FormulaTerms where the model has them and no block or layer is asked for, else
	// FormulaChannels
	Formula string
	Tokens  int // class tokens to show, those with the largest scores; 0: DefaultTokens
}

// Explanation is a pair with its explained scores.
type Explanation struct {
	Checkpoint string
	Step       int
	System     string
	Score      string // how features are compared
	Formula    string
	Block      int    // of the image tower, from 0 on
	Layer      int    // of the text tower, -1 without one
	Fusion     int    // fusion layer, -1 without a match head; of a statement that of the left picture
	Split      string // of a row, empty of a file
	Row        int
	Name       string // of the image of a row
	Text       string
	Said       string // of a statement about two pictures, the class that the model tells
	Truth      string // of a statement of a row, its class; empty: unknown
	Notes      []string
	Scores     []Relevance
	Tokens     []float64 // scores of all class tokens or spheres; nil where there is one

	Regions int           // of the image; 0: patches are what is explained
	Boxes   []explain.Box // of the regions; nil: not known

	tokens       bool             // each sphere has a class token of its own
	image, other *transform.Image // as they were decoded; nil of regions without a picture
	cfg          config.Config
}

// Explainable returns an *ArgumentError for a system whose scores no patches or words make up.
func Explainable(cfg config.Config) error {
	if cfg.Has(section.Stored) {
		return console.Argument("model.system %q reads stored features, which have no patches and no words: explain a model with towers", cfg.Model.System)
	}
	if cfg.Has(section.Sentences) {
		return console.Argument("model.system %q has no images: explain a model of images and texts, or of images",
			cfg.Model.System)
	}
	return nil
}

// check refuses options that do not fit a configuration, and fills in what is empty.
func (o *Options) check(cfg config.Config) error {
	bad := console.Argument
	if o.Tokens == 0 {
		o.Tokens = DefaultTokens
	}
	switch {
	case !slices.Contains([]string{"", FormulaChannels, FormulaElementwise, FormulaGradCAM, FormulaTerms}, o.Formula):
		return bad("--formula must be %s, %s, %s or %s (got %q)", FormulaChannels, FormulaElementwise, FormulaGradCAM,
			FormulaTerms, o.Formula)
	case o.Formula == FormulaTerms && !cfg.Has(section.TokenScores):
		return bad("--formula %s is of models with model.interaction: choose %s, %s or %s", FormulaTerms,
			FormulaChannels, FormulaElementwise, FormulaGradCAM)
	case o.Formula == FormulaTerms && (o.Block != nil || o.Layer != nil):
		return bad("--formula %s is of the tokens that are compared: leave out --block and --layer, or choose %s",
			FormulaTerms, FormulaChannels)
	case o.Row != nil && o.Image != "":
		return bad("a row of a split and --image do not go together: leave one out")
	case o.Row != nil && *o.Row < 0:
		return bad("--row must be at least 0 (got %d)", *o.Row)
	case o.Row != nil && cfg.Has(section.ImagesAlone):
		return bad("model.system %q has no texts, so a split has no pairs: explain two images with --image and --with",
			cfg.Model.System)
	case o.Image != "" && cfg.Has(section.Regions):
		return bad("model.image.style %q reads regions of an image, which a file of pixels lacks: name a row of a split with --split and --row", cfg.Model.Image.Style)
	case o.Tokens < 1:
		return bad("--tokens must be at least 1 (got %d)", o.Tokens)
	case cfg.Has(section.ImagesAlone) && o.Text != "":
		return bad("model.system %q has no text tower: give a second image with --with instead of --text",
			cfg.Model.System)
	case cfg.Has(section.ImagesAlone) && o.Layer != nil:
		return bad("model.system %q has no text tower: leave out --layer", cfg.Model.System)
	case !cfg.Has(section.ImagesAlone) && cfg.Pictures() == 1 && o.With != "":
		return bad("--with is for systems of images alone, and for statements about two pictures: model.system %q compares images with texts, give --text", cfg.Model.System)
	}
	return nil
}

// Score explains the score of an image and a text, or of two images where the system has no texts: the whole of it,
// the class tokens or spheres of the space, and the match head, as far as the model has them. Of a model of
// statements about two pictures it explains what the model tells of one. It ends early with the error of ctx.
func Score(ctx context.Context, t *run.Trained, o Options) (*Explanation, error) {
	if err := Explainable(t.Config); err != nil {
		return nil, err
	}
	if err := o.check(t.Config); err != nil { // before files are read
		return nil, err
	}
	if t.Config.Pictures() > 1 {
		if err := o.checkStatement(t.Config); err != nil {
			return nil, err
		}
		return explainStatement(ctx, t, o)
	}
	only := t.Config.Has(section.ImagesAlone)
	switch {
	case o.Row != nil:
	case (o.Image == "" || o.Picture != nil) && t.Config.Has(section.Regions):
		return nil, console.Argument("--row names the image to explain, a row of --split")
	case o.Image == "" && o.Picture == nil:
		return nil, console.Argument("--image names the file of the image to explain")
	case only && o.With == "":
		return nil, console.Argument("--with names the image to compare with: model.system %q has no texts",
			t.Config.Model.System)
	case !only && o.Text == "":
		return nil, console.Argument("--text gives the text to explain")
	}
	out := &Explanation{cfg: t.Config}
	var set *run.Split
	var err error
	if o.Row != nil {
		set, err = openRow(ctx, t, o, out)
	} else {
		err = out.decode(o)
	}
	if err != nil {
		return nil, err
	}
	x, err := New(t, o)
	if err != nil {
		return nil, err
	}
	x.describe(out)
	if set != nil {
		err = x.setRow(set, out)
	} else {
		err = x.setImage(out.image, batch.Images)
	}
	if err != nil {
		return nil, err
	}
	if only {
		err = x.setImage(out.other, batch.Views)
	} else {
		err = x.read(o, set, out)
	}
	if err != nil {
		return nil, err
	}
	return out, x.scores(ctx, out, o.Tokens)
}

// decode reads the files of images.
func (e *Explanation) decode(o Options) (err error) {
	if e.image = o.Picture; e.image != nil {
	} else if e.image, err = images.DecodeFile(o.Image, e.cfg.Data.MaxPixels); err != nil {
		return fmt.Errorf("--image: %w", err)
	}
	if o.With != "" {
		if e.other, err = images.DecodeFile(o.With, e.cfg.Data.MaxPixels); err != nil {
			return fmt.Errorf("--with: %w", err)
		}
	}
	return nil
}

// read makes the text that is asked for that of the pair, or the first one of a row.
func (x *Explainer) read(o Options, set *run.Split, out *Explanation) (err error) {
	if o.Text == "" {
		out.Text = set.Eval.Text(set.Eval.ImageTexts(out.Row)[0]) // clean already
		out.Notes = append(out.Notes, x.cut(out.Text)...)
	} else {
		var notes []string
		if out.Text, notes, err = x.seenText(o.Text); err != nil {
			return err
		}
		out.Notes = append(out.Notes, notes...)
	}
	x.setText(out.Text)
	switch n, all := unknown(x.words); {
	case n == all:
		return console.Argument("the vocabulary of the model knows no word of the text %.60q: use words of its captions", out.Text)
	case n > 0:
		out.Notes = append(out.Notes, fmt.Sprintf("The vocabulary lacks %s of the text.", words.Count(n, "word")))
	}
	return nil
}

// describe says what is explained, and where.
func (x *Explainer) describe(out *Explanation) {
	cfg := x.t.Config
	out.Checkpoint, out.Step, out.System = x.t.Checkpoint.Path, x.t.Checkpoint.Step, cfg.Model.System
	out.Formula, out.Block, out.Layer, out.Fusion = x.formula, x.at.Image, x.at.Text, -1
	out.Score, out.tokens = "cosine", x.model.Space().Tokens
	if cfg.Has(section.ImagesAlone) {
		out.Layer = -1
	} else if cfg.Has(section.TokenScores) {
		out.Score = cfg.Model.Interaction.Kind
	} else if s, err := x.model.PairScore(); err == nil {
		out.Score = s.Host().String()
	}
	if x.model.Matcher() != nil {
		out.Fusion = x.at.Fusion
	}
}

// All explains the pair: the score of the features, and that of the match head where there is one.
func (x *Explainer) All(ctx context.Context) ([]Relevance, error) {
	r, err := x.Pair(ctx)
	if err != nil || x.model.Matcher() == nil {
		return []Relevance{r}, err
	}
	m, err := x.Match(ctx)
	return []Relevance{r, m}, err
}

// finite is an error of a score that is not.
func (r Relevance) finite() error {
	if r.Score-r.Score != 0 {
		return &eval.NonFiniteError{What: fmt.Sprintf("the score %s is %v", r.Name, r.Score),
			Cure: "the model has diverged, explain another checkpoint"}
	}
	return nil
}

// scores explains what the model has.
func (x *Explainer) scores(ctx context.Context, out *Explanation, tokens int) error {
	whole, err := x.All(ctx)
	if err != nil {
		return err
	}
	strongest, all, err := x.strongest(ctx, tokens)
	if err != nil {
		return err
	}
	out.Tokens, out.Scores = all, slices.Insert(whole, 1, strongest...)
	if out.Fusion >= 0 && out.Fusion == x.fusionLayers()-1 {
		out.Notes = append(out.Notes, "Of the last fusion layer the match head reads the first token alone, so words have no maps of their own there.")
	}
	for _, r := range out.Scores {
		if err := r.finite(); err != nil {
			return err
		}
		if r.Image.Most() == 0 {
			what := "patch"
			if out.Regions > 0 {
				what = "region"
			}
			out.Notes = append(out.Notes, fmt.Sprintf("No %s speaks for the score %s at this block: its map is dark.",
				what, r.Name))
		}
	}
	return nil
}
