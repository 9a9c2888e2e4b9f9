package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/runlog"
	"github.com/geoalign/geoalign/weights"
)

// ImportOptions say how stored weights become a run.
type ImportOptions struct {
	From   string // file or folder of weights
	Family string // of them; empty: the one that they look like
	// Adapter is a folder of PEFT whose adapters are merged into the weights; empty: none.
	Adapter string
	Out     string   // run folder; not read in a dry run
	File    string   // TOML file of the configuration around the settings of the weights; empty: the defaults
	Set     []string // overrides, the last of which win
	use     bool     // nothing trains by the configuration
	// AllowMissing: parameters that the weights lack start from random numbers, else they are an error.
	AllowMissing bool
	DryRun       bool      // nothing is written
	Log          io.Writer // messages; nil: none
}

// Imported is what Import did, or would do.
type Imported struct {
	Family    string   `json:"family"`
	From      string   `json:"from"`
	Path      string   `json:"path,omitempty"`      // of the run
	Settings  []string `json:"settings"`            // of the weights, as --set takes them
	Flags     []string `json:"flags"`               // the same as flags for a shell
	Numbers   int      `json:"numbers"`             // of all parameters
	Read      []string `json:"read"`                // parameters
	Resampled []string `json:"resampled"`           // of these, position tables brought to another size
	Fresh     []string `json:"random"`              // parameters that the weights lack
	Unread    []string `json:"left_out"`            // what the weights have and the model has not
	Unknown   []string `json:"not_known"`           // tensors of the file
	Notes     []string `json:"notes"`               // what was assumed, or differs
	Side      string   `json:"one_tower,omitempty"` // image or text: of weights that are not a whole model

	tok *tokenizer.Tokenizer // of the configuration, where it was opened to be compared with the weights
}

