package weights

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/encoders"
)

// Encoder is what weights of one tower are as a whole: the tower with its pool, and what stands before and behind them
// by the files of sentence-transformers.
type Encoder struct {
	Side    string                // image or text; empty: the weights have both towers
	Dense   []encoders.DenseLayer // behind the pool, whose parameters are SIDE_proj/dense/00/weight and so on
	Unit    bool                  // vectors are of length 1
	Lower   bool                  // texts are read in lower case
	Bare    bool                  // no tokens stand around a text
	Known   bool                  // of those of a text the unknown ones are left out
	Prompts []string              // texts before a text, as data.prompts has them, in the order of their names
	Prompt  string                // the name of the one that is used unless asked otherwise; empty: none
	Refused []string              // what is not read: vectors would be others than those of the weights
}

// sentence is what is read of sentence_bert_config.json and config_sentence_transformers.json.
type sentence struct {
	Longest int  `json:"max_seq_length"`
	Lower   bool `json:"do_lower_case"`

	Prompts map[string]string `json:"prompts"`
	Prompt  string            `json:"default_prompt_name"`
}

// dense is what is read of the config.json of a Dense module.
type dense struct {
	In         int    `json:"in_features"`
	Out        int    `json:"out_features"`
	Bias       *bool  `json:"bias"`
	Activation string `json:"activation_function"` // a class of PyTorch; empty: Tanh
}

// transformerFolder is where the weights of a folder of sentence-transformers are, which may be one below it.
func transformerFolder(path string) (string, error) {
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return path, nil // whoever opens it says what is wrong
	}
	var modules []module
	if _, err := readJSON(filepath.Join(path, "modules.json"), &modules); err != nil {
		return "", err
	}
	for _, m := range modules {
		if m.apart() {
			return filepath.Join(path, m.Path), nil
		}
	}
	return path, nil
}

// readSentence reads the files of sentence-transformers beside the weights, where they are there: folder has the
// modules, inner the weights.
func (x *facts) readSentence(folder, inner string) error {
	for _, path := range []string{filepath.Join(inner, "sentence_bert_config.json"),
		filepath.Join(folder, "config_sentence_transformers.json")} {
		if _, err := readJSON(path, &x.sentence); err != nil {
			return err
		}
		if n := x.sentence.Longest; n < 0 {
			return fmt.Errorf("%s: max_seq_length must be > 0 (got %d): leave it out where texts are as long as positions allow", path, n)
		}
	}
	return x.readModules(folder)
}

// encoder is what a model of one tower is as a whole. Parameters of Dense modules are added to those of the tower.
func (d *description) encoder() (e Encoder) {
	image, text := d.hasSide("image"), d.hasSide("text")
	for _, l := range d.layers { // of one side: those of two are settings
		l.Side = ""
		e.Dense = append(e.Dense, l)
	}
	switch {
	case image && text:
		return Encoder{}
	case image:
		e.Side = "image"
	default:
		e.Side = "text"
	}
	refuse := func(format string, args ...any) { e.Refused = append(e.Refused, fmt.Sprintf(format, args...)) }
	s := d.sentence
	e.Lower, e.Prompt = s.Lower, s.Prompt
	if e.Bare = d.family == &static; e.Bare {
		_, e.Known = d.file.Lookup("embeddings")
		e.Unit = len(d.modules) == 0 && d.keys().yes("normalize")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Prompts)) {
		e.Prompts = append(e.Prompts, name+"="+s.Prompts[name])
		if strings.Contains(name, "=") {
			refuse("the prompt %q has = in its name", name)
		}
	}
	if _, ok := s.Prompts[s.Prompt]; s.Prompt != "" && !ok {
		refuse("default_prompt_name is %q in config_sentence_transformers.json, which has no such prompt", s.Prompt)
	}
	if p := d.pooling; p != nil {
		if _, ok := p.ours(); !ok {
			refuse("%s pools by %s: one of cls, mean, max, lasttoken and weightedmean is read", d.poolingFile,
				cmp.Or(strings.Join(p.modes(), " and "), "nothing"))
		}
		if p.Include != nil && !*p.Include && len(strings.Join(e.Prompts, "")) > len(e.Prompts) {
			refuse("%s leaves prompts out of the pool (include_prompt = false)", d.poolingFile)
		}
	}
	pooled := false
	for i, m := range d.modules {
		switch kind := m.kind(); {
		case m.tower() && i == 0, kind == "Dropout":
			pooled = pooled || kind == "StaticEmbedding"
		case e.Unit:
			refuse("modules.json has %s (%s) behind Normalize", kind, m.Path)
		case kind == "Pooling" && !pooled:
			pooled = true
		case kind == "Normalize":
			e.Unit = true
		case kind == "Dense" && pooled:
			if err := d.dense(&e, m.Path); err != nil { // a tower can start from the weights all the same
				refuse("%v", err)
			}
		default:
			refuse("modules.json has the module %s (%s): Transformer, Pooling, Dense, Dropout and Normalize are read, in this order, and StaticEmbedding for the first two",
				m.Type, cmp.Or(m.Path, "no folder"))
		}
	}
	return e
}

