package weights

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// write writes a file below a folder.
func write(t testing.TB, folder, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	check.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
	check.OK(t, os.WriteFile(path, b, 0o666))
	return path
}

// stored is a safetensors file of tensors.
func stored(t testing.TB, list ...safetensors.Tensor) []byte {
	t.Helper()
	var b bytes.Buffer
	check.OK(t, safetensors.Write(&b, list, nil))
	return b.Bytes()
}

// raw is a safetensors file of a header as it is, and data.
func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// float is a tensor of counting numbers.
func float(name string, shape ...int) safetensors.Tensor {
	x := make([]float32, count(shape))
	for i := range x {
		x[i] = float32(i)
	}
	return safetensors.Tensor{Name: name, Shape: shape, Data: x}
}

// contents returns all tensors of a model's file, edit may change them.
func contents(t testing.TB, path string, edit func(list []safetensors.Tensor) []safetensors.Tensor) []byte {
	t.Helper()
	f := check.Get(safetensors.Open(path))(t)
	defer f.Close()
	var list []safetensors.Tensor
	for _, info := range f.Tensors() {
		x := check.Get(f.Float32(info.Name))(t)
		list = append(list, safetensors.Tensor{Name: info.Name, Shape: info.Shape, Data: x})
	}
	if edit != nil {
		list = edit(list)
	}
	return stored(t, list...)
}

// A model in shards is that in one file, and so is one whose names have a wrapper's prefix or are old.
func TestShardsAndOldNames(t *testing.T) {
	whole := open1(t, golden("bert"))
	folder := t.TempDir()
	index := map[string]map[string]string{"weight_map": {}}
	for i := range 3 {
		shard := fmt.Sprintf("model-%d-of-3.safetensors", i+1)
		write(t, folder, shard, contents(t, golden("bert"), func(list []safetensors.Tensor) []safetensors.Tensor {
			var part []safetensors.Tensor
			for k, x := range list {
				x.Name = strings.NewReplacer("LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias", "LayerNorm.beta").Replace(x.Name)
				if k%3 == i {
					part = append(part, x)
					index["weight_map"][x.Name] = shard
				}
			}
			return part
		}))
	}
	text := check.Get(json.Marshal(index))(t)
	write(t, folder, "model.safetensors.index.json", text)
	wrapped := func(prefix string) string {
		return write(t, t.TempDir(), "a.safetensors", contents(t, golden("bert"), func(list []safetensors.Tensor) []safetensors.Tensor {
			for i := range list {
				list[i].Name = prefix + list[i].Name
			}
			return list
		}))
	}
	for _, path := range []string{folder, wrapped("module._orig_mod."), wrapped("_orig_mod.module."), wrapped("_orig_mod.")} {
		m := open1(t, path)
		if !slices.Equal(m.Names(), whole.Names()) {
			t.Errorf("%s has %v", path, m.Names())
			continue
		}
		for _, name := range m.Names() {
			if !slices.Equal(values(t, m, name), values(t, whole, name)) {
				t.Errorf("%s of %s differs", name, path)
			}
		}
	}
}

// Shards that do not fit together are told apart.
func TestRefusesShards(t *testing.T) {
	a, b := stored(t, float("a", 2)), stored(t, float("b", 2))
	for want, c := range map[string]struct {
		index string
		files map[string][]byte
	}{
		"names the shard 2.safetensors, which is not beside it":   {`{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}`, map[string][]byte{"1.safetensors": a}},
		`says that tensor "b" is in 1.safetensors, and it is not`: {`{"weight_map": {"a": "1.safetensors", "b": "1.safetensors"}}`, map[string][]byte{"1.safetensors": a}},
		`says that tensor "a" is in 2.safetensors, and it is not`: {`{"weight_map": {"a": "2.safetensors", "b": "1.safetensors"}}`, map[string][]byte{"1.safetensors": a, "2.safetensors": b}},
		`tensor "a" is in `:                                 {`{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}`, map[string][]byte{"1.safetensors": a, "2.safetensors": a}},
		`it has no "weight_map"`:                            {`{"metadata": {}}`, nil},
		"model.safetensors.index.json: unexpected end":      {`{"weight_map": {`, nil},
		"is there twice":                                    {`{"weight_map": {"a": "1.safetensors", "a": "2.safetensors"}}`, nil},
		`is in "../1.safetensors", which is no file beside`: {`{"weight_map": {"a": "../1.safetensors"}}`, nil},
		`is in "/dev/zero", which is no file beside`:        {`{"weight_map": {"a": "/dev/zero"}}`, nil},
		`is in "", which is no file beside`:                 {`{"weight_map": {"a": ""}}`, nil},
		"cannot unmarshal number":                           {`{"weight_map": {"a": 1}}`, nil},
	} {
		folder := t.TempDir()
		write(t, folder, "model.safetensors.index.json", []byte(c.index))
		for name, b := range c.files {
			write(t, folder, name, b)
		}
		check.Fails(OpenFile(folder))(t, want)
	}
	var many strings.Builder
	for i := range maxShards + 1 {
		fmt.Fprintf(&many, `, "%d": "%d.safetensors"`, i, i)
	}
	folder := t.TempDir()
	write(t, folder, "pytorch_model.bin.index.json", []byte(`{"weight_map": {`+many.String()[2:]+`}}`))
	check.Fails(OpenFile(folder))(t, "names 513 shards, more than the 512")
}

