package tokenizer

import (
	"bytes"
	"slices"
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