// hasSide says whether there are parameters of a tower.
func (d *description) hasSide(side string) bool {
	for name := range d.values {
		if strings.HasPrefix(name, side+"/") {
			return true
		}
	}
	return false
}

// dense adds the Dense module in a folder.
func (d *description) dense(e *Encoder, folder string) error {
	if !filepath.IsLocal(folder) {
		return fmt.Errorf("modules.json has a Dense module in %q, which is no folder below it", folder)
	}
	at := filepath.Join(d.folder, folder)
	var c dense
	place := filepath.Join(at, "config.json")
	if ok, err := readJSON(place, &c); err != nil || !ok {
		if err == nil {
			err = fmt.Errorf("%s: %w: download the folder as a whole", place, fs.ErrNotExist)
		}
		return err
	}
	class := c.Activation[strings.LastIndexByte(c.Activation, '.')+1:]
	names := map[string]string{"": "tanh", "Tanh": "tanh", "Identity": "", "ReLU": "relu", "GELU": "gelu", "SiLU": "silu"}
	activation, ok := names[class]
	if !ok {
		e.Refused = append(e.Refused, fmt.Sprintf("%s has activation_function %q: Identity, Tanh, ReLU, GELU and SiLU are read",
			place, c.Activation))
	}
	f, err := OpenFile(at)
	if err != nil {
		return err
	}
	d.file.shards = append(d.file.shards, f.shards...) // closed with them
	l := encoders.DenseLayer{Width: c.Out, Activation: activation, NoBias: c.Bias != nil && !*c.Bias}
	for _, which := range []string{"weight", "bias"} {
		t, ok := f.Lookup("linear." + which)
		switch {
		case which == "bias" && ok == l.NoBias:
			return fmt.Errorf("%s has bias = %t, and %s has another: do both belong together?", place, !l.NoBias, f.Path)
		case which == "bias" && !ok:
		case !ok:
			return fmt.Errorf("%s has no tensor linear.weight (it has %s)", f.Path, some(f.Names()))
		case which == "weight" && !slices.Equal(t.Shape, []int{c.Out, c.In}), which == "bias" && !slices.Equal(t.Shape, []int{c.Out}):
			return fmt.Errorf("linear.%s of %s has shape %v, and %s has in_features = %d and out_features = %d: do both belong together?", which, f.Path, t.Shape, place, c.In, c.Out)
		default:
			v := reshaped(t, t.Shape...)
			v.from = []*Tensor{t}
			d.values[fmt.Sprintf("%s_proj/dense/%02d/%s", e.Side, len(e.Dense), which)] = v
		}
	}
	e.Dense = append(e.Dense, l)
	return nil
}