// A folder has one model, and a file is what its bytes say, not its name.
func TestRefusesFiles(t *testing.T) {
	pickle := func(text string, method uint16) []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w := check.Get(z.CreateHeader(&zip.FileHeader{Name: "a/data.pkl", Method: method}))(t)
		check.Get(w.Write([]byte(text)))(t)
		check.OK(t, z.Close())
		return b.Bytes()
	}
	one := `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	for want, b := range map[string][]byte{
		"it has 3 bytes and no tensors":                raw("", 0)[:3],
		"it is a pointer of Git LFS":                   []byte("version https://git-lfs.github.com/spec/v1\n"),
		"it is a GGUF file of llama.cpp":               []byte("GGUF\x03\x00\x00\x00\x00\x00\x00\x00"),
		"header of 1099511627776 bytes is larger":      append(binary.LittleEndian.AppendUint64(nil, 1<<40), one...),
		"header of 4096 bytes in a file of":            append(binary.LittleEndian.AppendUint64(nil, 4096), one...),
		"need 8 bytes of data, the file has 4":         raw(one, 4),
		"needs 12 bytes, data_offsets [0 8] give 8":    raw(strings.Replace(one, "[2]", "[3]", 1), 8),
		"begins at byte 4 of the data":                 raw(strings.Replace(one, "[0,8]", "[4,12]", 1), 12),
		"bad data_offsets":                             raw(strings.Replace(one, "[0,8]", "[8,0]", 1), 8),
		`it names "posix.system"`:                      pickle("\x80\x02cposix\nsystem\nX\x04\x00\x00\x00true\x85R.", zip.Store),
		"its data.pkl is compressed":                   pickle(strings.Repeat("N", 1<<20)+".", zip.Deflate),
		`two tensors have the name "a.LayerNorm.bias"`: stored(t, float("a.LayerNorm.bias", 1), float("a.LayerNorm.beta", 1)),
		"is of no family that is read (it has a): the families that are read are bert, roberta, mpnet, vit, dinov2, timm, resnet, resnet_hf, clip, siglip, open_clip, open_clip_timm, clip-mtob, albef": raw(one, 8),
	} {
		path := write(t, t.TempDir(), "model.safetensors", b)
		check.Fails(Open(filepath.Dir(path)))(t, want)
	}
	folder := t.TempDir()
	check.Fails(OpenFile(folder))(t, "has no weights: want model.safetensors, ")
	write(t, folder, "[a].pth", raw(one, 8))
	if f, err := OpenFile(folder); err != nil || len(f.Names()) != 1 {
		t.Error(f, err)
	}
	write(t, folder, "b.ckpt", raw(one, 8))
	check.Fails(OpenFile(folder))(t, "has 2 files that may be the weights")
	if _, err := OpenFile(filepath.Join(folder, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Numbers of all types of floats are read, whole or in part, also those that lie apart; others are refused by name.
func TestRead(t *testing.T) {
	f := check.Get(OpenFile("../internal/torch/testdata/types.pt"))(t)
	defer f.Close()
	want := []float32{0, -1.5, 2, 0.25, 1, 6e-8, -3, 100, 65504, 0.5, -0.125, 7}
	for name, tolerance := range map[string]float64{"float64": 0, "float32": 0, "float16": 1e-7, "bfloat16": 40} {
		x, _ := f.Lookup(name)
		dst := make([]float32, 7)
		if err := x.Read(dst, 5); err != nil {
			t.Error(err)
		}
		for i, v := range dst {
			if !(math.Abs(float64(v-want[5+i])) <= tolerance) {
				t.Errorf("%s[%d] is %v, want %v", name, 5+i, v, want[5+i])
			}
		}
	}
	x, _ := f.Lookup("int64")
	if err := x.Read(make([]float32, 3), 0); err == nil || !strings.Contains(err.Error(), `tensor "int64" has numbers of type I64, and F64, F32, F16 and BF16 are read`) {
		t.Error(err)
	}
	check.Error(t, x.Read(make([]float32, 3), 1), `elements 1 to 4 of tensor "int64", which has shape [3]`)

	lying := check.Get(OpenFile("../internal/torch/testdata/transposed.pt"))(t)
	defer lying.Close()
	x, _ = lying.Lookup("")
	dst := make([]float32, 11)
	if err := x.Read(dst, 1); err != nil || !slices.Equal(dst, swapped(want, 3, 4)[1:]) {
		t.Error(dst, err)
	}

	path := write(t, t.TempDir(), "a.safetensors", raw(`{"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}`, 2))
	small := check.Get(OpenFile(path))(t)
	defer small.Close()
	x, _ = small.Lookup("a")
	check.Error(t, x.Read(make([]float32, 2), 0), "has numbers of type F8_E4M3")
}

// A tensor of several pieces is read as one, and a file that was cut since is an error.
func TestReadInPieces(t *testing.T) {
	const n = pieceLen/4*2 + 5
	path := write(t, t.TempDir(), "a.safetensors", stored(t, float("a", n)))
	f := check.Get(OpenFile(path))(t)
	defer f.Close()
	x, _ := f.Lookup("a")
	dst := make([]float32, n-1)
	check.OK(t, x.Read(dst, 1))
	for i, v := range dst {
		if v != float32(i+1) {
			t.Fatalf("element %d is %v", i+1, v)
		}
	}
	check.OK(t, os.Truncate(path, 4*n))
	check.Error(t, x.Read(dst, 1), `read tensor "a": unexpected EOF`)
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata": {"total_size": 8}, "weight_map": {"a": "model-1-of-1.safetensors"}}`))
	f.Add([]byte(`{"weight_map": {"a": "../b"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer budgettest.Within(t, len(text))()
		index, err := parseIndex(text)
		if err != nil {
			return
		}
		for _, name := range index {
			if filepath.Base(name) != name || name == ".." {
				t.Errorf("%q leads elsewhere", name)
			}
		}
	})
}
