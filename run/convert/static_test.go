package convert_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/convert"
)

// staticTokens are a vocabulary of whole words, which begins and ends texts by its post_processor: a table reads neither.
const staticTokens = `{"added_tokens": [], "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
	"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
	"model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "red": 4, "square": 5, "blue": 6}}}`

// staticWords are the ids of texts by that vocabulary.
var staticWords = [][]int{{3, 4, 5}, {4}, {3, 3, 3, 3, 3, 3, 3, 3}, {}, {6, 0, 0, 3, 4, 5}}

// staticFolder is a table of tokens in a folder; inner is where its files lie in it.
func staticFolder(t *testing.T, inner string, tensors []safetensors.Tensor, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	check.OK(t, os.MkdirAll(filepath.Join(folder, inner), 0o777))
	filetest.Write(t, filepath.Join(folder, inner, "tokenizer.json"), staticTokens)
	for name, text := range files {
		filetest.Write(t, filepath.Join(folder, name), text)
	}
	f := check.Get(os.Create(filepath.Join(folder, inner, "model.safetensors")))(t)
	check.OK(t, safetensors.Write(f, tensors, nil))
	check.OK(t, f.Close())
	return folder
}

// TestStatic: a vector is the mean of the rows of a table, by plain loops, for sentence-transformers with unknown tokens and
// for model2vec without them, with its mapping, weights and norm; of the weights, of the run of import, and of its export.
func TestStatic(t *testing.T) {
	const width = 3
	row := func(i int) (x []float32) {
		for c := range width {
			x = append(x, float32(math.Sin(float64(7*i+3*c+1))))
		}
		return x
	}
	table := func(n int) (x []float32) {
		for i := range n {
			x = append(x, row(i)...)
		}
		return x
	}
	mapping, factors := []int64{1, 0, 0, 1, 0, 1, 1}, []float32{1, 2, 3, 0.5, -1, 0.25, 4}
	module := func(path string) string {
		return fmt.Sprintf(`[{"idx": 0, "name": "0", "path": %q, "type": "sentence_transformers.models.StaticEmbedding"}]`, path)
	}
	for name, c := range map[string]struct {
		folder string
		row    func(id int) []float32
		known  bool // unknown tokens are left out
		unit   bool
	}{
		"sentence-transformers": {folder: staticFolder(t, "0_StaticEmbedding", []safetensors.Tensor{{Name: "embedding.weight", Shape: []int{7, width}, Data: table(7)}},
			map[string]string{"modules.json": module("0_StaticEmbedding")}), row: row},
		"model2vec": {folder: staticFolder(t, ".", []safetensors.Tensor{{Name: "embeddings", Shape: []int{7, width}, Data: table(7)}},
			map[string]string{"config.json": `{"model_type": "model2vec", "normalize": true, "max_length": 64}`}), row: row, known: true, unit: true},
		"mapping": {folder: staticFolder(t, ".", []safetensors.Tensor{{Name: "embeddings", Shape: []int{2, width}, Data: table(2)},
			{Name: "mapping", Shape: []int{7}, Data: mapping}, {Name: "weights", Shape: []int{7}, Data: factors}},
			map[string]string{"config.json": `{"model_type": "model2vec"}`, "modules.json": module(".")}), known: true, row: func(id int) (x []float32) {
			for _, v := range row(int(mapping[id])) {
				x = append(x, v*factors[id])
			}
			return x
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := make([]float32, len(texts)*width)
			for i, ids := range staticWords {
				n, length := 0, 0.
				for _, id := range ids {
					if id > 0 || !c.known {
						n++
						for j, v := range c.row(id) {
							want[i*width+j] += v
						}
					}
				}
				for j := range width {
					want[i*width+j] /= float32(max(n, 1))
					length += float64(want[i*width+j]) * float64(want[i*width+j])
				}
				for j := range width {
					if c.unit && length > 0 {
						want[i*width+j] /= float32(math.Sqrt(length))
					}
				}
			}
			got, dim := rowsOf(t, c.folder)
			if dim != width {
				t.Fatal(dim)
			}
			near(t, "weights", got, want)
			dir, out := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "st")
			check.Get(convert.Import(t.Context(), convert.ImportOptions{From: c.folder, Out: dir}))(t)
			got, _ = rowsOf(t, dir)
			near(t, "run", got, want)
			r := check.Get(run.Open(dir, run.OpenOptions{}))(t)
			defer r.Close()
			check.Get(convert.Export(r, export.Options{To: export.Sentence, Out: out}))(t)
			if got, _ = rowsOf(t, out); c.known { // its StaticEmbedding averages unknown tokens
				got, want = got[:4*width], want[:4*width]
			}
			near(t, "export", got, want)
		})
	}
}

// TestStaticRefused: tables that do not fit are one line.
func TestStaticRefused(t *testing.T) {
	table := safetensors.Tensor{Name: "embeddings", Shape: []int{2, 3}, Data: make([]float32, 6)}
	config := map[string]string{"config.json": `{"model_type": "model2vec"}`}
	for want, tensors := range map[string][]safetensors.Tensor{
		`"mapping" has the row 2, and "embeddings" has 2`:        {table, {Name: "mapping", Shape: []int{7}, Data: []int64{0, 1, 0, 1, 2, 0, 0}}},
		"want a weight for each of 7 tokens":                     {table, {Name: "mapping", Shape: []int{7}, Data: make([]int64, 7)}, {Name: "weights", Shape: []int{6}, Data: make([]float32, 6)}},
		"has 7 tokens, and text/embeddings/word/weight in":       {table},
		`"mapping" has numbers of type F32, and I64, I32 and I8`: {table, {Name: "mapping", Shape: []int{7}, Data: make([]float32, 7)}},
	} {
		folder := staticFolder(t, ".", tensors, config)
		_, err := convert.Import(t.Context(), convert.ImportOptions{From: folder, Out: filepath.Join(t.TempDir(), "run")})
		check.Error(t, err, want)
	}
	folder := staticFolder(t, ".", []safetensors.Tensor{table}, map[string]string{"config.json": `{"model_type": "model2vec", "max_length": [3]}`})
	check.Fails(convert.Open(folder, run.OpenOptions{}))(t, "max_length", "want a number")
}
