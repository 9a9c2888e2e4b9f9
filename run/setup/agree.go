package setup

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/weights"
)

// Purpose says what stored weights are read for.
type Purpose string

const (
	ForModel Purpose = "import"     // all that they have
	forImage Purpose = "init.image" // the image tower
	forText  Purpose = "init.text"  // the text tower, and layers of it for fusion layers
)

// side is the first part of the names of the parameters that are read.
func (p Purpose) side() string { return strings.TrimPrefix(string(p), "init.") }

// demanded returns cfg with the values that the weights demand: structure, sizes and how images are prepared. Image
// and position tables may have other sizes, which are resampled or cut, what no file says may be known better, and
// what stands for an image or a text of a tower alone is a matter of choice.
func demanded(cfg config.Config, m *weights.Model, p Purpose) (config.Config, error) {
	var sets []string
	for _, s := range m.Settings() {
		if !s.Assumed {
			sets = append(sets, s.String())
		}
	}
	all, err := cfg.With(sets...)
	if err != nil {
		return cfg, err
	}
	want, own := cfg, cfg.Model
	switch p {
	case ForModel:
		want.Model = all.Model
	case forImage:
		want.Model.Image = all.Model.Image
		want.Model.Image.Pool = own.Image.Pool
	case forText:
		want.Model.Text = all.Model.Text
		want.Model.Text.Pool = own.Text.Pool
		shareLayers(&want.Model.Text, own.Text.FusionLayers)
	}
	im, tx := &want.Model.Image, &want.Model.Text
	im.Size = own.Image.Size
	if p != forText && m.Has("image/pos_embed") && !m.Has("image/registers") {
		im.Registers = 0
	}
	if own.Text.Positions <= tx.Positions {
		tx.Positions = own.Text.Positions
	}
	return want, nil
}

// shareLayers gives fusion layers the last layers of a tower without any, as ALBEF does with BERT. A tower with fusion
// layers may be used without.
func shareLayers(t *encoders.TextOptions, fusion int) {
	switch all := t.Layers + t.FusionLayers; {
	case fusion == 0:
		t.FusionLayers = 0
	case t.FusionLayers == 0 && fusion < all:
		t.Layers, t.FusionLayers = all-fusion, fusion
	}
}

// Disagreements lists the keys of cfg that are not as the weights demand, each with what to set. Where it had to open
// the tokenizer of cfg for that it returns it, else nil.
func Disagreements(cfg config.Config, m *weights.Model, p Purpose) (errs config.Errors, tok *tokenizer.Tokenizer,
	err error) {
	want, err := demanded(cfg, m, p)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range config.Differences(cfg.Explicit(), want.Explicit()) {
		errs = append(errs, &config.Error{Path: d.Path, Value: d.Was,
			Msg:  fmt.Sprintf("must be %s for the weights in %s", config.Show(d.Now), m.Path()),
			Hint: setFlag(d.Path, d.Now)})
	}
	if m.Has(WordEmbeddings) && p != forImage {
		var e *config.Error
		if tok, e = vocabularyOf(cfg, m); e != nil {
			errs = append(errs, e)
		}
	}
	return errs, tok, nil
}

// WordEmbeddings is the parameter with a row for every token.
const WordEmbeddings = "text/embeddings/word/weight"

// vocabularyOf opens data.vocab and says by what it is not the vocabulary of the weights, nil where it is, as far as
// the files beside them tell.
func vocabularyOf(cfg config.Config, m *weights.Model) (*tokenizer.Tokenizer, *config.Error) {
	const key = "data.vocab"
	place := TokenizerOf(m)
	rows := m.Shape(WordEmbeddings)[0]
	hint := "name the vocabulary that they were trained with"
	if place != "" {
		hint = setFlag(key, place)
	}
	fail := func(format string, args ...any) *config.Error {
		return &config.Error{Path: key, Value: cfg.Data.Vocab, Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	if cfg.Data.Vocab == "" {
		return nil, fail("must name the vocabulary of the weights in %s, of %d rows", m.Path(), rows)
	}
	own, err := tokenizer.Load(source.Below(cfg.Data.Root, cfg.Data.Vocab), cfg.Data.Template)
	if err != nil {
		e := fail("%v", err)
		if place != "" && cfg.Data.Template == source.TemplateALBEF {
			e.Hint += " " + setFlag("data.template", source.TemplateFile)
		}
		return nil, e
	}
	if own.Size() > rows {
		return nil, fail("has %d tokens, and %s in %s %d rows", own.Size(), WordEmbeddings, m.Path(), rows)
	}
	if place == "" || place == source.Below(cfg.Data.Root, cfg.Data.Vocab) && cfg.Data.Template != source.TemplateALBEF {
		return own, nil
	}
	theirs, err := tokenizer.Load(place, source.TemplateFile)
	if err != nil { // of a kind that is not read: the user has found another form
		return own, nil
	}
	for id := range int32(max(own.Size(), theirs.Size())) {
		if a, b := own.Token(id), theirs.Token(id); a != b {
			return nil, fail("has another vocabulary, of %d tokens, than the weights in %s, of %d: token %d is %q and not %q", own.Size(), m.Path(), theirs.Size(), id, a, b)
		}
	}
	return own, nil
}

// TokenizerOf returns the folder of weights where it has the files of a tokenizer, else it is empty.
func TokenizerOf(m *weights.Model) string {
	t := m.Tokenizer
	if t.JSON == "" && t.Vocabulary == "" && t.SentencePiece == "" {
		return ""
	}
	folder := filepath.Dir(m.Path())
	if path, err := filepath.Abs(folder); err == nil { // relative ones start from data.root
		return path
	}
	return folder
}

// OneError returns the problems of weights as an error whose last line sets all of them at once, nil without any.
func OneError(errs config.Errors) error {
	if len(errs) == 0 {
		return nil
	}
	if len(errs) > 1 {
		var flags []string
		for _, e := range errs {
			if strings.HasPrefix(e.Hint, "--set ") {
				flags = append(flags, e.Hint)
			}
		}
		last := *errs[len(errs)-1]
		last.Hint += "; all of them: " + strings.Join(flags, " ")
		errs = append(slices.Clone(errs[:len(errs)-1]), &last)
	}
	return errs
}

// setFlag returns the flag that sets a key, as a shell takes it.
func setFlag(path string, value any) string {
	text := config.Show(value)
	switch v := value.(type) {
	case string:
		if text = v; v == "" || !PlainWord.MatchString(v) {
			text = strings.TrimPrefix(config.Override(path, v), path+"=")
		}
	case []float64:
		text = strings.ReplaceAll(text, " ", ",")
	}
	return "--set " + ShellWord(path+"="+text)
}

// PlainWord is a text that neither a shell nor TOML reads as more.
var PlainWord = regexp.MustCompile(`^[A-Za-z0-9_./=+-]+$`)

// ShellWord quotes a word where a shell would see more than one in it.
func ShellWord(s string) string {
	if PlainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
