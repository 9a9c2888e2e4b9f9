package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/filetest"
)

// shared is a folder of real data beside the repository; tests that need it
// skip without.
const shared = "../../../shared/data"

// goldens are encodings by Hugging Face tokenizers 0.23.3 (made by
// tools/goldens/tokenizer.py).
type goldens struct {
	Texts              []string
	Small, Cased, Bert [][]int32
}

func readGoldens(t *testing.T) goldens {
	t.Helper()
	var g goldens
	b := filetest.Read(t, "testdata/goldens.json")
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func compare(t *testing.T, path string, texts []string, want [][]int32) {
	t.Helper()
	tok, err := Load(path, TemplateALBEF)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) != len(texts) {
		t.Fatalf("%d encodings of %d texts", len(want), len(texts))
	}
	for i, s := range texts {
		if got := tok.Encode(s, 0); !slices.Equal(got, want[i]) {
			t.Errorf("%s: %q:\n got %v\nwant %v", path, s, got, want[i])
		}
	}
}

func TestEncodeLikeHuggingFace(t *testing.T) {
	g := readGoldens(t)
	compare(t, "testdata/vocab.txt", g.Texts, g.Small)
	compare(t, "testdata/cased.json", g.Texts, g.Cased)
}

func TestEncodeLikeBERT(t *testing.T) {
	vocab := filepath.Join(shared, "tokenizers/bert-base-uncased_vocab.txt")
	if _, err := os.Stat(vocab); err != nil {
		t.Skip("no BERT vocabulary at " + vocab)
	}
	g := readGoldens(t)
	compare(t, vocab, g.Texts, g.Bert)
	compare(t, filepath.Join(shared, "tokenizers/bert-base-uncased_tokenizer.json"), g.Texts, g.Bert)
	a, err := Load(vocab, TemplateALBEF)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Load(filepath.Join(shared, "tokenizers/bert-base-uncased_tokenizer.json"), TemplateALBEF)
	if err != nil {
		t.Fatal(err)
	}
	if !a.Equal(b) || a.Size() != 30522 || a.ClsID() != 101 || a.SepID() != 102 || a.MaskID() != 103 || a.UnkID() != 100 {
		t.Errorf("the two files of one tokenizer differ, or have other ids than BERT's")
	}
}
