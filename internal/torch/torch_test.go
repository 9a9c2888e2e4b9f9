package torch

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/safetensors"
)

// expected is what tools/goldens/torch_files.py says of a tensor.
type expected struct {
	Name       string
	DType      string
	Shape      []int
	Contiguous bool
	Values     []float64
}

var dtypes = map[string]safetensors.DType{"float64": safetensors.F64, "float32": safetensors.F32, "float16": safetensors.F16, "bfloat16": safetensors.BF16,
	"int64": safetensors.I64, "int32": safetensors.I32, "int16": safetensors.I16, "int8": safetensors.I8, "uint8": safetensors.U8, "bool": safetensors.Bool}

// values reads the numbers of a contiguous tensor of real numbers or bytes at its place.
func values(t *testing.T, file []byte, x Tensor) (list []float64) {
	t.Helper()
	b := file[x.Offset:]
	if f, err := safetensors.Floats(x.DType); err == nil {
		dst := make([]float32, x.Len())
		f(dst, b)
		for _, v := range dst {
			list = append(list, float64(v))
		}
		return list
	}
	for i := range x.Len() {
		v := int64(0)
		for k := x.DType.Size() - 1; k >= 0; k-- {
			v = v<<8 | int64(b[i*x.DType.Size()+k])
		}
		list = append(list, float64(v))
	}
	return list
}

