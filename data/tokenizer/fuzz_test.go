package tokenizer

import (
	"os"
	"path/filepath"
	"testing"
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
		for _, tok := range toks {
			checkEncoding(t, tok, s, n)
			if tok.Template() == TemplateALBEF && tok.Encode(s, n)[0] != tok.ClsID() {
				t.Fatalf("%q, %d: does not begin with [CLS]", s, n)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/vocab.txt", "testdata/cased.json"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, k := range kindFiles {
		if filepath.Ext(k[1]) == ".json" && k[0] != "unigram" {
			b, err := os.ReadFile(filepath.Join("testdata/kinds", k[1]))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte(`{"model": {"vocab": {"a": 4294967296}}}`))
	f.Add([]byte(`{"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<pad>", -1], ["a", -2e308]]}}`))
	f.Add([]byte(`{"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a*)*"}, "behavior": "Isolated"}, "model": {"vocab": {"[PAD]": 0}, "merges": []}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if tok, err := Parse(b); err == nil {
			same(t, tok)
		}
	})
}

func FuzzSentencePiece(f *testing.F) {
	f.Add(gunzip(f, "testdata/kinds/bytes/spiece.model.gz"), "SiglipTokenizer")
	f.Add([]byte("\n\x03\n\x01a"), "")
	f.Fuzz(func(t *testing.T, b []byte, class string) {
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
		for _, read := range []func() (*jsonFile, error){
			func() (*jsonFile, error) { return parseVocabAndMerges(vocab, merges, folderConfig{}) },
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
	m, err := readSentencePiece(gunzip(f, "testdata/kinds/siglip/spiece.model.gz"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{4, 0, 0, 0, 0, 1, 0, 0, 'a', 0}, "a")
	f.Add(m.charsmap[:len(m.charsmap)/2], "\u00c9\uff21")
	f.Fuzz(func(t *testing.T, b []byte, s string) {
		m, err := parseCharsmap(b)
		if err != nil {
			return
		}
		m.longest(s)
		m.clusters(s)
	})
}
