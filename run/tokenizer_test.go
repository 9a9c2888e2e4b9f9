package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/tasks/retrieval"
	"github.com/geoalign/geoalign/tasks/vqa"
	"github.com/geoalign/geoalign/train"
)

// kindFolder is a folder with a small tokenizer of a kind.
func kindFolder(t *testing.T, name string) string {
	t.Helper()
	return check.Get(filepath.Abs("../data/tokenizer/testdata/kinds/" + name))(t)
}

// withTokenizer are the settings of a tokenizer as its files say.
func withTokenizer(path string, more ...string) []string {
	return append([]string{"data.vocab=" + path, "data.template=file", "data.clean=none", "data.tokens=24", "model.text.positions=24", "train.max_steps=3", "schedule.warmup_percent=0"}, more...)
}

// TestTokenizersTrain trains with byte-level BPE and masked words, and with a tokenizer that has no mask, and opens both.
func TestTokenizersTrain(t *testing.T) {
	for _, c := range []struct {
		path, kind, pad string
		sets            []string
	}{
		{"roberta", tokenizer.BPE, "<pad>", []string{"model.system=albef", "model.text.fusion_layers=1", "objective.mlm.weight=1"}},
		{"gemma/tokenizer.json", tokenizer.BPE, "<pad>", []string{"model.system=clip", "objective.mlm.weight=0", "objective.itm.weight=0", "model.text.fusion_layers=0", "model.text.pool=mean"}},
		{"bert", tokenizer.WordPiece, "[PAD]", []string{"model.system=albef", "model.text.fusion_layers=1", "objective.mlm.weight=1"}},
	} {
		t.Run(c.path, func(t *testing.T) {
			dir := t.TempDir()
			want := trained(t, settings(t, dir, withTokenizer(kindFolder(t, c.path), c.sets...)...), Options{})
			o := check.Get(Open(dir, OpenOptions{}))(t)
			defer o.Close()
			s, err := o.Evaluate(t.Context(), retrieval.Name, "val", nil)
			if err != nil || s.(retrieval.Scores).First != want.Scores.(retrieval.Scores).First {
				t.Errorf("%v, error %v, want %v", s, err, want.Scores)
			}
			own, err := tokenizer.Load(kindFolder(t, c.path), tokenizer.TemplateFile)
			if err != nil || !o.Tokenizer.Equal(own) {
				t.Errorf("the checkpoint has another tokenizer (%v)", err)
			}
			i := check.Get(Inspect(dir, ""))(t)
			if i.Tokenizer == nil || *i.Tokenizer != (TokenizerInfo{c.kind, tokenizer.TemplateFile, own.Size(), c.pad}) {
				t.Errorf("inspected %v", i.Tokenizer)
			}
		})
	}
}

func TestTokenizersRefused(t *testing.T) {
	refused := func(key, want string, sets ...string) {
		t.Helper()
		r, err := New(t.Context(), settings(t, t.TempDir(), sets...), Options{})
		if err == nil {
			_, err = r.Train(t.Context())
			r.Close()
		}
		var problems config.Errors
		if !errors.As(err, &problems) || problems[0].Path != key || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
	masked := []string{"model.system=albef", "model.text.fusion_layers=1", "objective.mlm.weight=1"}
	refused("objective.mlm.weight", "needs a tokenizer with [MASK] or <mask>", withTokenizer(kindFolder(t, "clip"), masked...)...)
	refused("data.tokens", "must be > 2", withTokenizer(kindFolder(t, "roberta"), append(masked, "data.tokens=2")...)...)
}

// TestTokenizerFitsTheModel puts a larger tokenizer into a checkpoint.
func TestTokenizerFitsTheModel(t *testing.T) {
	dir := t.TempDir()
	trained(t, settings(t, dir, "train.max_steps=1"), Options{})
	o := check.Get(Open(dir, OpenOptions{}))(t)
	defer o.Close()
	other := check.Get(os.ReadFile(filepath.Join(kindFolder(t, "bert"), "tokenizer.json")))(t)
	tok := check.Get(tokenizer.Parse(other))(t)
	engine := check.Get(setup.Engine(o.Config))(t)
	defer engine.Close()
	if _, err := train.OpenModel(o.Config, o.Checkpoint, tok, engine); err == nil || !strings.Contains(err.Error(), "rows: use the tokenizer that the model was trained with") {
		t.Errorf("%d tokens: %v", tok.Size(), err)
	}
}

// TestNoClassToken: where no token stands before a text, the first one is a word, and stands for no text.
func TestNoClassToken(t *testing.T) {
	sets := withTokenizer(kindFolder(t, "gemma"), "model.system=clip", "objective.mlm.weight=0", "objective.itm.weight=0", "model.text.fusion_layers=0")
	for pool, want := range map[string]string{"class": "model.text.pool: must be mean or end: class reads the first token", "mean": "", "end": ""} {
		_, err := setup.Tokenizer(t.Context(), settings(t, t.TempDir(), append(sets, "model.text.pool="+pool)...), nil, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--set model.text.pool=mean")) {
			t.Errorf("pool %s: %v, want %q", pool, err, want)
		}
	}
}

// TestNewWords: a run of questions from a checkpoint of captions takes in the words that captions have not, its own checkpoints have them, and
// it goes on from these as it is. Without the key words stay unknown.
func TestNewWords(t *testing.T) {
	dir := t.TempDir()
	albef := []string{"model.system=albef", "model.text.fusion_layers=1", "train.max_steps=2", "schedule.warmup_percent=0"}
	from, asked := filepath.Join(dir, "from"), filepath.Join(dir, "asked")
	trained(t, settings(t, from, albef...), Options{})
	for _, n := range []int{0, 30} {
		out := fmt.Sprint(asked, n)
		cfg, err := FinetuneConfig(from, vqa.Name, OpenOptions{Set: []string{"run.out=" + out, fmt.Sprintf("init.new_words=%d", n), "momentum.enabled=false", "objective.distill.alpha=0", "train.max_steps=2"}})
		if err != nil {
			t.Fatal(err)
		}
		trained(t, cfg, Options{})
		o := check.Get(Open(out, OpenOptions{}))(t)
		defer o.Close()
		if s, err := o.Evaluate(t.Context(), vqa.Name, "val", nil); err != nil || s.(vqa.Scores).Questions == 0 {
			t.Errorf("init.new_words = %d: %v", n, err)
		}
		ids := o.Tokenizer.Encode("what colour?", 0)
		if known := len(ids) == 4 && ids[1] != o.Tokenizer.UnkID(); known != (n > 0) {
			t.Errorf("init.new_words = %d: what colour? is %v of %d tokens", n, ids, o.Tokenizer.Size())
		}
	}
	more, err := FinetuneConfig(asked+"30", vqa.Name, OpenOptions{Set: []string{"run.out=" + filepath.Join(dir, "more")}})
	if err != nil {
		t.Fatal(err)
	}
	r := check.Get(New(t.Context(), more, Options{}))(t)
	defer r.Close()
	if _, ok := r.tok.ID("colour"); !ok {
		t.Error("a word is lost in a run from a checkpoint that has it")
	}
}
