package tokenizer

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/filetest"
)

// folder writes files below a new folder and returns it.
func folder(t *testing.T, list map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range list {
		filetest.Write(t, filepath.Join(dir, name), text)
	}
	return dir
}

// tokensOf are the tokens of a text by the tokenizer of a folder, without what stands around it.
func tokensOf(t *testing.T, dir, text string) []string {
	t.Helper()
	tok, err := Load(dir, TemplateFile)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, id := range tok.Encode(text, 0) {
		list = append(list, tok.Token(id))
	}
	begin, end := tok.Ends()
	return list[begin : len(list)-end]
}

const tinyVocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ndog\nDog\n"

// TestCasedFolder: special_tokens_map.json names tokens and takes nothing back of what tokenizer_config.json says.
func TestCasedFolder(t *testing.T) {
	dir := folder(t, map[string]string{
		"vocab.txt": tinyVocab, "tokenizer_config.json": `{"do_lower_case": false}`, "special_tokens_map.json": `{"unk_token": "[UNK]", "pad_token": "[PAD]"}`,
	})
	if got := tokensOf(t, dir, "Dog dog"); !slices.Equal(got, []string{"Dog", "dog"}) {
		t.Errorf("%q", got)
	}
	dir = folder(t, map[string]string{
		"vocab.txt": "<none>\n" + tinyVocab, "tokenizer_config.json": `{"tokenizer_class": "BertTokenizer"}`, "special_tokens_map.json": `{"unk_token": "<none>", "pad_token": "[SEP]"}`,
	})
	tok, err := Load(dir, TemplateFile)
	if err != nil {
		t.Fatal(err)
	}
	if tok.UnkID() != 0 || tok.PadID() != 4 {
		t.Errorf("unknown %d, padding %d", tok.UnkID(), tok.PadID())
	}
}

// TestAddedBesides: tokens that the folder adds to its vocabulary are tokens of texts, as transformers 5.24 has them.
func TestAddedBesides(t *testing.T) {
	want := []string{"dog", "[E1]", "dog", "[UNK]", "x y", "dog"}
	const text = "dog[E1] dog e1 x ydog"
	dir := folder(t, map[string]string{"vocab.txt": tinyVocab, "tokenizer_config.json": `{"added_tokens_decoder": {
		"8": {"content": "x y", "lstrip": false, "rstrip": false, "single_word": false, "normalized": true, "special": false},
		"7": {"content": "[E1]", "lstrip": false, "rstrip": false, "single_word": false, "normalized": false, "special": true},
		"4": {"content": "[MASK]", "normalized": false, "special": true}}}`})
	if got := tokensOf(t, dir, text); !slices.Equal(got, want) {
		t.Errorf("added_tokens_decoder: %q", got)
	}
	dir = folder(t, map[string]string{"vocab.txt": tinyVocab, "added_tokens.json": `{"[E1]": 7, "x y": 8}`})
	if got := tokensOf(t, dir, text); !slices.Equal(got, want) {
		t.Errorf("added_tokens.json: %q", got)
	}
	for name, text := range map[string]string{"added_tokens.json": `{"a": 7, "b": 7}`, "tokenizer_config.json": `{"added_tokens_decoder": {"5": {"content": "cat"}}}`} {
		if _, err := Load(folder(t, map[string]string{"vocab.txt": tinyVocab, name: text}), TemplateFile); err == nil || !strings.Contains(err.Error(), "belongs to") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusedFolders: what would give other ids than the original.
func TestRefusedFolders(t *testing.T) {
	spiece := string(gunzip(t, "testdata/kinds/siglip/spiece.model.gz"))
	bert := filetest.Read(t, "testdata/kinds/bert/tokenizer.json")
	left := strings.Replace(string(bert), `"truncation":null`, `"truncation":{"direction":"Left","max_length":8,"strategy":"LongestFirst","stride":0}`, 1)
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"vocab.txt": tinyVocab, "tokenizer_config.json": `{"truncation_side": "left"}`}, "truncation_side must be right (got left)"},
		{map[string]string{"tokenizer.json": left}, "truncation.direction must be Right (got Left)"},
		{map[string]string{"sentencepiece.bpe.model": spiece}, "other numbers in XLM-RoBERTa"},
		{map[string]string{"sentencepiece.bpe.model": spiece, "tokenizer_config.json": `{"tokenizer_class": "XLMRobertaTokenizer"}`}, "a XLMRobertaTokenizer may number"},
		{map[string]string{"spiece.model": spiece, "tokenizer_config.json": `{"tokenizer_class": "AlbertTokenizer"}`}, "a AlbertTokenizer may number"},
	} {
		if _, err := Load(folder(t, c.files), TemplateFile); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
	for _, class := range []string{"SiglipTokenizer", "T5TokenizerFast", "PreTrainedTokenizerFast"} {
		if _, err := Load(folder(t, map[string]string{"spiece.model": spiece, "tokenizer_config.json": `{"tokenizer_class": "` + class + `"}`}), TemplateFile); err != nil {
			t.Error(err)
		}
	}
	const piece = `{"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}`
	if _, _, err := template([]byte(`{"type": "Sequence", "processors": [`+piece+`, {"type": "ByteLevel"}, `+piece+`]}`), 0); err == nil || !strings.Contains(err.Error(), "around a text once") {
		t.Errorf("two templates: %v", err)
	}
	if b, e, err := template([]byte(`{"type": "Sequence", "processors": [{"type": "ByteLevel"}, `+piece+`]}`), 0); err != nil || !slices.Equal(b, []int32{2}) || !slices.Equal(e, []int32{3}) {
		t.Errorf("%v %v %v", b, e, err)
	}
}
