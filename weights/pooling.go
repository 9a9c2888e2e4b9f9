package weights

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// pooling is what is read of 1_Pooling/config.json of sentence-transformers: what stands for a text. Several modes
// stand side by side.
type pooling struct {
	Class    bool  `json:"pooling_mode_cls_token"`
	Mean     bool  `json:"pooling_mode_mean_tokens"`
	Max      bool  `json:"pooling_mode_max_tokens"`
	Root     bool  `json:"pooling_mode_mean_sqrt_len_tokens"`
	Weighted bool  `json:"pooling_mode_weightedmean_tokens"`
	Last     bool  `json:"pooling_mode_lasttoken"`
	Mode     names `json:"pooling_mode"` // in the place of all of these

	Include *bool `json:"include_prompt"` // prompts are pooled with the text; nil: they are
}

// names is one name, or a list of them.
type names []string

// UnmarshalJSON reads either.
func (n *names) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*n = nil
		if one != "" {
			*n = names{one}
		}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(n))
}

// modes lists the names of its modes.
func (p *pooling) modes() []string {
	if len(p.Mode) > 0 {
		return p.Mode
	}
	list := map[string]bool{"cls": p.Class, "mean": p.Mean, "max": p.Max, "mean_sqrt_len": p.Root,
		"weightedmean": p.Weighted, "lasttoken": p.Last}
	maps.DeleteFunc(list, func(_ string, on bool) bool { return !on })
	return slices.Sorted(maps.Keys(list))
}

// module is a step from a text to its vector in a modules.json of sentence-transformers.
type module struct {
	Type string `json:"type"` // a class of Python
	Path string `json:"path"` // the folder of its files
}

// kind is the name of the class.
func (m module) kind() string { return m.Type[strings.LastIndexByte(m.Type, '.')+1:] }

// tower says whether it gives states of words, or the mean of a table of tokens.
func (m module) tower() bool { return m.kind() == "Transformer" || m.kind() == "StaticEmbedding" }

// apart says whether it is a tower whose files lie in a folder of their own.
func (m module) apart() bool {
	return m.tower() && m.Path != "" && filepath.IsLocal(m.Path)
}

// readModules reads modules.json and the files of the pool, where they are there.
func (x *facts) readModules(folder string) error {
	if _, err := readJSON(filepath.Join(folder, "modules.json"), &x.modules); err != nil {
		return err
	}
	at := "1_Pooling"
	for _, m := range x.modules {
		if m.kind() == "Pooling" && filepath.IsLocal(m.Path) {
			at = m.Path
		}
	}
	p := &pooling{}
	x.poolingFile = filepath.Join(at, "config.json")
	ok, err := readJSON(filepath.Join(folder, x.poolingFile), p)
	if ok {
		x.pooling = p
	}
	return err
}

// harmless are the modules that are the tower and its pool, or change nothing that a head here does not do.
var harmless = []string{"Transformer", "StaticEmbedding", "CLIPModel", "Pooling", "Normalize", "Dropout"}

// pool is what stands for a text by the files of sentence-transformers, else otherwise.
func (d *description) pool(otherwise string) string {
	for _, m := range d.modules {
		if !slices.Contains(harmless, m.kind()) {
			d.towerNotes = append(d.towerNotes, fmt.Sprintf(
				"modules.json has a module %s (%s), which is not read: features of the tower are those without it",
				m.kind(), cmp.Or(m.Path, "no folder")))
		}
	}
	if d.pooling == nil {
		return otherwise
	}
	if pool, ok := d.pooling.ours(); ok {
		return pool
	}
	d.note("%s has another pooling than one of cls, mean, max, lasttoken and weightedmean alone (%s): %s is taken", d.poolingFile,
		cmp.Or(strings.Join(d.pooling.modes(), ", "), "none"), otherwise)
	return otherwise
}

// ours is the pool as model.text.pool names it, false where it has none.
func (p *pooling) ours() (pool string, ok bool) {
	modes := p.modes()
	if len(modes) != 1 {
		return "", false
	}
	pool, ok = map[string]string{"mean": "mean", "cls": "class", "max": "max", "lasttoken": "end", "weightedmean": "weighted_mean"}[modes[0]]
	return pool, ok
}
