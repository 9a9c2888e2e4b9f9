package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/stricttoml"
	"github.com/geoalign/geoalign/internal/words"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/run/record"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// Inspection is what a checkpoint holds.
type Inspection struct {
	Path    string      `json:"path"`
	Step    int         `json:"step"`
	Metric  *float64    `json:"metric,omitempty"`      // of the evaluation at this step
	Measure string      `json:"metric_name,omitempty"` // what Metric is, as metrics.jsonl names it
	Notice  string      `json:"notice,omitempty"`
	Groups  []GroupInfo `json:"groups"`
	Group   string      `json:"group"` // the one that Tensors lists
	Numbers int         `json:"numbers"`
	// numbers of parameters that have moments in the optimiser: all but those of frozen and adapted towers; 0 without
	// an optimiser
	Trained int            `json:"trained,omitempty"`
	Tensors []TensorInfo   `json:"tensors"`
	Config  map[string]any `json:"config,omitempty"`
	// Tokenizer is that of its texts, nil where there are none.
	Tokenizer *TokenizerInfo `json:"tokenizer,omitempty"`

	// Data identifies the data of the run; nil where its folder does not say.
	Data *record.Data `json:"data,omitempty"`

	ConfigText string `json:"-"` // of the run
}

// TokenizerInfo describes a tokenizer.
type TokenizerInfo struct {
	Kind     string `json:"kind"`     // WordPiece, BPE, Unigram or WordLevel
	Template string `json:"template"` // what stands around a text: albef or file
	Tokens   int    `json:"tokens"`
	Pad      string `json:"pad"` // token that texts are padded with
}

// DescribeTokenizer describes t.
func DescribeTokenizer(t *tokenizer.Tokenizer) TokenizerInfo {
	return TokenizerInfo{t.Kind(), t.Template(), t.Size(), t.Token(t.PadID())}
}

// String is the tokenizer in words.
func (t TokenizerInfo) String() string {
	return fmt.Sprintf("%s, template %s, %s tokens, padded with %s", t.Kind, t.Template, words.Thousands(t.Tokens),
		t.Pad)
}

// GroupInfo is one file of a checkpoint.
type GroupInfo struct {
	Name    string `json:"name"`
	Tensors int    `json:"tensors"`
	Numbers int    `json:"numbers"`
	Bytes   int64  `json:"bytes"`
}

// TensorInfo is one tensor of a file.
type TensorInfo struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Shape   []int  `json:"shape"`
	Numbers int    `json:"numbers"`
}

// Inspect reads the description of the checkpoint at path, with the tensors of one of its
// files, such as model, which empty stands for, or alignment of a fitted map; no tensor is loaded, and of the tensors'
// files only the sizes are checked (checkpoint.Verify checks all).
func Inspect(path, group string) (*Inspection, error) {
	ckpt, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	defer ckpt.Close()
	r := &Inspection{Path: ckpt.Path, Step: ckpt.Step, Notice: ckpt.Notice, Group: group, Tensors: []TensorInfo{}}

	if m := ckpt.Metric; m != nil {
		r.Metric, r.Measure = &m.Value, m.Name
	}
	names := ckpt.Groups()
	if group == "" {
		group = setup.ModelGroups[0]
		for _, g := range setup.ModelGroups {
			if slices.Contains(names, g) {
				group = g
			}
		}
		r.Group = group
	}
	for _, name := range names {
		list, err := ckpt.Tensors(name)
		if err != nil {
			return nil, err
		}
		g := GroupInfo{Name: name}
		for _, t := range list {
			g.Tensors++
			g.Numbers += t.Len()
			g.Bytes += t.Bytes()
			if name == "optimizer" && strings.HasPrefix(t.Name, "m/") {
				r.Trained += t.Len()
			}
			if name == group {
				r.Tensors = append(r.Tensors, TensorInfo{t.Name, string(t.DType), append([]int{}, t.Shape...), t.Len()})
			}
		}
		if name == group {
			r.Numbers = g.Numbers
		}
		r.Groups = append(r.Groups, g)
	}
	if !slices.Contains(names, group) {
		return nil, fmt.Errorf("%s has no group %q: it has %s", ckpt.Path, group, strings.Join(names, ", "))
	}
	slices.SortFunc(r.Tensors, func(a, b TensorInfo) int { return strings.Compare(a.Name, b.Name) })
	if err := r.readConfig(ckpt); err != nil {
		return nil, err
	}
	r.nameMetric()
	switch d, err := record.Read(folder.Of(ckpt)); {
	case err == nil:
		r.Data = &d
	case !errors.Is(err, fs.ErrNotExist):
		r.Notice = strings.TrimPrefix(r.Notice+"\n"+err.Error(), "\n")
	}
	if ckpt.HasFile(train.TokenizerFile) {
		t, err := train.OpenTokenizer(ckpt)
		if err != nil {
			return nil, err
		}
		info := DescribeTokenizer(t)
		r.Tokenizer = &info
	}
	return r, nil
}

// nameMetric names the metric of a checkpoint of an earlier version, which has the value alone.
func (r *Inspection) nameMetric() {
	m, _ := r.Config["model"].(map[string]any)
	system, known := m["system"].(string)
	if r.Metric == nil || r.Measure != "" || !known {
		return
	}
	cfg := config.Default()
	cfg.Model.System = system
	r.Measure = keptMetrics(&pages.Curves{}, cfg)[0].Key
}

// readConfig reads config.toml of the checkpoint or of the run folder two levels
// above it, if there is one.
func (r *Inspection) readConfig(ck *checkpoint.Checkpoint) (err error) {
	var text []byte
	file := filepath.Join(ck.Path, runlog.ConfigFile)
	if ck.HasFile(runlog.ConfigFile) {
		text, err = ck.File(runlog.ConfigFile)
	} else {
		file = filepath.Join(ck.Path, "..", "..", runlog.ConfigFile)
		if text, err = files.Read(file, files.MaxConfig); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	r.ConfigText = string(text)
	if err := stricttoml.Check(r.ConfigText); err != nil {
		return fmt.Errorf("%s:%d is damaged: %w", file, err.Line, err)
	}
	if err := toml.Unmarshal(text, &r.Config); err != nil {
		return fmt.Errorf("%s is damaged: %w", file, err)
	}
	return nil
}
