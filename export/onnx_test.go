package export_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/export/exporttest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/weights"
	"google.golang.org/protobuf/encoding/protowire"
)

// fields are those of a protocol buffer, by their numbers: []byte, or uint64.
type fields map[protowire.Number][]any

// parsed reads a protocol buffer.
func parsed(t *testing.T, b []byte) fields {
	t.Helper()
	f := fields{}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		var v any
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			v, n = protowire.ConsumeFixed32(b)
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(b)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		f[number], b = append(f[number], v), b[n:]
	}
	return f
}

// text is a field of text.
func (f fields) text(number protowire.Number) string {
	if len(f[number]) == 0 {
		return ""
	}
	return string(f[number][0].([]byte))
}

// stored is a tensor of an ONNX model.
type stored struct {
	shape  []int
	values []float32
}

// onnxModel is what of an ONNX model the tests look at.
type onnxModel struct {
	ops             map[string]int
	inputs, outputs []string
	tensors         map[string]stored
	external        bool
}

// readONNX reads a model, and checks that it is in order: opset 17, names that are known before they are used, tensors of
// as many numbers as their shapes say that all are used.
func readONNX(t *testing.T, path string) onnxModel {
	t.Helper()
	b := check.Get(os.ReadFile(path))(t)
	file := parsed(t, b)
	opset := parsed(t, file[8][0].([]byte))
	if file[1][0] != uint64(8) || opset[2][0] != uint64(17) || opset.text(1) != "" {
		t.Errorf("%s: version %v, opset %v", path, file[1], opset)
	}
	graph := parsed(t, file[7][0].([]byte))
	m := onnxModel{ops: map[string]int{}, tensors: map[string]stored{}}
	known, used := map[string]bool{}, map[string]bool{}
	for _, x := range graph[5] {
		tensor := parsed(t, x.([]byte))
		s := stored{}
		n := 1
		for _, d := range tensor[1] {
			s.shape, n = append(s.shape, int(d.(uint64))), n*int(d.(uint64))
		}
		var raw []byte
		if len(tensor[13]) > 0 {
			m.external = true
			raw = outside(t, filepath.Dir(path), tensor)
		} else {
			raw = tensor[9][0].([]byte)
		}
		size := 4
		if tensor[2][0] == uint64(7) {
			size = 8
		}
		if len(raw) != n*size {
			t.Errorf("%s: %s of shape %v has %d bytes", path, tensor.text(8), s.shape, len(raw))
		}
		if size == 4 {
			for i := range n {
				s.values = append(s.values, math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
			}
		}
		m.tensors[tensor.text(8)], known[tensor.text(8)] = s, true
	}
	for _, x := range graph[11] {
		name := parsed(t, x.([]byte)).text(1)
		m.inputs, known[name] = append(m.inputs, name), true
	}
	for _, x := range graph[1] {
		node := parsed(t, x.([]byte))
		m.ops[node.text(4)]++
		for _, in := range node[1] {
			if !known[string(in.([]byte))] {
				t.Errorf("%s: %s reads %s, which is not there", path, node.text(3), in)
			}
			used[string(in.([]byte))] = true
		}
		for _, out := range node[2] {
			if known[string(out.([]byte))] {
				t.Errorf("%s: %s is there twice", path, out)
			}
			known[string(out.([]byte))] = true
		}
	}
	for _, x := range graph[12] {
		name := parsed(t, x.([]byte)).text(1)
		if m.outputs = append(m.outputs, name); !known[name] {
			t.Errorf("%s: no node makes %s", path, name)
		}
	}
	for name := range m.tensors {
		if !used[name] {
			t.Errorf("%s: nothing reads %s", path, name)
		}
	}
	return m
}

// outside reads the numbers of a tensor from the file beside its model.
func outside(t *testing.T, dir string, tensor fields) []byte {
	t.Helper()
	at := map[string]string{}
	for _, x := range tensor[13] {
		entry := parsed(t, x.([]byte))
		at[entry.text(1)] = entry.text(2)
	}
	all := check.Get(os.ReadFile(filepath.Join(dir, at["location"])))(t)
	offset, err1 := strconv.Atoi(at["offset"])
	length, err2 := strconv.Atoi(at["length"])
	if err1 != nil || err2 != nil || offset+length > len(all) || tensor[14][0] != uint64(1) {
		t.Fatalf("%v of a file of %d bytes", at, len(all))
	}
	return all[offset:][:length]
}

// The models of every style are in order, with weights inside and beside them, and have the numbers of the parameters.
func TestONNX(t *testing.T) {
	for _, c := range exporttest.Cases() {
		x := exporttest.New(t, c)
		for _, o := range []export.Options{{To: export.ONNX}, {To: export.ONNX, External: 300}} {
			w := written(t, x, o)
			texts := []string{"input_ids", "attention_mask"}
			if strings.HasPrefix(c.Name, "siglip") {
				texts = texts[:1] // padding is read like words
			}
			images := []string{"pixel_values"}
			if x.Tokenizer == nil {
				images, texts = []string{"image_features"}, []string{"text_features"}
			}
			features := []string{"image_embeds", "image_pooled"}
			if c.Name == "clip_gssf" || c.Name == "vit_low_rank" {
				features = append(features, "image_folded")
			}
			for name, want := range map[string][2][]string{
				"image": {images, features},
				"text":  {texts, {"text_embeds", "text_pooled"}},
				"dual":  {slices.Concat(images, texts), {"logits", "image_embeds", "text_embeds"}},
			} {
				m := readONNX(t, filepath.Join(w.Path, name+".onnx"))
				if !slices.Equal(m.inputs, want[0]) || !slices.Equal(m.outputs, want[1]) {
					t.Errorf("%s, %s: %v to %v", c.Name, name, m.inputs, m.outputs)
				}
				if m.external != (o.External > 0) {
					t.Errorf("%s, %s: weights beside the model: %t", c.Name, name, m.external)
				}
				for _, p := range x.Params {
					if s, ok := m.tensors[p.Name]; ok && !attended(x, p.Name) && !sameNumbers(p.Name, s, p.Shape, numbers(t, p)) {
						t.Errorf("%s, %s: %s is another", c.Name, name, p.Name)
					}
				}
			}
		}
	}
}

// sameNumbers compares a tensor with a parameter: the matrices of linear layers are transposed.
func sameNumbers(name string, s stored, shape []int, want []float32) bool {
	linear := len(s.shape) == 2 && strings.HasSuffix(name, "/weight") && !strings.Contains(name, "/embeddings/") && !strings.Contains(name, "/relative/")
	if !linear {
		return slices.Equal(s.values, want)
	}
	if !slices.Equal(s.shape, []int{shape[1], shape[0]}) {
		return false
	}
	for i, v := range want {
		if s.values[i%shape[1]*shape[0]+i/shape[1]] != v {
			return false
		}
	}
	return true
}

// attended says whether a parameter makes keys that a metric of attention is folded into.
func attended(x *exporttest.Tiny, name string) bool {
	return x.Config.Model.AttentionMetric.Form != "" && (strings.Contains(name, "/qkv/") || strings.Contains(name, "/kv/"))
}

// Metrics of attention are folded into the layers of keys: rows of keys are W times those of the model, for weights and biases, and nothing
// else is changed.
func TestFoldedAttention(t *testing.T) {
	x := exporttest.New(t, exporttest.Find(t, "clip_attended", "data.clean=none"))
	w := written(t, x, export.Options{To: export.ONNX})
	if len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "model.attention_metric") {
		t.Errorf("notes %v", w.Notes)
	}
	params := map[string][]float32{}
	for _, p := range x.Params {
		params[p.Name] = numbers(t, p)
	}
	m := readONNX(t, filepath.Join(w.Path, "dual.onnx"))
	const width, d = 16, 4 // blocks of 4 channels, two of each of two heads
	for _, at := range []string{"image/blocks/01/attn", "text/layers/00/attention"} {
		metric := params[at+"/gssf/weight"]
		for _, part := range []struct {
			name string
			in   int
		}{{"weight", width}, {"bias", 1}} {
			name := at + "/qkv/" + part.name
			want := slices.Clone(params[name])
			for i := range width {
				for k := range part.in {
					sum := float32(0)
					for j := range d {
						sum += metric[(i/d*d+i%d)*d+j] * params[name][(width+i/d*d+j)*part.in+k]
					}
					want[(width+i)*part.in+k] = sum
				}
			}
			if len(metric) != 4*d*d || !sameNumbers(name, m.tensors[name], []int{3 * width, part.in}, want) && part.in > 1 {
				t.Errorf("%s is another", name)
			}
			if part.in == 1 && !slices.Equal(m.tensors[name].values, want) {
				t.Errorf("%s: got %v, want %v", name, m.tensors[name].values, want)
			}
		}
	}
}

