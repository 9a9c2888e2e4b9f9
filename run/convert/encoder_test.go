package convert_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/convert"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/weights/weightstest"
)

// texts are some of different lengths, of words of the vocabulary of weightstest and of others.
var texts = []string{"a red square", "red", "a a a a a a a a", "", "blue circle above a red square"}

// rowsOf encodes texts by what is at a path.
func rowsOf(t *testing.T, path string, sets ...string) (rows []float32, dim int) {
	t.Helper()
	x := check.Get(convert.Open(path, run.OpenOptions{Set: sets}))(t)
	defer x.Close()
	e := check.Get(embed.NewEncoder(x))(t)
	return check.Get(e.Texts(t.Context(), texts))(t), e.Dim()
}

// sentenceFolder is a stored model as a folder of sentence-transformers with modules and files.
func sentenceFolder(t *testing.T, files map[string]string, kinds ...string) string {
	t.Helper()
	folder := weightstest.Stored(t, "bert")
	var list []string
	for i, kind := range append([]string{"Transformer"}, kinds...) {
		path := fmt.Sprintf("%d_%s", i, kind)
		if i == 0 {
			path = ""
		}
		list = append(list, fmt.Sprintf(`{"idx": %d, "name": "%d", "path": %q, "type": "sentence_transformers.models.%s"}`, i, i, path, kind))
	}
	filetest.Write(t, filepath.Join(folder, "modules.json"), "["+strings.Join(list, ", ")+"]")
	for name, text := range files {
		check.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o777))
		filetest.Write(t, filepath.Join(folder, name), text)
	}
	return folder
}

// denseFiles writes a Dense module and returns its layer: weight (out, in) and bias.
func denseFiles(t *testing.T, folder, activation string, in, out int) (weight, bias []float32) {
	t.Helper()
	for i := range in * out {
		weight = append(weight, float32(math.Sin(float64(i*i+3*i))))
	}
	for i := range out {
		bias = append(bias, float32(math.Cos(float64(5*i))))
	}
	check.OK(t, os.MkdirAll(folder, 0o777))
	filetest.Write(t, filepath.Join(folder, "config.json"), fmt.Sprintf(`{"in_features": %d, "out_features": %d, "bias": true, "activation_function": %q}`, in, out, activation))
	f := check.Get(os.Create(filepath.Join(folder, "model.safetensors")))(t)
	check.OK(t, safetensors.Write(f, []safetensors.Tensor{{Name: "linear.bias", Shape: []int{out}, Data: bias}, {Name: "linear.weight", Shape: []int{out, in}, Data: weight}}, nil))
	check.OK(t, f.Close())
	return weight, bias
}

// near compares rows.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i, v := range got {
		if !(math.Abs(float64(v-want[i])) < 2e-6) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, v, want[i])
		}
	}
}

