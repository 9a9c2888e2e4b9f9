package tokenizer

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func load(t testing.TB, path string) *Tokenizer {
	t.Helper()
	tok, err := Load(path, TemplateALBEF)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestEncodeCutsAndHasNoSep(t *testing.T) {
	tok := load(t, "testdata/vocab.txt")
	full := tok.Encode("the dogs are running", 0)
	if full[0] != tok.ClsID() || slices.Contains(full, tok.SepID()) {
		t.Errorf("%v: want [CLS] first and no [SEP]", full)
	}
	for n := 1; n < 8; n++ {
		if got := tok.Encode("the dogs are running", n); !slices.Equal(got, full[:min(n, len(full))]) {
			t.Errorf("at most %d tokens: got %v of %v", n, got, full)
		}
	}
	if s := tok.Decode(full); s != "the dogs are running" {
		t.Errorf("decoded %q", s)
	}
	if s := tok.Decode([]int32{-1, 1 << 30}); s != "[UNK] [UNK]" {
		t.Errorf("ids out of range decoded to %q", s)
	}
	// Names of special tokens are ordinary text.
	for _, id := range tok.Encode("[MASK] [PAD]", 0)[1:] {
		if id == tok.MaskID() || id == tok.PadID() {
			t.Errorf("a special token came from text")
		}
	}
}

func TestLearn(t *testing.T) {
	// Merges by hand: words low x5, lower x2, newest x6, widest x3. Pairs:
	// ##e ##s 9, ##s ##t 9, ##w ##e 8 ...; "##e ##s" sorts before "##s ##t".
	var texts []string
	for w, n := range map[string]int{"low": 5, "lower": 2, "newest": 6, "widest": 3} {
		for range n {
			texts = append(texts, w)
		}
	}
	tok, err := Learn(slices.Values(texts), 20)
	if err != nil {
		t.Fatal(err)
	}
	// Characters by frequency: ##e 17 (lower 2, newest 12, widest 3), ##w 13,
	// ##s 9, ##t 9, l 7, ##o 7, n 6, ##d 3, ##i 3, w 3, ##r 2; ties by text.
	// Left then are ##o ##w 7 and l ##o 7 ("##o" sorts first), then l ##ow 7.
	want := "[PAD] [UNK] [CLS] [SEP] [MASK] ##e ##w ##s ##t ##o l n ##d ##i w ##r ##es ##est ##ow low"
	if got := strings.Join(tok.Tokens(), " "); got != want {
		t.Errorf("learned\n%s, want\n%s", got, want)
	}
	slices.Reverse(texts)
	again, err := Learn(slices.Values(texts), 20)
	if err != nil || !again.Equal(tok) {
		t.Errorf("the order of the texts changed the vocabulary (%v)", err)
	}
	if got := tok.Decode(tok.Encode("slowest", 0)); got != UnkToken {
		t.Errorf("s at the start of a word was never seen, got %q", got)
	}
	if ids := tok.Encode("lowest", 0); len(ids) != 3 || tok.Token(ids[1]) != "low" || tok.Token(ids[2]) != "##est" {
		t.Errorf("lowest: %v", ids)
	}
}

func TestLearnRefuses(t *testing.T) {
	if _, err := Learn(slices.Values([]string{"a dog"}), 8); err == nil || !strings.Contains(err.Error(), "at least 15") {
		t.Errorf("size 8: %v", err)
	}
	if _, err := Learn(slices.Values([]string{"", " \t"}), 100); err == nil || !strings.Contains(err.Error(), "no word") {
		t.Errorf("blank texts: %v", err)
	}
}

func TestLearnIsBounded(t *testing.T) {
	// More distinct characters than room: the most frequent are kept.
	var texts []string
	for r := rune(0xac00); r < 0xac00+3000; r++ {
		texts = append(texts, string(r)+"a")
	}
	for _, size := range []int{15, 100, 2000} {
		tok, err := Learn(slices.Values(texts), size)
		if err != nil {
			t.Fatal(err)
		}
		if tok.Size() > size {
			t.Errorf("%d tokens, asked for at most %d", tok.Size(), size)
		}
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	tok, err := Learn(slices.Values([]string{"two dogs <run>", "one dog & a cat", "\u00e9t\u00e9"}), 60)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vocab.txt", "tokenizer.json"} {
		path := filepath.Join(dir, name)
		if err := tok.Save(path); err != nil {
			t.Fatal(err)
		}
		if again := load(t, path); !again.Equal(tok) {
			t.Errorf("%s: differs after loading", name)
		}
	}
	again, err := Parse(tok.Vocab())
	if err != nil || !again.Equal(tok) {
		t.Errorf("bytes: %v", err)
	}
	cased := load(t, "testdata/cased.json")
	if err := cased.Save(filepath.Join(dir, "cased.txt")); err == nil {
		t.Error("a vocab.txt must not lose the options")
	}
	if err := cased.Save(filepath.Join(dir, "cased.json")); err != nil {
		t.Fatal(err)
	}
	if again := load(t, filepath.Join(dir, "cased.json")); !again.Equal(cased) || again.Options().Lowercase {
		t.Error("options were lost")
	}
	if err := tok.Save(filepath.Join(dir, "no", "such", "folder")); err == nil {
		t.Error("saving to a missing folder must fail")
	}
}

func TestParseRefuses(t *testing.T) {
	good := "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
	model := func(vocab string) string {
		return fmt.Sprintf(`{"model": {"type": "WordPiece", "vocab": %s}}`, vocab)
	}
	for _, c := range []struct{ in, want string }{
		{"", "empty"},
		{"\n\n", "empty"},
		{"dog\ncat\n", "lacks [PAD]"},
		{good + "dog\n\ncat\n", "line 7 is blank"},
		{good + "dog\ncat\ndog\n", `"dog" has two ids (5 and 7)`},
		{"[UNK]\n[PAD]\n[CLS]\n[MASK]\n", "[PAD] must have id 0"},
		{good + "\xff\xfe\n", "not UTF-8"},
		{"{", "tokenizer.json"},
		{"{}", "no model.vocab"},
		{`{"model": {"type": "BPE", "vocab": {"a": 0}}}`, "no token to pad with"},
		{`{"model": {"type": "Characters", "vocab": {"a": 0}}}`, "Characters"},
		{`{"model": {"vocab": {"a": "x"}}}`, "tokenizer.json"},
		{`{"model": {"vocab": {"a": 1, "a": 2}}}`, `tokenizer.json: key "a" is there twice`},
		{model(`{"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[MASK]": 9}`), "without gaps"},
		{model(`{"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[MASK]": 2}`), "id 2 belongs to"},
		{model(`{"[PAD]": 0, "[UNK]": -1}`), "without gaps"},
		{`{"normalizer": {"type": "Lowercase"}, "model": {"vocab": {"a": 0}}}`, "BertNormalizer"},
		{`{"pre_tokenizer": {"type": "ByteLevel"}, "model": {"vocab": {"a": 0}}}`, "BertPreTokenizer"},
		{`{"added_tokens": [{"id": 4, "content": "a"}], "model": {"vocab": {"a": 0}}}`, "added token"},
	} {
		if _, err := Parse([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want an error with %q", c.in, err, c.want)
		}
	}
	if tok, err := Parse([]byte("\xef\xbb\xbf" + strings.ReplaceAll(good, "\n", "\r\n") + "dog")); err != nil || tok.Size() != 6 {
		t.Errorf("byte order mark and CRLF: %v", err)
	}
	if _, err := Load("testdata/missing.txt", TemplateALBEF); err == nil || !strings.Contains(err.Error(), "missing.txt") {
		t.Errorf("missing file: %v", err)
	}
}

func ExampleLearn() {
	captions := []string{"a brown dog runs", "a black dog runs", "two dogs run"}
	tok, err := Learn(slices.Values(captions), 40)
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := tok.Encode("A brown dog!", 25)
	fmt.Println(tok.Token(ids[0]), tok.Decode(ids))
	// Output: [CLS] a brown dog [UNK]
}

func BenchmarkEncode(b *testing.B) {
	tok := load(b, "testdata/vocab.txt")
	for b.Loop() {
		tok.Encode("the dogs are running in the brown grass with a cat", 25)
	}
}
