package tokenizer

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// realVocabularies are vocabularies beside the repository.
const realVocabularies = "../../../shared/data/tokenizers/"

// BenchmarkRead reads a tokenizer.json of each kind at its real size: BERT's 30,522 tokens, CLIP's 49,408 with their
// merges, and 250,000 of Unigram, which are CLIP's alone and after each other.
func BenchmarkRead(b *testing.B) {
	clip := filepath.Join(realVocabularies, "clip_bpe_simple_vocab_16e6.txt.gz")
	if _, err := os.Stat(clip); err != nil {
		b.Skipf("%v: the vocabularies are not in the repository", err)
	}
	tok := check.Get(Load(clip, TemplateFile))(b)
	for _, x := range []struct {
		name string
		text []byte
	}{
		{"BERT", check.Get(os.ReadFile(filepath.Join(realVocabularies, "bert-base-uncased_tokenizer.json")))(b)},
		{"CLIP", check.Get(tok.JSON())(b)},
		{"Unigram", largeUnigram(b, tok.Tokens(), 250000)},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(x.text)))
			for b.Loop() {
				check.Get(Parse(x.text))(b)
			}
		})
	}
}

// largeUnigram is a tokenizer.json of n tokens: those given, and pairs of them.
func largeUnigram(t testing.TB, tokens []string, n int) []byte {
	f, vocab, seen := unigramFile{Type: Unigram, Unk: new(int32)}, []scoredText{{"<unk>", 0}, {"<pad>", 0}}, map[string]bool{}
	for i := 0; len(vocab) < n; i++ {
		s := tokens[i%len(tokens)]
		if turn := i / len(tokens); turn > 0 {
			s = spaceMark + s + tokens[(i*7919*turn)%len(tokens)]
		}
		if !seen[s] {
			seen[s] = true
			vocab = append(vocab, scoredText{s, -math.Log(float64(i + 2))})
		}
	}
	f.Vocab = vocab
	var file jsonFile
	check.OK(t, file.set(nil, map[string]any{"type": "Metaspace", "replacement": spaceMark, "prepend_scheme": "always"}, f))
	return check.Get(json.Marshal(file))(t)
}

// TestModelVocabulary: errors of a vocabulary name key, token, value and place.
func TestModelVocabulary(t *testing.T) {
	for text, want := range map[string]string{
		`{"model": {"vocab": {"a": 1.5}}}`:                                 `model.vocab: the id of "a" must be a whole number (got 1.5 at byte 27)`,
		`{"model": {"vocab": {"a": 4294967296}}}`:                          `the id of "a" must be a whole number`,
		`{"model": {"vocab": {"a": 1, "\u0061": 2}}}`:                      `key "a" is there twice`,
		`{"model": {"vocab": {"a": 1`:                                      "the text ends at byte 27",
		`{"model": {"type": "Unigram", "vocab": {"a": 1}}}`:                "model.vocab of Unigram must be a list",
		`{"model": {"type": "BPE", "vocab": [["a", 1]]}}`:                  "model.vocab of BPE must be an object",
		`{"model": {"type": "Unigram", "vocab": [["a", 1], ["b"]]}}`:       "model.vocab: element 1 must be a token and its score",
		`{"model": {"type": "Unigram", "vocab": [["a", "1"]]}}`:            "model.vocab: element 0 must be a token and its score",
		`{"model": {"type": "Unigram", "vocab": [["a", 1, 2]]}}`:           "model.vocab: element 0 must be a token and its score",
		`{"model": {"type": "Unigram", "vocab": [["a", 1e999]]}}`:          "model.vocab: element 0: the score 1e999 is out of range",
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": "a b"}}`:   "model.merges must be a list",
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}}`:   `merge 0: "a" must be two tokens`,
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}}`: "merge 0 is of 1 tokens: it must be of two",
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [1]}}`:     "merge 0 must be a pair of tokens",
		`{"a": 1, "b": "x"}`: `vocab.json: the id of "b" must be a whole number (got "x"`,
	} {
		check.Fails(Parse([]byte(text)))(t, "tokenizer: ", want)
	}
}

// TestBareTemplates: nothing stands around a text, the unknown token is there or left out, and what is stored is read back
// so; a text may be without any token, and a vocabulary without one to pad with.
func TestBareTemplates(t *testing.T) {
	const text = `{"pre_tokenizer": {"type": "Whitespace"}, "post_processor": {"type": "BertProcessing", "sep": ["c", 2], "cls": ["b", 1]},
		"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "b": 1, "c": 2, "dog": 3}}}`
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	check.OK(t, os.WriteFile(path, []byte(text), 0o666))
	check.Fails(Load(path, TemplateFile))(t, "no token to pad with")
	for template, want := range map[string][]int32{TemplateBare: {3, 0, 3}, TemplateKnown: {3, 3}} {
		tok := check.Get(Load(path, template))(t)
		b := check.Get(tok.JSON())(t)
		for _, tok := range []*Tokenizer{tok, check.Get(Parse(b))(t)} {
			if got := tok.Encode("dog x dog", 0); !slices.Equal(got, want) || tok.Around() != 0 {
				t.Errorf("%s: %v, want %v", template, got, want)
			}
			if got := tok.Encode("dog x dog", 2); len(got) > 2 || len(tok.Encode("", 5)) > 0 {
				t.Errorf("%s: cut to %v", template, got)
			}
			if tok.KnownOnly() != (template == TemplateKnown) {
				t.Errorf("%s: KnownOnly is %t", template, tok.KnownOnly())
			}
		}
		if b := check.Get(tok.Portable())(t); bytes.Contains(b, []byte("known_only")) {
			t.Errorf("%s: other programs get %s", template, b)
		}
	}
	check.Fails(Load(path, "naked"))(t, `no template "naked": the templates are albef, file, bare, known`)
}
