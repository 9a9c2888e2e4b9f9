package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Other readers of a portable tokenizer put [CLS] before a text as ALBEF's template does, which Parse reads as a template of
// the file; a tokenizer with such a template is as it is.
func TestPortable(t *testing.T) {
	own, err := New([]string{PadToken, UnkToken, ClsToken, SepToken, MaskToken, "a", "red", "##der", "box"}, Default())
	if err != nil {
		t.Fatal(err)
	}
	b, err := own.Portable()
	if err != nil {
		t.Fatal(err)
	}
	other, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	const text = "A redder, red BOX of nothing"
	if got, want := other.Encode(text, 0), own.Encode(text, 0); other.Template() != TemplateFile || !slices.Equal(got, want) || got[0] != own.ClsID() {
		t.Errorf("template %s: ids %v, want %v", other.Template(), got, want)
	}
	if other.PadID() != own.PadID() {
		t.Errorf("padded with %d", other.PadID())
	}
	again, err := other.Portable()
	if stored, _ := other.JSON(); err != nil || !bytes.Equal(again, stored) {
		t.Errorf("%v: another file", err)
	}
}

// Other readers want a list of added tokens, and mark the first word of a text by "first" only where no normalizer has deleted what stood
// before it (tokenizers 0.23: with a normalizer that deletes quotation marks `"a dog"` is read without the mark). Texts without the name of a
// special token have the ids of the tokenizer itself.
func TestPortableKinds(t *testing.T) {
	g := readKinds(t)
	for _, k := range kindFiles {
		tok := loadKind(t, k[0], k[1])
		what := k[0] + " " + filepath.Base(k[1])
		b, err := tok.Portable()
		if err != nil {
			t.Fatal(err)
		}
		var f struct {
			Added      []json.RawMessage `json:"added_tokens"`
			Normalizer any               `json:"normalizer"`
			Split      struct {
				Scheme string `json:"prepend_scheme"`
			} `json:"pre_tokenizer"`
		}
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err)
		}
		if f.Added == nil {
			t.Errorf("%s: added_tokens is null", what)
		}
		if f.Normalizer != nil && f.Split.Scheme == "first" {
			t.Errorf("%s: the first word has its mark by the scheme first behind a normalizer", what)
		}
		other, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		compared := 0
		for _, s := range g.texts {
			if strings.Contains(s, "<") {
				continue
			}
			compared++
			if got, want := other.Encode(s, 0), tok.Encode(s, 0); !slices.Equal(got, want) {
				t.Errorf("%s: %q has ids %v, want %v", what, s, got, want)
			}
		}
		if compared == 0 {
			t.Error("no texts")
		}
	}
}

// What follows a step that cuts a text marks no more words than before.
func TestMarksStart(t *testing.T) {
	const metaspace, cut = `{"prepend_scheme":%q,"type":"Metaspace"}`, `{"type":"Whitespace"}`
	first, always := fmt.Sprintf(metaspace, "first"), fmt.Sprintf(metaspace, "always")
	for _, c := range [][2]string{
		{first, always}, {always, always}, {cut, cut}, {"null", "null"}, {`{"type":"Sequence","pretokenizers":[]}`, `{"type":"Sequence","pretokenizers":[]}`},
		{`{"type":"Sequence","pretokenizers":[` + first + "," + cut + `]}`, `{"pretokenizers":[` + always + "," + cut + `],"type":"Sequence"}`},
		{`{"type":"Sequence","pretokenizers":[` + cut + "," + first + `]}`, `{"type":"Sequence","pretokenizers":[` + cut + "," + first + `]}`},
	} {
		if got, err := marksStart(json.RawMessage(c[0])); err != nil || string(got) != c[1] {
			t.Errorf("%s: %s, %v, want %s", c[0], got, err, c[1])
		}
	}
}