// TestSentenceFolder: an encoder is its pool, its Dense modules and its norm, by plain loops over the states of all tokens,
// and so is the run that import makes of it, and the folder that export writes of that.
func TestSentenceFolder(t *testing.T) {
	const width, out = 8, 3
	for mode, key := range map[string]string{"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens", "lasttoken": "pooling_mode_lasttoken",
		"weightedmean": "pooling_mode_weightedmean_tokens"} {
		t.Run(mode, func(t *testing.T) {
			pool := map[string]string{"1_Pooling/config.json": fmt.Sprintf(`{%q: true}`, key)}
			pooled, dim := rowsOf(t, sentenceFolder(t, pool, "Pooling"))
			if dim != width {
				t.Fatal(dim)
			}
			if unit, _ := rowsOf(t, sentenceFolder(t, pool, "Pooling", "Normalize")); len(unit) != len(pooled) {
				t.Fatal(len(unit))
			} else {
				for i := range texts {
					length := 0.
					for _, v := range pooled[i*width : (i+1)*width] {
						length += float64(v) * float64(v)
					}
					for c, v := range pooled[i*width : (i+1)*width] {
						near(t, "norm", unit[i*width+c:][:1], []float32{float32(float64(v) / math.Sqrt(length))})
					}
				}
			}
			folder := sentenceFolder(t, map[string]string{"1_Pooling/config.json": pool["1_Pooling/config.json"],
				"sentence_bert_config.json":         `{"max_seq_length": 5, "do_lower_case": true}`,
				"config_sentence_transformers.json": `{"prompts": {"query": "blue blue ", "document": ""}, "default_prompt_name": null}`}, "Pooling", "Dense")
			weight, bias := denseFiles(t, filepath.Join(folder, "2_Dense"), "torch.nn.modules.activation.Tanh", width, out)
			short, _ := rowsOf(t, sentenceFolder(t, map[string]string{"1_Pooling/config.json": pool["1_Pooling/config.json"],
				"sentence_bert_config.json": `{"max_seq_length": 5}`}, "Pooling"))
			var want []float32
			for i := range texts {
				for o := range out {
					sum := float64(bias[o])
					for c := range width {
						sum += float64(weight[o*width+c]) * float64(short[i*width+c])
					}
					want = append(want, float32(math.Tanh(sum)))
				}
			}
			got, dim := rowsOf(t, folder)
			if dim != out {
				t.Fatal(dim)
			}
			near(t, "dense", got, want)
			asked, _ := rowsOf(t, folder, "data.prompt=query")
			if slices.Equal(asked, got) {
				t.Error("a prompt changes nothing")
			}
			dir := filepath.Join(t.TempDir(), "run")
			check.Get(convert.Import(t.Context(), convert.ImportOptions{From: folder, Out: dir}))(t)
			again, _ := rowsOf(t, dir)
			near(t, "run", again, got)
			x := check.Get(run.Open(dir, run.OpenOptions{}))(t)
			defer x.Close()
			written := filepath.Join(t.TempDir(), "st")
			w := check.Get(convert.Export(x, export.Options{To: export.Sentence, Out: written}))(t)
			if w.Class != "SentenceTransformer" || !slices.Contains(w.Files, "2_Dense/model.safetensors") {
				t.Errorf("%+v", w)
			}
			again, _ = rowsOf(t, written)
			near(t, "export", again, got)
			again, _ = rowsOf(t, written, "data.prompt=query")
			near(t, "prompt of an export", again, asked)
		})
	}
}

// TestEncoderRefused: what an encoder is not read with is one line that names file and value.
func TestEncoderRefused(t *testing.T) {
	const mean = `{"pooling_mode_mean_tokens": true}`
	for _, c := range []struct {
		files map[string]string
		kinds []string
		sets  []string
		want  string
	}{
		{map[string]string{"1_Pooling/config.json": mean}, []string{"Pooling", "LSTM"}, nil, "modules.json has the module sentence_transformers.models.LSTM (2_LSTM): Transformer, Pooling, Dense, Dropout and Normalize are read"},
		{map[string]string{"1_Pooling/config.json": mean}, []string{"Pooling", "Normalize", "Dense"}, nil, "modules.json has Dense (3_Dense) behind Normalize"},
		{map[string]string{"1_Pooling/config.json": `{"pooling_mode_mean_sqrt_len_tokens": true}`}, []string{"Pooling"}, nil, "1_Pooling/config.json pools by mean_sqrt_len: one of cls, mean, max, lasttoken and weightedmean is read"},
		{map[string]string{"1_Pooling/config.json": `{"pooling_mode": ["cls", "mean"]}`}, []string{"Pooling"}, nil, "1_Pooling/config.json pools by cls and mean: one of"},
		{map[string]string{"1_Pooling/config.json": mean}, []string{"Pooling", "Dense"}, nil, "2_Dense/config.json: file does not exist: download the folder as a whole"},
		{map[string]string{"1_Pooling/config.json": `{"pooling_mode_mean_tokens": true, "include_prompt": false}`, "config_sentence_transformers.json": `{"prompts": {"query": "a "}}`}, []string{"Pooling"}, nil, "leaves prompts out of the pool (include_prompt = false)"},
		{map[string]string{"config_sentence_transformers.json": `{"prompts": {"query": "a "}, "default_prompt_name": "document"}`}, nil, nil, `default_prompt_name is "document" in config_sentence_transformers.json, which has no such prompt`},
		{map[string]string{"config_sentence_transformers.json": `{"prompts": {"query": "a ", "document": ""}}`}, nil, []string{"data.prompt=querry"}, `data.prompt: is no prompt of the encoder: use "document", "query", or leave it empty (got "querry")`},
		{nil, nil, []string{"data.prompt=query"}, "data.prompt: names a prompt, and the encoder has none: leave it empty"},
		{nil, nil, []string{"data.tokens=7"}, "data.tokens: must be at most model.text.positions (got 7); raise model.text.positions or lower data.tokens"},
		{map[string]string{"vocab.txt": strings.Repeat("w\n", 30)}, nil, nil, "data.vocab: "},
		{map[string]string{"vocab.txt": longVocabulary(99)}, nil, nil, "has 99 tokens, and text/embeddings/word/weight in "},
	} {
		folder := sentenceFolder(t, c.files, c.kinds...)
		if _, err := convert.Open(folder, run.OpenOptions{Set: c.sets}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: %v\nwant %s", c.files, c.kinds, err, c.want)
		}
	}
}

