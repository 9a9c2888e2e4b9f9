package tokenizer

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/filetest"
)

const oldVocab = `{"word2idx": {"<pad>": 0, "<start>": 1, "<end>": 2, "<unk>": 3, "a": 4, "dog": 5, "n't": 6, "does": 7, ".": 8, "run": 9},
 "idx2word": {"0": "<pad>", "1": "<start>"}, "idx": 10}`

// TestWordVocabulary: a vocab.json of the old programs gives their ids, and is stored like any other tokenizer.
func TestWordVocabulary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f30k_precomp_vocab.json")
	filetest.Write(t, path, oldVocab)
	tok, err := Load(path, TemplateFile)
	if err != nil {
		t.Fatal(err)
	}
	b, err := tok.JSON()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := Parse(b)
	if err != nil || !stored.Equal(tok) {
		t.Fatalf("stored and read: %v", err)
	}
	for _, tok := range []*Tokenizer{tok, stored} {
		if tok.Kind() != WordLevel || tok.Size() != 10 || tok.PadID() != 0 || tok.PadRow() != 0 || tok.UnkID() != 3 || tok.ClsID() != 1 || tok.SepID() != 2 || tok.MaskID() != -1 || tok.Around() != 2 {
			t.Errorf("%s of %d: pad %d, unk %d, first %d, last %d, mask %d", tok.Kind(), tok.Size(), tok.PadID(), tok.UnkID(), tok.ClsID(), tok.SepID(), tok.MaskID())
		}
		if got, want := tok.Encode("A dog doesn't swim.", 0), []int32{1, 4, 5, 7, 6, 3, 8, 2}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if got, want := tok.Encode("A dog doesn't swim.", 4), []int32{1, 4, 5, 2}; !slices.Equal(got, want) {
			t.Errorf("cut: %v, want %v", got, want)
		}
		if got := tok.Decode([]int32{1, 4, 5, 9, 2, 0}); got != "a dog run" {
			t.Errorf("decoded %q", got)
		}
	}
	if _, err := tok.Portable(); err == nil || !strings.Contains(err.Error(), "words of NLTK") {
		t.Errorf("as a file for others: %v", err)
	}
	if _, err := Load(path, TemplateALBEF); err == nil || !strings.Contains(err.Error(), `set it to "file"`) {
		t.Errorf("with the template albef: %v", err)
	}
	for content, want := range map[string]string{
		strings.Replace(oldVocab, `"<unk>"`, `"[UNK]"`, 1):        "it lacks <unk>",
		strings.Replace(oldVocab, `"dog": 5`, `"dog": 4`, 1):      "id 4 belongs to",
		strings.Replace(oldVocab, `"dog": 5`, `"dog": 500000`, 1): "has id 500000",
		strings.Replace(oldVocab, `"dog": 5`, `"a": 5`, 1):        `"a"`,
	} {
		filetest.Write(t, path, content)
		if _, err := Load(path, TemplateFile); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestLearnWords: words by count, then by letters, rare ones left out.
func TestLearnWords(t *testing.T) {
	texts := []string{"A dog runs.", "a cat runs.", "a dog's cat."}
	tok, err := LearnWords(slices.Values(texts), 100, 2)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"<pad>", "<start>", "<end>", "<unk>", ".", "a", "cat", "dog", "runs"}; !slices.Equal(tok.Tokens(), want) {
		t.Errorf("got %q, want %q", tok.Tokens(), want)
	}
	if tok, err = LearnWords(slices.Values(texts), 6, 1); err != nil || !slices.Equal(tok.Tokens()[4:], []string{".", "a"}) {
		t.Errorf("the first two: %v", err)
	}
	if _, err := LearnWords(slices.Values(texts), 100, 9); err == nil || !strings.Contains(err.Error(), "no word occurs 9 times") {
		t.Error(err)
	}
	if _, err := LearnWords(slices.Values(texts), 4, 1); err == nil || !strings.Contains(err.Error(), "at least 5") {
		t.Error(err)
	}
}