// Import makes a run of stored weights: a folder with a configuration, and a checkpoint of step 0 with parameters,
// tokenizer, and ALBEF's twins and queue. Parameters pass through memory one at a time. Weights of one tower become one
// encoder, with the layers and prompts of sentence-transformers where there are any.
func Import(ctx context.Context, o ImportOptions) (*Imported, error) {
	m, err := o.open()
	if err != nil {
		return nil, err
	}
	defer m.Close()
	r := described(o.From, m)
	if err := r.setEncoder(o.From, m); err != nil {
		return nil, err
	}
	if err := unlike(m); err != nil {
		if o.DryRun {
			return r, nil
		}
		return nil, err
	}
	cfg, err := r.config(m, o)
	if err != nil {
		return nil, err
	}
	var tok *tokenizer.Tokenizer // none in a dry run, which reads no text
	if !o.DryRun {
		if tok, err = r.tokenizer(cfg); err != nil {
			return nil, err
		}
	}
	engine, err := setup.Engine(cfg)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	p, err := train.Layout(cfg, train.ModelOptions{Engine: engine, Tokenizer: tok, Rows: wordRows(m), Start: m})
	if err != nil {
		return nil, err
	}
	if err := r.compare(p, m, o.AllowMissing); err != nil || o.DryRun {
		return r, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	snap, err := train.Imported(cfg, tok, p, m)
	if err != nil {
		return nil, err
	}
	env := runlog.CollectEnvironment(setup.Description(engine), os.Args)
	r.Path = o.Out
	return r, newRun(o.Out, 0, snap, console.Lines(o.Log).Say, func() error {
		text, err := cfg.Encode()
		if err != nil {
			return err
		}
		return runlog.Prepare(o.Out, text, env)
	})
}

// open opens the weights.
func (o ImportOptions) open() (*weights.Model, error) {
	if o.Adapter != "" {
		return weights.OpenAdapted(o.From, o.Family, o.Adapter)
	}
	return weights.OpenAs(o.From, o.Family)
}

// unlike says why features would be others than those of the weights, nil where they would not.
func unlike(m *weights.Model) error {
	list := slices.Concat(m.Unlike, m.Encoder.Refused)
	if len(list) == 0 {
		return nil
	}
	cure := "towers can start from it, with init.image.path and init.text.path"
	if side := m.Encoder.Side; side != "" {
		cure = fmt.Sprintf("a tower can start from it, with init.%s.path", side)
	}
	return console.Argument("%s: features would be others than those of the weights: %s: %s", m.Path(),
		strings.Join(list, "; "), cure)
}

// tokenizer returns the tokenizer of a configuration, which it opens unless it is open, nil where it has none.
func (r *Imported) tokenizer(cfg config.Config) (tok *tokenizer.Tokenizer, err error) {
	switch {
	case !cfg.Tokenizes():
		return nil, nil
	case r.tok != nil:
		return r.tok, setup.Classless(cfg, r.tok)
	}
	tok, err = tokenizer.Load(source.Below(cfg.Data.Root, cfg.Data.Vocab), cfg.Data.Template)
	if err != nil {
		return nil, fmt.Errorf("data.vocab: %w", err)
	}
	return tok, setup.Classless(cfg, tok)
}

// wordRows is the number of rows of the embeddings of words, 0 without any.
func wordRows(m *weights.Model) int {
	if shape := m.Shape(setup.WordEmbeddings); len(shape) > 0 {
		return shape[0]
	}
	return 0
}

// WeightSettings returns what Import would say of weights without a configuration: their family, settings and notes.
func WeightSettings(path, family string) (*Imported, error) {
	m, err := weights.OpenAs(path, family)
	if err != nil {
		return nil, err
	}
	r := described(path, m)
	r.Notes = append(r.Notes, m.TowerNotes...)
	r.setAll(path, m)
	return r, m.Close()
}

// described is weights at path, of which nothing was compared.
func described(path string, m *weights.Model) *Imported {
	r := &Imported{Family: m.Family, From: m.Path(), Read: []string{}, Resampled: []string{}, Fresh: []string{},
		Unread: []string{}, Unknown: []string{}, Notes: []string{}}
	r.Unknown, r.Notes = append(r.Unknown, m.Report().Unexpected...), append(r.Notes, m.Notes...)
	r.Side = m.Encoder.Side
	return r
}

// setAll fills in the settings of weights at path, with the key of their tower where there is one alone.
func (r *Imported) setAll(path string, m *weights.Model) {
	add := func(s weights.Setting) {
		r.Settings = append(r.Settings, s.String())
		value := strings.ReplaceAll(s.Value, ", ", ",")
		if text, quoted := strings.CutPrefix(value, `"`); quoted &&
			setup.PlainWord.MatchString(strings.TrimSuffix(text, `"`)) {
			value = strings.TrimSuffix(text, `"`) // of a text alone, which --set takes without quotes
		}
		r.Flags = append(r.Flags, "--set "+setup.ShellWord(s.Key+"="+value))
	}
	text := func(key, value string) {
		_, value, _ = strings.Cut(config.Override(key, value), "=")
		add(weights.Setting{Key: key, Value: value})
	}
	if r.Side != "" {
		text("init."+r.Side+".path", path)
	}
	for _, s := range trainedAs(m) {
		add(s)
	}
	for _, s := range m.Settings() {
		add(s)
	}
	if r.Side != "image" {
		if place := setup.TokenizerOf(m); place != "" {
			text("data.vocab", place)
			text("data.template", templateOf(m))
		}
	}
}

// trainedAs are the settings by which a run goes on as the models of a family were trained.
func trainedAs(m *weights.Model) []weights.Setting {
	const on, off = "1", "0"
	dual := []weights.Setting{{Key: "momentum.enabled", Value: "false"}, {Key: "queue.size", Value: off},
		{Key: "objective.itc.weight", Value: off},
		{Key: "objective.distill.alpha", Value: off}, {Key: "model.text.dropout", Value: off}, {Key: "eval.rerank_top", Value: off}, {Key: "data.clean", Value: cmp.Or(m.Clean, data.CleanNone)}}
	switch {
	case m.Has("siglip/bias"):
		return append(dual, weights.Setting{Key: "objective.siglip.weight", Value: on})
	case slices.Contains([]string{"clip", "open_clip", "open_clip_timm", "clip_resnet", "clip-mtob"}, m.Family):
		return append(dual, weights.Setting{Key: "objective.itc.in_batch_weight", Value: on},
			weights.Setting{Key: "objective.itc.log_temperature", Value: "true"},
			weights.Setting{Key: "objective.itc.temperature_min", Value: "0.01"})
	}
	return nil
}

// setEncoder fills in the settings of a run of weights at path: those of one encoder, or of both towers.
func (r *Imported) setEncoder(path string, m *weights.Model) error {
	if r.Side == "" {
		r.setAll(path, m)
		return nil
	}
	list, err := encoderSettings(m)
	for _, s := range list {
		r.Settings = append(r.Settings, s.String())
		r.Flags = append(r.Flags, "--set "+setup.ShellWord(s.String()))
	}
	return err
}

// config returns the configuration of a run of weights: their settings, which the file of o comes before, and what
// that file leaves out of how such models are trained. In a dry run a vocabulary that does not fit is a note.
func (r *Imported) config(m *weights.Model, o ImportOptions) (config.Config, error) {
	given := config.Given(o.File)
	var sets []string
	for _, s := range trainedAs(m) {
		if !given[s.Key] {
			sets = append(sets, s.String())
		}
	}
	settings := m.Settings()
	if r.Side != "" {
		var err error
		if settings, err = encoderSettings(m); err != nil {
			return config.Config{}, err
		}
	}
	for _, s := range settings {
		if strings.HasPrefix(s.Key, "model.") || !given[s.Key] {
			sets = append(sets, s.String())
		}
	}
	if place := setup.TokenizerOf(m); place != "" {
		sets = append(sets, config.Override("data.vocab", place), "data.template="+templateOf(m))
	}
	sets = slices.Concat(sets, o.Set, []string{"init.checkpoint=''", "init.image.path=''", "init.text.path=''",
		config.Override("run.out", o.Out)})
	cfg, notices, err := config.LoadNoted(o.File, sets)
	for _, n := range notices {
		console.Lines(o.Log).Say("note: %s", n)
	}
	if problems := (config.Errors)(nil); o.use && errors.As(err, &problems) {
		err = problems.Using()
	}
	if err != nil {
		return cfg, err
	}
	purpose := setup.ForModel
	if r.Side != "" {
		purpose = setup.Purpose("init." + r.Side)
	}
	errs, tok, err := setup.Disagreements(cfg, m, purpose)
	if err != nil {
		return cfg, err
	}
	r.tok = tok
	if o.DryRun {
		errs = slices.DeleteFunc(errs, func(e *config.Error) bool {
			if e.Path == "data.vocab" {
				r.Notes = append(r.Notes, e.Error())
			}
			return e.Path == "data.vocab"
		})
	}
	return cfg, setup.OneError(errs)
}

// compare fills in which parameters p has from m, and fails for those that m lacks.
func (r *Imported) compare(p *model.Params, m *weights.Model, allow bool) error {
	asked := map[string]bool{}
	for _, q := range p.List() {
		r.Numbers += q.Len()
		for _, name := range []string{q.Name, "momentum/" + q.Name} {
			asked[name] = true
		}
		if !m.Has(q.Name) {
			r.Fresh = append(r.Fresh, q.Name)
			continue
		}
		r.Read = append(r.Read, q.Name)
		if shape := m.Shape(q.Name); q.Grid && !slices.Equal(shape, q.Shape) {
			r.Resampled = append(r.Resampled, q.Name)
		}
	}
	for _, name := range m.Names() {
		same := name == "temperature" && asked["logit_scale"] || name == "logit_scale" && asked["temperature"]
		if !asked[name] && !same && !strings.HasPrefix(name, "queue/") {
			r.Unread = append(r.Unread, name)
		}
	}
	if len(r.Fresh) == 0 || allow {
		return nil
	}
	hint := "--allow-missing starts them from random numbers"
	if strings.HasPrefix(r.Fresh[0], "text/mlm/") || r.Fresh[0] == "temperature" {
		hint += "; a model that is not trained by masked words has none with --set objective.mlm.weight=0"
	}
	return fmt.Errorf("%s lacks %d parameters of the model (%s): %s", m.Path(), len(r.Fresh), setup.FirstNames(r.Fresh),
		hint)
}

// String tells in lines what was read, and what was not.
func (r *Imported) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %d parameters read", r.From, r.Family, len(r.Read))
	for _, l := range []struct {
		what  string
		names []string
	}{{"resampled", r.Resampled}, {"random", r.Fresh}, {"left out", r.Unread}, {"not known", r.Unknown}} {
		if len(l.names) > 0 {
			fmt.Fprintf(&b, "\n%d %s: %s", len(l.names), l.what, setup.FirstNames(l.names))
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s", note)
	}
	return b.String()
}