// TestImageEncoders: towers of images alone become runs, whose rows are those of the weights themselves, and texts are
// refused.
func TestImageEncoders(t *testing.T) {
	picture := transform.NewImage(20, 14)
	for i := range picture.Pix {
		picture.Pix[i] = byte(i * i)
	}
	pictured := func(x *run.Trained) []float32 {
		t.Helper()
		defer x.Close()
		e := check.Get(embed.NewEncoder(x))(t)
		if _, err := e.Texts(t.Context(), texts); err == nil || !strings.Contains(err.Error(), `model.system "image_encoder" has no texts: encode images`) {
			t.Error(err)
		}
		return check.Get(e.Images(t.Context(), 3, func(int) (*transform.Image, error) { return picture, nil }))(t)
	}
	for _, name := range []string{"vit", "dinov2", "resnet_hf", "timm"} {
		from, dir := weightstest.Stored(t, name), filepath.Join(t.TempDir(), "run")
		r := check.Get(convert.Import(t.Context(), convert.ImportOptions{From: from, Out: dir}))(t)
		if r.Side != "image" || len(r.Fresh)+len(r.Unread) > 0 {
			t.Errorf("%s: %+v", name, r)
		}
		want := pictured(check.Get(convert.Open(from, run.OpenOptions{}))(t))
		if n := len(want) / 3; n < 4 || slices.Equal(want[:n], make([]float32, n)) || !slices.Equal(want[:n], want[n:2*n]) {
			t.Errorf("%s: %v", name, want)
		}
		near(t, name, pictured(check.Get(convert.Open(dir, run.OpenOptions{}))(t)), want)
	}
}

// TestTokenTypes: weights with another number of types of tokens have the vectors of those with two, of which texts alone
// have the first.
func TestTokenTypes(t *testing.T) {
	want, _ := rowsOf(t, weightstest.Stored(t, "bert"))
	for _, n := range []int{1, 3} {
		folder := weightstest.Stored(t, "bert")
		path := filepath.Join(folder, "model.safetensors")
		f := check.Get(safetensors.Open(path))(t)
		var list []safetensors.Tensor
		for _, x := range f.Tensors() {
			v, shape := check.Get(f.Float32(x.Name))(t), x.Shape
			if strings.HasSuffix(x.Name, "token_type_embeddings.weight") {
				v, shape = append(v[:8], make([]float32, 8*(n-1))...), []int{n, 8}
			}
			list = append(list, safetensors.Tensor{Name: x.Name, Shape: shape, Data: v})
		}
		check.OK(t, f.Close())
		out := check.Get(os.Create(path))(t)
		check.OK(t, safetensors.Write(out, list, nil))
		check.OK(t, out.Close())
		config := filepath.Join(folder, "config.json")
		text := string(check.Get(os.ReadFile(config))(t))
		check.Fails(convert.Open(folder, run.OpenOptions{}))(t, fmt.Sprintf("type_vocab_size = 2, and the tensors have %d", n))
		filetest.Write(t, config, strings.Replace(text, `"type_vocab_size": 2`, fmt.Sprintf(`"type_vocab_size": %d`, n), 1))
		got, _ := rowsOf(t, folder)
		near(t, fmt.Sprint(n, " types"), got, want)
		check.Get(convert.Import(t.Context(), convert.ImportOptions{From: folder, Out: filepath.Join(t.TempDir(), "run")}))(t)
	}
}

// longVocabulary is a vocab.txt of n tokens.
func longVocabulary(n int) string {
	text := "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
	for i := 5; i < n; i++ {
		text += fmt.Sprintf("w%d\n", i)
	}
	return text
}
