package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/filetest"
)

// kindGoldens are texts with the ids of each kind of tokenizer (made by
// tools/goldens/tokenizer_kinds.py), and texts as open_clip cleans them.
type kindGoldens struct {
	texts   []string
	ids     map[string][][]int32
	cleaned map[string][]string
}

func gunzip(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readKinds(t testing.TB) kindGoldens {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(gunzip(t, "testdata/kinds/goldens.json.gz"), &all); err != nil {
		t.Fatal(err)
	}
	g := kindGoldens{ids: map[string][][]int32{}, cleaned: map[string][]string{}}
	for k, raw := range all {
		var ids [][]int32
		var texts []string
		if json.Unmarshal(raw, &ids) == nil {
			g.ids[k] = ids
		} else if err := json.Unmarshal(raw, &texts); err != nil {
			t.Fatal(err)
		} else if g.cleaned[k] = texts; k == "texts" {
			g.texts = texts
		}
	}
	return g
}

// kindFile is a file in testdata/kinds; a .model is unpacked and the map of characters of "unigram" put in its place.
func kindFile(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("testdata/kinds", name)
	var b []byte
	switch {
	case filepath.Ext(name) == ".model":
		b = gunzip(t, path+".gz")
	case name == "unigram/tokenizer.json":
		m, err := readSentencePiece(gunzip(t, "testdata/kinds/siglip/spiece.model.gz"))
		if err != nil {
			t.Fatal(err)
		}
		charsmap, err := json.Marshal(m.charsmap)
		if err != nil {
			t.Fatal(err)
		}
		if b, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		b = bytes.Replace(b, []byte(`"precompiled_charsmap":""`), slices.Concat([]byte(`"precompiled_charsmap":`), charsmap), 1)
	default:
		return path
	}
	copied := filepath.Join(t.TempDir(), filepath.Base(name))
	filetest.Write(t, copied, b)
	return copied
}

// kindFiles are the files of each kind: golden, file.
var kindFiles = [][2]string{
	{"bert", "bert/tokenizer.json"}, {"bert", "bert/vocab.txt"}, {"mpnet", "mpnet/vocab.txt"},
	{"words", "words/tokenizer.json"}, {"whitespace", "whitespace/tokenizer.json"},
	{"roberta", "roberta/tokenizer.json"}, {"roberta", "roberta/vocab.json"}, {"roberta_spaced", "roberta_spaced/tokenizer.json"},
	{"clip", "clip/tokenizer.json"}, {"clip", "clip/vocab.json"},
	{"siglip", "siglip/spiece.model"}, {"spiece", "siglip/spiece.model"}, {"bytes", "bytes/spiece.model"},
	{"unigram", "unigram/tokenizer.json"}, {"gemma", "gemma/tokenizer.json"},
}

// loadKind loads a file of kindFiles. SigLIP's has its configuration beside it.
func loadKind(t testing.TB, golden, name string) *Tokenizer {
	t.Helper()
	path := kindFile(t, name)
	if golden == "siglip" {
		b := filetest.Read(t, "testdata/kinds/siglip/tokenizer_config.json")
		filetest.Write(t, filepath.Join(filepath.Dir(path), "tokenizer_config.json"), b)
	}
	tok, err := Load(path, TemplateFile)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// known are texts that SentencePiece's wrapper for SigLIP encodes in another way: it gives no second </s> to a text that
// ends with one.
var known = map[string]bool{"<s> dog </s>": true}

// checkKind compares with the ids of the original. It reads the tokenizer as a checkpoint stores it too.
func checkKind(t *testing.T, tok *Tokenizer, texts []string, want [][]int32) {
	t.Helper()
	b, err := tok.JSON()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if !stored.Equal(tok) || stored.Kind() != tok.Kind() || stored.PadID() != tok.PadID() || stored.MaskID() != tok.MaskID() {
		t.Error("differs after storing")
	}
	if len(want) != len(texts) {
		t.Fatalf("%d encodings of %d texts", len(want), len(texts))
	}
	wrong := 0
	for i, s := range texts {
		if known[s] && tok.Kind() == Unigram {
			continue
		}
		if got := tok.Encode(s, 0); !slices.Equal(got, want[i]) {
			if wrong++; wrong <= 20 {
				t.Errorf("%q:\n got %v\nwant %v", s, got, want[i])
			}
		}
		if got := stored.Encode(s, 0); !slices.Equal(got, want[i]) && wrong == 0 {
			t.Errorf("stored: %q:\n got %v\nwant %v", s, got, want[i])
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d texts differ", wrong, len(texts))
	}
}

func TestKindsLikeTheirOriginals(t *testing.T) {
	g := readKinds(t)
	for _, k := range kindFiles {
		t.Run(k[0]+" "+filepath.Base(k[1]), func(t *testing.T) {
			checkKind(t, loadKind(t, k[0], k[1]), g.texts, g.ids[k[0]])
		})
	}
}

func TestRealKinds(t *testing.T) {
	g := readKinds(t)
	for _, k := range [][2]string{{"bert_real", "bert-base-uncased_tokenizer.json"}, {"clip_real", "clip_bpe_simple_vocab_16e6.txt.gz"}} {
		t.Run(k[0], func(t *testing.T) {
			path := filepath.Join(shared, "tokenizers", k[1])
			if _, err := os.Stat(path); err != nil {
				t.Skip("no vocabulary at " + path)
			}
			tok, err := Load(path, TemplateFile)
			if err != nil {
				t.Fatal(err)
			}
			texts := g.texts
			if k[0] == "clip_real" {
				texts = g.cleaned["clip_lower"] // what reads HTML entities is not part of the tokenizer
			}
			checkKind(t, tok, texts, g.ids[k[0]])
		})
	}
}

func TestKindsKeepTheEndWhenCut(t *testing.T) {
	g := readKinds(t)
	for _, k := range kindFiles {
		tok := loadKind(t, k[0], k[1])
		for i, s := range g.texts {
			full := tok.Encode(s, 0)
			for _, n := range []int{1, 2, 5, 16} {
				got, want := tok.Encode(s, n), full
				if len(full) > n {
					words := full[:max(n-len(tok.end), 0)]
					want = slices.Concat(words, tok.end)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s: text %d at most %d: got %v of %v", k[1], i, n, got, full)
				}
			}
		}
	}
}

func TestRolesOfKinds(t *testing.T) {
	for _, c := range []struct {
		golden, file             string
		kind                     string
		pad, row, cls, sep, mask int32
		size                     int
		folder                   bool // its folder gives the same
	}{
		{"bert", "bert/tokenizer.json", WordPiece, 0, 0, 2, 3, 4, 0, true},
		{"bert", "bert/vocab.txt", WordPiece, 0, 0, 2, 3, 4, 0, false},
		{"mpnet", "mpnet/vocab.txt", WordPiece, 1, 1, 0, 2, 0, 0, true},
		{"roberta", "roberta/tokenizer.json", BPE, 1, 1, 0, 2, 0, 0, true},
		{"roberta", "roberta/vocab.json", BPE, 1, 1, 0, 2, 0, 0, false},
		{"clip", "clip/vocab.json", BPE, 0, -1, 0, 0, -1, 0, false},
		{"siglip", "siglip/spiece.model", Unigram, 1, -1, -1, 1, -1, 0, false},
		{"spiece", "siglip/spiece.model", Unigram, 0, 0, -1, 1, -1, 0, false},
		{"gemma", "gemma/tokenizer.json", BPE, 0, 0, -1, 1, 4, 544, true},
	} {
		tok := loadKind(t, c.golden, c.file)
		last := int32(tok.Size() - 1)
		switch c.golden {
		case "mpnet", "roberta":
			c.mask = last
		case "clip":
			c.pad, c.cls, c.sep = last, last-1, last
		}
		got := []int32{tok.PadID(), tok.PadRow(), tok.ClsID(), tok.SepID(), tok.MaskID()}
		if want := []int32{c.pad, c.row, c.cls, c.sep, c.mask}; !slices.Equal(got, want) || tok.Kind() != c.kind || c.size > 0 && tok.Size() != c.size {
			t.Errorf("%s: %s of %d tokens with roles %v, want %v", c.file, tok.Kind(), tok.Size(), got, want)
		}
		if !c.folder {
			continue
		}
		from, err := Load(filepath.Dir(filepath.Join("testdata/kinds", c.file)), TemplateFile)
		if err != nil || !from.Equal(tok) {
			t.Errorf("%s: its folder gives another one (%v)", c.file, err)
		}
	}
}

func TestTemplates(t *testing.T) {
	// A file that has [SEP] is read without by ALBEF's template, and stored so.
	path := "testdata/kinds/bert/tokenizer.json"
	albef, err := Load(path, TemplateALBEF)
	if err != nil {
		t.Fatal(err)
	}
	file := loadKind(t, "bert", "bert/tokenizer.json")
	s := "a dog [MASK]"
	a, f := albef.Encode(s, 0), file.Encode(s, 0)
	if slices.Contains(a, albef.SepID()) || slices.Contains(a, albef.MaskID()) || f[len(f)-1] != file.SepID() || !slices.Contains(f, file.MaskID()) {
		t.Errorf("albef %v, file %v", a, f)
	}
	if albef.Equal(file) || file.Equal(albef) {
		t.Error("two templates are equal")
	}
	if b, err := albef.JSON(); err != nil || bytes.Contains(b, []byte("TemplateProcessing")) {
		t.Errorf("a template was stored (%v)", err)
	}
	// A file without a template has none, and keeps it in a checkpoint.
	plain := loadKind(t, "whitespace", "whitespace/tokenizer.json")
	b, err := plain.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(b)
	if err != nil || again.Template() != TemplateFile || again.Around() != 0 {
		t.Errorf("%v, %v", again, err)
	}
	for name, text := range map[string]string{"merges.txt.gz": "\x1f\x8b\x08\xff", "vocab.json": `{"a": 0}`} {
		path := filepath.Join(t.TempDir(), name)
		filetest.Write(t, path, text)
		if _, err := Load(path, TemplateALBEF); err == nil || !strings.Contains(err.Error(), `data.template = "albef" is for BERT vocabularies, and "file" for others`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Load("testdata/kinds/roberta/tokenizer.json", TemplateALBEF); err == nil || !strings.Contains(err.Error(), `set it to "file"`) {
		t.Errorf("BPE with ALBEF's template: %v", err)
	}
	if _, err := Load(path, "bert"); err == nil {
		t.Error("there is no such template")
	}
}

// TestClassesOfPatterns: what Hugging Face tokenizers 0.23.3 replace. Fractions are words where \w stands alone.
func TestClassesOfPatterns(t *testing.T) {
	const text = "a\u2167\u00b2\u00bc\u24d0\U0001F130\u00e9_\u0663\u203f-!\u00bd\u2460 \u3000\t\u0085"
	for pattern, want := range map[string]string{
		`\\w`:                   "||||||||||-!|\u2460 \u3000\t\u0085",
		`[^\\w\\s]`:             "a\u2167||\u24d0\U0001F130\u00e9_\u0663\u203f|||| \u3000\t\u0085",
		`\\W+`:                  "a\u2167\u00b2\u00bc\u24d0\U0001F130\u00e9_\u0663\u203f|\u00bd|",
		`[[:space:]]`:           "a\u2167\u00b2\u00bc\u24d0\U0001F130\u00e9_\u0663\u203f-!\u00bd\u2460||||",
		`[^[:punct:]a]`:         "a|||\u24d0\U0001F130|_|\u203f-!||||||",
		`[[:digit:][:cntrl:]-]`: "a\u2167\u00b2\u00bc\u24d0\U0001F130\u00e9_|\u203f|!\u00bd\u2460 \u3000||",
		`[[:word:]]`:            "||\u00b2\u00bc||||||-!\u00bd\u2460 \u3000\t\u0085",
		`[\\d\\s]|\\s`:          "a\u2167\u00b2\u00bc\u24d0\U0001F130\u00e9_|\u203f-!\u00bd\u2460||||",
	} {
		n, err := newNormalizer([]byte(`{"type": "Replace", "pattern": {"Regex": "`+pattern+`"}, "content": "|"}`), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.text(text); got != want {
			t.Errorf("%s: %+q, want %+q", pattern, got, want)
		}
	}
}

// TestPatternsOfOniguruma: what the package regexp would read as something else is refused.
func TestPatternsOfOniguruma(t *testing.T) {
	for regex, want := range map[string]string{
		`[a-z&&[^aeiou]]`: "&& between brackets", `[[a-c]x]`: "brackets between brackets", `[[:alpha:]]`: "brackets between brackets", `[[:^space:]]`: "brackets between brackets",
		`\bdog\b`: `\b`, `\Bx`: `\B`, `\Qa.b\E`: `\Q`, `a{,2}`: "{, without a least number", `(?m)a.b`: "the flag m", `x(?im:a.)`: "the flag m",
	} {
		if _, err := (pattern{Regex: regex}).compile(); err == nil || !strings.Contains(err.Error(), " has "+want+", which is not supported") {
			t.Errorf("%s: %v", regex, err)
		}
	}
	for _, regex := range []string{`[[:xdigit:]]`, `[&]&&`, `\[a]{1,2}`, `(?i:m)(?i)`, `[{,]`, `(?P<m>a)`} {
		if _, err := (pattern{Regex: regex}).compile(); err != nil {
			t.Error(err)
		}
	}
}

// TestEmptyMatches: what Hugging Face tokenizers 0.23.3 make of patterns that match nothing at a place.
func TestEmptyMatches(t *testing.T) {
	for regex, want := range map[string][3]string{`^`: {"", "_ab b", "_a\n_b"}, `$`: {"", "ab b_", "a_\nb_"}, `a*`: {"", "_b_ _b_", "_\n_b_"}} {
		n, err := newNormalizer([]byte(`{"type": "Replace", "pattern": {"Regex": "`+regex+`"}, "content": "_"}`), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]string{n.text(""), n.text("ab b"), n.text("a\nb")}; got != want {
			t.Errorf("Replace %s: %q, want %q", regex, got, want)
		}
	}
	for _, c := range []struct {
		regex, behavior string
		invert          bool
		want            string
	}{
		{"b*", "Removed", false, "a|a|c|\n|d"}, {"b*", "Removed", true, "b"}, {"b*", "Isolated", false, "a|a|b|c|\n|d"},
		{"b*", "MergedWithPrevious", false, "a|ab|c|\n|d"}, {"b*", "MergedWithPrevious", true, "a|a|bc|\n|d"},
		{"b*", "MergedWithNext", false, "a|a|bc|\n|d"}, {"b*", "MergedWithNext", true, "a|ab|c|\n|d"}, {"b*", "Contiguous", true, "a|a|b|c|\n|d"},
		{"^", "Removed", false, "aabc\n|d"}, {"^", "Removed", true, ""}, {"^", "MergedWithNext", false, "aabc\n|d"},
	} {
		p, err := newSplitter(fmt.Appendf(nil, `{"type": "Split", "pattern": {"Regex": %q}, "behavior": %q, "invert": %v}`, c.regex, c.behavior, c.invert), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p(nil, "aabc\nd", true), "|"); got != c.want {
			t.Errorf("Split %s %s %v: %q, want %q", c.regex, c.behavior, c.invert, got, c.want)
		}
	}
}

// TestLowerCaseOfBERT: the capital I with a dot is two characters where accents are kept, as in Turkish vocabularies.
func TestLowerCaseOfBERT(t *testing.T) {
	for accents, want := range map[bool]string{false: "i\u0307stanbul \u00e9 \u03b1\u03c3", true: "istanbul e \u03b1\u03c3"} {
		if got := normalize("\u0130stanbul \u00c9 \u0391\u03a3", Options{Lowercase: true, StripAccents: accents}); got != want {
			t.Errorf("without accents %v: %+q, want %+q", accents, got, want)
		}
	}
}

// TestLongRunsOfMarks: marks are sorted and composed also where more than 30 follow each other.
func TestLongRunsOfMarks(t *testing.T) {
	acute := strings.Repeat("\u0301", 40)
	for form, want := range map[string]string{"NFC": "\u0229" + acute, "NFKD": "e\u0327" + acute} {
		n, err := newNormalizer([]byte(`{"type": "`+form+`"}`), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.text("e" + acute + "\u0327"); got != want {
			t.Errorf("%s: %+q, want %+q", form, got, want)
		}
	}
}

// TestLongTexts encodes texts that take a tenth of a second or so. What is quadratic takes minutes.
func TestLongTexts(t *testing.T) {
	const n = 1 << 17
	texts := []string{strings.Repeat("a", n), strings.Repeat("running dogs ", n/13), strings.Repeat(" ", n), strings.Repeat("'", n),
		strings.Repeat("\u72d7", n/3), strings.Repeat("\u0301", n/2), strings.Repeat("</s>", n/4), strings.Repeat("ab1 !", n/5)}
	for _, k := range kindFiles {
		tok := loadKind(t, k[0], k[1])
		for i, s := range texts {
			start := time.Now()
			ids := tok.Encode(s, 0)
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("%s: text %d took %v", k[1], i, d)
			} else {
				t.Logf("%s: text %d: %d ids in %v", k[1], i, len(ids), d)
			}
		}
	}
}

// BenchmarkKinds encodes texts of a caption's length.
func BenchmarkKinds(b *testing.B) {
	texts := []string{"a dog runs through the grass", "my friend's brother doesn't see snow-covered hills", "three children, smiling, jump over the running water"}
	for _, k := range kindFiles {
		b.Run(k[0]+" "+filepath.Base(k[1]), func(b *testing.B) {
			tok := loadKind(b, k[0], k[1])
			for i := 0; b.Loop(); i++ {
				tok.Encode(texts[i%len(texts)], 77)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "texts/s")
		})
	}
}
