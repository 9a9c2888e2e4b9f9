package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// growing is a tokenizer.json with a normalizer and a pre_tokenizer, each a list of steps.
func growing(normalizers, splitters string) []byte {
	return fmt.Appendf(nil, `{"normalizer": {"type": "Sequence", "normalizers": [%s]}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [%s]},
	"model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[PAD]": 0, "[UNK]": 1, "a": 2}}}`, normalizers, splitters)
}

func times(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }

// TestGrowingRules: rules that feed each other are refused by name when the file is read.
func TestGrowingRules(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct{ normalizers, splitters, want string }{
		"doubling":          {times(30, `{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}`), "", `rule 10 of 30, Replace of "a" by "aa", makes a text of`},
		"doubling by regex": {times(30, `{"type": "Replace", "pattern": {"Regex": "[^b]"}, "content": "aa"}`), "", `Replace of "[^b]" by "aa", makes a text of`},
		"nested":            {`{"type": "Sequence", "normalizers": [` + times(30, `{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}`) + `]}`, "", "rule 10 of 30"},
		"prepended":         {`{"type": "Prepend", "prepend": "` + long + `"}`, "", "rule 1 of 1, Prepend, makes a text of"},
		"written":           {`{"type": "Replace", "pattern": {"String": "a"}, "content": "` + long + `"}`, "", "rule 1 of 1"},
		"steps":             {times(300, `{"type": "NFC"}`), "", "more than 256 steps"},
		"splitters":         {"", times(300, `{"type": "Whitespace"}`), "pre_tokenizer: its sequences have more than 256 steps"},
	} {
		if _, err := Parse(growing(c.normalizers, c.splitters)); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%s: %.1000v", name, err)
		}
	}
}

// TestGrownTexts: what no check of the rules finds grows to a multiple of the text and is cut there.
func TestGrownTexts(t *testing.T) {
	for name, b := range map[string][]byte{
		"rules for a word that no rule has": growing(times(30, `{"type": "Replace", "pattern": {"Regex": "qq+"}, "content": "qqqqqqqq"}`)+`,{"type": "Replace", "pattern": {"Regex": "qq"}, "content": "q qq q qq q"}`, ""),
		"bytes of bytes":                    growing("", times(60, `{"type": "ByteLevel", "use_regex": false}`)),
		"marks":                             growing("", times(40, `{"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": true}, {"type": "Metaspace", "replacement": "\u2582", "prepend_scheme": "always", "split": true}`)),
	} {
		tok, err := Parse(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, text := range []string{"qqq \u00e9", strings.Repeat("qq a\u00e9", 1000)} {
			if n := len(tok.Encode(text, 0)); n > room(text) {
				t.Errorf("%s: %d tokens of %d bytes", name, n, len(text))
			}
			if tok.normalize != nil && len(tok.normalize.text(text)) > room(text) {
				t.Errorf("%s: a text of %d bytes", name, len(tok.normalize.text(text)))
			}
		}
	}
}

// TestGrownMemory: a rule ends where its text is long enough; what it would write further takes no memory.
func TestGrownMemory(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, rule := range map[string]string{
		"text":  `{"type": "Replace", "pattern": {"String": "a"}, "content": "` + long + `"}`,
		"regex": `{"type": "Replace", "pattern": {"Regex": "a"}, "content": "` + long + `"}`,
	} {
		tok, err := Parse(growing(rule, ""))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat("a", 100_000) // would become 100 MB
		done := budgettest.Within(t, len(text)/10)
		if n := len(tok.normalize.text(text)); n != room(text) {
			t.Errorf("%s: %d bytes", name, n)
		}
		done()
	}
}

// TestRulesOfModels: what files of models do is not cut.
func TestRulesOfModels(t *testing.T) {
	text := strings.Repeat("\ufdfa a\u0301 \u4e2d", 300) // a ligature of 33 bytes among others
	for _, rules := range []string{`{"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}`, `{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}`,
		`{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}, {"type": "Replace", "pattern": {"String": "\u4e2d"}, "content": " \u4e2d "}`} {
		tok, err := Parse(growing(rules, ""))
		if err != nil {
			t.Fatal(err)
		}
		if got, all := tok.normalize.text(text), tok.normalize(text, 1<<30); got != all || len(got) < len(text)/2 {
			t.Errorf("%s: %d bytes of %d", rules, len(got), len(all))
		}
	}
}

// TestLongPieces: what is looked for at each place of a text has a length at most.
func TestLongPieces(t *testing.T) {
	long, _ := json.Marshal(strings.Repeat("a", longestToken+1))
	for name, c := range map[string]struct{ file, want string }{
		"token":   {`{"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<pad>", 0], [` + string(long) + `, 0]]}}`, "1025 bytes, at most 1024"},
		"added":   {`{"added_tokens": [{"id": 1, "content": ` + string(long) + `}], "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<pad>", 0]]}}`, "1025 bytes, at most 1024"},
		"pattern": {`{"normalizer": {"type": "Replace", "pattern": {"Regex": "` + strings.Repeat("a", longestPattern+1) + `"}, "content": ""}, "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<pad>", 0]]}}`, "4097 bytes, at most 4096"},
		"word":    {`{"post_processor": {"type": "BertProcessing", "sep": ["a", 0], "cls": ["a", 0]}, "model": {"type": "WordPiece", "unk_token": "a", "max_input_chars_per_word": 1001, "vocab": {"a": 0}}}`, "at most 1000 (got 1001)"},
	} {
		if _, err := Parse([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

// TestManyAddedTokens: a folder may add as many tokens as a vocabulary has.
func TestManyAddedTokens(t *testing.T) {
	f, err := readJSON(growing("", ""))
	if err != nil {
		t.Fatal(err)
	}
	var r roles
	for i := range 60_000 {
		r.added = append(r.added, added{ID: int32(3 + i), Content: fmt.Sprintf("<%d>", i)})
	}
	r.added = append(r.added, r.added...)
	tok, err := f.build(r)
	if err != nil || tok.Size() != 60_003 {
		t.Fatal(err)
	}
}
