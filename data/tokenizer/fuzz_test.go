package tokenizer

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

// same fails where a tokenizer is not read back as it is stored, or does not encode.
func same(t *testing.T, tok *Tokenizer) {
	t.Helper()
	out, err := tok.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(out)
	if err != nil || !again.Equal(tok) {
		t.Fatalf("differs after writing and reading: %v", err)
	}
	checkEncoding(t, tok, "a brown dog, \u00e9\u72d7 </s>", 9)
}

// checkEncoding fails where ids are too many or none of the vocabulary.
func checkEncoding(t *testing.T, tok *Tokenizer, s string, n int) {
	t.Helper()
	ids := tok.Encode(s, n)
	if n > 0 && len(ids) > n {
		t.Fatalf("%q, %d: %v", s, n, ids)
	}
	for _, id := range ids {
		if id < 0 || int(id) >= tok.Size() {
			t.Fatalf("%q: id %d is out of range", s, id)
		}
	}
	tok.Decode(ids)
}

func FuzzEncode(f *testing.F) {
	toks := []*Tokenizer{load(f, "testdata/vocab.txt"), load(f, "testdata/cased.json")}
	for _, k := range kindFiles {
		toks = append(toks, loadKind(f, k[0], k[1]))
	}
	f.Add("a brown dog", 5)
	f.Add("\xff\xfe\u0301\u4e00##", 0)
	f.Add(" <mask> </s>\u2581<|endoftext|>'s", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		defer budgettest.Within(t, len(s))()
		for _, tok := range toks {
			checkEncoding(t, tok, s, n)
			if tok.Template() == TemplateALBEF && tok.Encode(s, n)[0] != tok.ClsID() {
				t.Fatalf("%q, %d: does not begin with [CLS]", s, n)
			}
		}
	})
}

// smallFiles are a tokenizer.json of each kind, with steps of all types.
var smallFiles = []string{
	`{"added_tokens": [{"id": 1, "content": "</s>", "special": true, "lstrip": true, "rstrip": true}, {"id": 4, "content": "New", "normalized": true, "single_word": true}],
	"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "Strip", "strip_left": true}, {"type": "Prepend", "prepend": "x"}, {"type": "Precompiled", "precompiled_charsmap": "CAAAAAAAAAAAAQAAYQA="}]},
	"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
	"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}], "special_tokens": {"</s>": {"ids": [1]}}},
	"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": [["<unk>", 0], ["</s>", 0], ["a", -1.5], ["\u2581a", -2]]}}`,
	`{"padding": {"strategy": {"Fixed": 64}, "direction": "Right", "pad_id": 1, "pad_token": "<pad>"},
	"normalizer": {"type": "Replace", "pattern": {"Regex": "\\s+[^\\d]"}, "content": " "},
	"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"}, {"type": "Digits"}, {"type": "ByteLevel", "add_prefix_space": true}]},
	"post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]},
	"model": {"type": "BPE", "end_of_word_suffix": "</w>", "unk_token": "<s>", "fuse_unk": true, "vocab": {"<s>": 0, "<pad>": 1, "</s>": 2, "a": 3, "b": 4, "ab": 5, "b</w>": 6}, "merges": ["a b"]}}`,
	`{"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "Punctuation", "behavior": "Contiguous"}]},
	"post_processor": {"type": "BertProcessing", "sep": ["c", 2], "cls": ["b", 1]},
	"model": {"type": "WordPiece", "unk_token": "b", "vocab": {"[PAD]": 0, "b": 1, "c": 2, "##c": 3}}}`,
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/vocab.txt", "testdata/cased.json"} {
		b := filetest.Read(f, name)
		f.Add(b)
	}
	for _, s := range smallFiles { // large seeds are slow to make smaller
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"model": {"vocab": {"a": 4294967296}}}`))
	f.Add([]byte(`{"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<pad>", -1], ["a", -2e308]]}}`))
	f.Add([]byte(`{"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a*)*"}, "behavior": "Isolated"}, "model": {"vocab": {"[PAD]": 0}, "merges": []}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		if tok, err := Parse(b); err == nil {
			same(t, tok)
		}
	})
}

