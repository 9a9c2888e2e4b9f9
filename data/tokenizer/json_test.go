package tokenizer

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
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