// Every file that PyTorch wrote has the tensors that PyTorch says, at their places.
func TestGolden(t *testing.T) {
	var files map[string][]expected
	text, err := os.ReadFile("testdata/files.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &files); err != nil || len(files) < 9 {
		t.Fatal(len(files), err)
	}
	for name, want := range files {
		path := filepath.Join("testdata", name+".pt")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		got := f.Tensors()
		if len(got) != len(want) {
			t.Errorf("%s: %d tensors, want %d", name, len(got), len(want))
			continue
		}
		for i, w := range want {
			g := got[i]
			if g.Name != w.Name || g.DType != dtypes[w.DType] || !slices.Equal(g.Shape, w.Shape) || g.Contiguous() != w.Contiguous {
				t.Errorf("%s: %+v, want %+v", name, g, w)
				continue
			}
			if x, ok := f.Lookup(g.Name); !ok || x.Offset != g.Offset {
				t.Errorf("%s: %q is not found", name, g.Name)
			}
			if g.Contiguous() {
				for k, v := range values(t, b, g) {
					if v != float64(float32(w.Values[k])) {
						t.Errorf("%s: %s[%d] is %v, want %v", name, g.Name, k, v, w.Values[k])
					}
				}
			}
		}
		if _, ok := f.Lookup("none of these"); ok {
			t.Error("a tensor that is not there is found")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// archived is a file with a pickle and a storage of 8 bytes, edit may change its members.
func archived(t testing.TB, pickle string, edit func(members map[string]string)) []byte {
	t.Helper()
	members := map[string]string{"a/data.pkl": pickle, "a/byteorder": "little", "a/data/0": "\x00\x00\x80\x3f\x00\x00\x00\x40"}
	if edit != nil {
		edit(members)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"a/data.pkl", "a/byteorder", "a/data/0", "b/data.pkl"} {
		content, ok := members[name]
		if !ok {
			continue
		}
		method := zip.Store
		if strings.HasPrefix(content, "deflate:") {
			method = zip.Deflate
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(strings.TrimPrefix(content, "deflate:"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unicode is a pickle's instruction for a text.
func unicode(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// vector is a pickle of a tensor of n elements from start on, of a storage of 2 numbers.
func vector(start, n, stride, of byte) string {
	return "\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((" + unicode("storage") + "ctorch\nFloatStorage\n" + unicode("0") + unicode("cpu") + "K" + string(rune(of)) + "tQ" +
		"K" + string(rune(start)) + "K" + string(rune(n)) + "\x85K" + string(rune(stride)) + "\x85\x89)tR."
}

// What is no file of tensors is refused with what is wrong and what to do.
func TestRefuses(t *testing.T) {
	golden := func(name string) []byte {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if _, err := NewReader(bytes.NewReader(archived(t, vector(0, 2, 1, 2), nil)), int64(len(archived(t, vector(0, 2, 1, 2), nil)))); err != nil {
		t.Fatal(err)
	}
	nested := "\x80\x02" + strings.Repeat("]", 40) + strings.Repeat("a", 39) + "."
	bomb := "\x80\x02]q\x00" // a list of ten times a list of ten times ...
	for i := range 9 {
		bomb += "](" + strings.Repeat("h"+string(rune(i)), 10) + "eq" + string(rune(i+1))
	}
	for want, b := range map[string][]byte{
		"of the format before PyTorch 1.6":                 golden("old.pt"),
		`it names "torch.nn.modules.container.Sequential"`: golden("module.pt"),
		"its directory, at the end, is not there":          golden("rows.pt")[:len(golden("rows.pt"))-40],
		"it is no file of torch.save":                      []byte("text"),
		"a zip archive without data.pkl":                   archived(t, "", func(m map[string]string) { delete(m, "a/data.pkl") }),
		"it has two pickles":                               archived(t, vector(0, 2, 1, 2), func(m map[string]string) { m["b/data.pkl"] = "." }),
		`byte order "big"`:                                 archived(t, vector(0, 2, 1, 2), func(m map[string]string) { m["a/byteorder"] = "big" }),
		`the bytes of storage "0" are not in it`:           archived(t, vector(0, 2, 1, 2), func(m map[string]string) { delete(m, "a/data/0") }),
		`storage "0" has 7 bytes and needs 8`:              archived(t, vector(0, 2, 1, 2), func(m map[string]string) { m["a/data/0"] = "1234567" }),
		`storage "0" is compressed`:                        archived(t, vector(0, 2, 1, 2), func(m map[string]string) { m["a/data/0"] = "deflate:12345678" }),
		"shape [3] is not in its storage of 2":             archived(t, vector(0, 3, 1, 2), nil),
		"shape [2] is not in its storage of 2":             archived(t, vector(1, 2, 1, 2), nil),
		"shape [1] is not in its storage of 2":             archived(t, vector(2, 1, 1, 2), nil),
		"it makes no tensor that can be":                   archived(t, vector(3, 1, 1, 2), nil),
		`it names "os.system"`:                             archived(t, "\x80\x02cos\nsystem\n"+unicode("true")+"\x85R.", nil),
		`it names "builtins.eval"`:                         archived(t, "\x80\x04\x8c\x08builtins\x8c\x04eval\x93.", nil),
		"instruction 0x69 at byte 2: it is none that":      archived(t, "\x80\x02i", nil),
		"version 6 of the format":                          archived(t, "\x80\x06.", nil),
		"takes more values than there are":                 archived(t, "\x80\x02.", nil),
		"there is no mark":                                 archived(t, "\x80\x02Kae.", nil),
		"ends within an instruction":                       archived(t, "\x80\x02X\xff\xff\xff\xff", nil),
		"gets value 7, which was not stored":               archived(t, "\x80\x02h\x07.", nil),
		"there is nothing to store":                        archived(t, "\x80\x02q\x07.", nil),
		"puts values into what holds none":                 archived(t, "\x80\x02K\x01K\x02a.", nil),
		"the key of a dictionary is a torch.tuple":         archived(t, "\x80\x02})K\x02s.", nil),
		"it is no storage of a tensor":                     archived(t, "\x80\x02K\x02Q.", nil),
		"it makes no tensor and no dictionary":             archived(t, "\x80\x02ccollections\nOrderedDict\nK\x01\x85R.", nil),
		"it sets what tensors do not have":                 archived(t, "\x80\x02]}b.", nil),
		"a number of 9 bytes":                              archived(t, "\x80\x02\x8a\x09123456789.", nil),
		"more than 32 in each other":                       archived(t, nested, nil),
		"it has more than 1048576 values":                  archived(t, bomb+".", nil),
	} {
		if _, err := NewReader(bytes.NewReader(b), int64(len(b))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := Open("testdata/none.pt"); err == nil || !strings.Contains(err.Error(), "torch: ") {
		t.Errorf("no file: %v", err)
	}
	if _, err := Open("testdata/module.pt"); err == nil || !strings.Contains(err.Error(), "testdata/module.pt: data.pkl: instruction 0x63") {
		t.Errorf("got %v", err)
	}
}

// fits says whether a tensor lies in a file of so many bytes.
func fits(x Tensor, size int) bool {
	last := int64(1)
	for i, n := range x.Shape {
		if n == 0 {
			return true
		}
		last += int64(n-1) * int64(x.Strides[i])
	}
	return x.Offset > 0 && x.Offset+last*int64(x.DType.Size()) <= int64(size)
}

func FuzzOpen(f *testing.F) {
	names, err := filepath.Glob("testdata/*.pt")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, x := range file.Tensors() {
			if !fits(x, len(b)) {
				t.Errorf("%+v does not lie in %d bytes", x, len(b))
			}
		}
	})
}

func FuzzPickle(f *testing.F) {
	names, err := filepath.Glob("testdata/*.pt")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		z, err := zip.OpenReader(name)
		if err != nil {
			continue // of the old format
		}
		a, err := newArchive(&z.Reader)
		if err != nil {
			f.Fatal(err)
		}
		text, err := a.read("data.pkl", maxPickle)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		z.Close()
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b := archived(t, string(text), nil)
		file, err := NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, x := range file.Tensors() {
			if !fits(x, len(b)) {
				t.Errorf("%+v does not lie in %d bytes", x, len(b))
			}
		}
	})
}