func FuzzSentencePiece(f *testing.F) {
	var model []byte
	for kind, text := range []string{"a", "<unk>", "</s>"} {
		piece := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), text)
		piece = protowire.AppendFixed32(protowire.AppendTag(piece, 2, protowire.Fixed32Type), 0xbf800000)
		piece = protowire.AppendVarint(protowire.AppendTag(piece, 3, protowire.VarintType), uint64(kind+1))
		model = protowire.AppendBytes(protowire.AppendTag(model, 1, protowire.BytesType), piece)
	}
	f.Add(model, "SiglipTokenizer")
	f.Add([]byte("\n\x03\n\x01a"), "")
	f.Fuzz(func(t *testing.T, b []byte, class string) {
		defer budgettest.Within(t, len(b)+len(class))()
		file, err := parseSentencePiece(b, folderConfig{Class: class})
		if err != nil {
			return
		}
		if tok, err := file.build(roles{}); err == nil {
			same(t, tok)
		}
	})
}

func FuzzMerges(f *testing.F) {
	f.Add([]byte(`{"a": 0, "b": 1, "ab": 2, "</s>": 3, "b</w>": 4}`), []byte("#version: 0.2\na b\n"))
	f.Add([]byte(`{}`), []byte(clipHeader+`: 0.2`+"\na b\nab c</w>\n"))
	f.Fuzz(func(t *testing.T, vocab, merges []byte) {
		defer budgettest.Within(t, len(vocab)+len(merges))()
		for _, read := range []func() (*jsonFile, error){
			func() (*jsonFile, error) {
				f, err := readJSON(vocab)
				if err != nil {
					return nil, err
				}
				return withMerges(f.vocab, merges, folderConfig{})
			},
			func() (*jsonFile, error) { return parseCLIPMerges(merges) },
		} {
			file, err := read()
			if err != nil {
				continue
			}
			if tok, err := file.build(roles{}); err == nil {
				same(t, tok)
			}
		}
	})
}

func FuzzCharsmap(f *testing.F) {
	f.Add([]byte{4, 0, 0, 0, 0, 1, 0, 0, 'a', 0}, "a")
	f.Add(append([]byte{0, 4, 0, 0}, make([]byte, 1100)...), "\u00c9\uff21")
	f.Fuzz(func(t *testing.T, b []byte, s string) {
		defer budgettest.Within(t, len(b)+len(s))()
		m, err := parseCharsmap(b)
		if err != nil {
			return
		}
		m.longest(s, room(s))
		m.clusters(s, room(s))
	})
}

// TestSmallFiles reads the seeds, or the fuzzing would begin with what is refused.
func TestSmallFiles(t *testing.T) {
	for i, s := range smallFiles {
		tok, err := Parse([]byte(s))
		if err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
		same(t, tok)
	}
}

func FuzzWords(f *testing.F) {
	f.Add("Mr. Smith's dogs' can't, gonna -- \"stop\" (here). no!")
	f.Add("'\u00e9' \u2018x\u2019 \x1c.\u00a0\xff")
	f.Fuzz(func(t *testing.T, s string) {
		defer budgettest.Within(t, len(s))()
		for _, w := range nltkWords(nil, s, true) {
			if w == "" || strings.ContainsFunc(w, isPythonSpace) {
				t.Fatalf("%q has the word %q", s, w)
			}
		}
	})
}

func FuzzWordVocab(f *testing.F) {
	f.Add([]byte(oldVocab))
	f.Add([]byte(`{"word2idx": {"<pad>": 3, "<start>": 2, "<end>": 1, "<unk>": 0}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		words, err := readJSON(b)
		if err != nil || words.words == nil {
			return
		}
		file, err := wordFile(words.words)
		if err != nil {
			return
		}
		if tok, err := file.build(roles{}); err == nil {
			same(t, tok)
		}
	})
}