// The keys of cross attention lie before its values, and the metric that all heads share is folded into each of them.
func TestFoldedCrossAttention(t *testing.T) {
	x := exporttest.New(t, exporttest.Find(t, "albef_attended"))
	w := written(t, x, export.Options{To: export.ALBEF})
	m := check.Get(weights.Open(w.Path))(t)
	defer m.Close()
	params, shapes := map[string][]float32{}, map[string][]int{}
	for _, p := range x.Params {
		params[p.Name], shapes[p.Name] = numbers(t, p), p.Shape
	}
	const width, d = 16, 8 // two heads of 8 channels
	at := "text/layers/02/crossattention"
	metric := params[at+"/gssf/weight"]
	if len(metric) != d*d {
		t.Fatalf("a metric of shape %v among %v", shapes[at+"/gssf/weight"], slices.Sorted(maps.Keys(params)))
	}
	for _, part := range []string{"weight", "bias"} {
		name := at + "/kv/" + part
		old := params[name]
		in, want, got := len(old)/(2*width), slices.Clone(old), make([]float32, len(old))
		for i := range width {
			for k := range in {
				sum := float32(0)
				for j := range d {
					sum += metric[i%d*d+j] * old[(i/d*d+j)*in+k]
				}
				want[i*in+k] = sum
			}
		}
		if err := m.Read(name, shapes[name], got); err != nil || !slices.Equal(got, want) || slices.Equal(got, old) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
}

// Captions that are cleaned before the tokenizer are told of, but where ALBEF's own code does that.
func TestCleanIsTold(t *testing.T) {
	for _, c := range []struct {
		tiny, to, clean string
		want            bool
	}{
		{"albef", export.ALBEF, "albef", false}, {"albef", export.ALBEF, "lower", true}, {"albef", export.ONNX, "albef", true}, {"albef", export.ONNX, "none", false},
		{"clip", export.HF, "none", false}, {"clip", export.OpenCLIP, "none", true}, {"clip", export.OpenCLIP, "lower", false}, {"clip", export.OpenCLIP, "albef", true}, // open_clip cleans texts itself
	} {
		w := written(t, exporttest.New(t, exporttest.Find(t, c.tiny, "data.clean="+c.clean)), export.Options{To: c.to})
		if told := strings.Contains(strings.Join(w.Notes, "\n"), fmt.Sprintf("data.clean = %q", c.clean)); told != c.want {
			t.Errorf("%v: notes %q", c, w.Notes)
		}
		if c.to == export.OpenCLIP && c.clean == "lower" {
			b := check.Get(os.ReadFile(filepath.Join(w.Path, "open_clip_config.json")))(t)
			if !regexp.MustCompile(`"tokenizer_kwargs":\s*{\s*"clean":\s*"lower"`).Match(b) {
				t.Errorf("open_clip_config.json does not say how texts are cleaned: %s", b)
			}
		}
	}
}

// A score that is no product of features leaves out the logits, with a note.
func TestONNXWithoutLogits(t *testing.T) {
	x := exporttest.New(t, exporttest.Find(t, "euclid", "eval.score=l2", "data.clean=none"))
	w := written(t, x, export.Options{To: export.ONNX})
	if m := readONNX(t, filepath.Join(w.Path, "dual.onnx")); !slices.Equal(m.outputs, []string{"image_embeds", "text_embeds"}) || len(w.Notes) != 1 {
		t.Errorf("outputs %v, notes %v", m.outputs, w.Notes)
	}
}
