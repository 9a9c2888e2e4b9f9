package torch

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
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

// expected is what tools/goldens/torch_files.py says of a tensor.
type expected struct {
	Name       string
	DType      string
	Shape      []int
	Contiguous bool
	Values     []float64
}

var dtypes = map[string]safetensors.DType{"float64": safetensors.F64, "float32": safetensors.F32,
	"float16": safetensors.F16, "bfloat16": safetensors.BF16, "int64": safetensors.I64, "int32": safetensors.I32,
	"int16": safetensors.I16, "int8": safetensors.I8, "uint8": safetensors.U8, "bool": safetensors.Bool}

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
	text := check.Get(os.ReadFile("testdata/files.json"))(t)
	if err := json.Unmarshal(text, &files); err != nil || len(files) < 13 {
		t.Fatal(len(files), err)
	}
	for name, want := range files {
		path := filepath.Join("testdata", name+".pt")
		b := check.Get(os.ReadFile(path))(t)
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
			if g.Name != w.Name || g.DType != dtypes[w.DType] || !slices.Equal(g.Shape, w.Shape) ||
				g.Contiguous() != w.Contiguous {
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
	members := map[string]string{"a/data.pkl": pickle, "a/byteorder": "little",
		"a/data/0": "\x00\x00\x80\x3f\x00\x00\x00\x40"}
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
		w := check.Get(z.CreateHeader(&zip.FileHeader{Name: name, Method: method}))(t)
		check.Get(w.Write([]byte(strings.TrimPrefix(content, "deflate:"))))(t)
	}
	check.OK(t, z.Close())
	return b.Bytes()
}

// unicode is a pickle's instruction for a text.
func unicode(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// noHooks is a pickle's instructions for a tensor's hooks.
const noHooks = "ccollections\nOrderedDict\n)R"

// vector is a pickle of a tensor of n elements from start on, of a storage of 2 numbers.
func vector(start, n, stride, of byte) string { return vectorOf(start, n, stride, of, "\x89"+noHooks) }

// vectorOf is vector with the arguments behind the strides.
func vectorOf(start, n, stride, of byte, rest string) string {
	return "\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((" + unicode("storage") + "ctorch\nFloatStorage\n" +
		unicode("0") + unicode("cpu") + "K" + string(rune(of)) + "tQ" +
		"K" + string(rune(start)) + "K" + string(rune(n)) + "\x85K" + string(rune(stride)) + "\x85" + rest + "tR."
}

// What a tensor is made with is read or refused by its name, never passed over.
func TestArguments(t *testing.T) {
	meta := func(key, value string) string { return "\x89" + noHooks + "}" + unicode(key) + value + "s" }
	for _, c := range []struct{ rest, want string }{
		{"\x88" + noHooks, ""},
		{"\x89N", ""},
		{"\x89" + noHooks + "N", ""},
		{"\x89" + noHooks + "}", ""},
		{meta("neg", "\x89"), ""},
		{meta("neg", "\x88"), "the other sign (metadata neg): save x.resolve_neg()"},
		{meta("conj", "\x88"), "a conjugate view (metadata conj): save x.resolve_conj()"},
		{meta("zero", "\x88"), "metadata \"zero\" is not known"},
		{meta("neg", "K\x01"), "metadata \"neg\" is not known"},
		{"\x89" + noHooks + "K\x01", "metadata is not a dictionary"},
		{"\x89}K\x01K\x02s", "backward_hooks is not empty"},
		{"K\x01" + noHooks, "requires_grad is neither true nor false"},
		{"\x89" + noHooks + "NN", "has 8 arguments, and 6 or 7 are known"},
		{"\x89", "has 5 arguments, and 6 or 7 are known"},
	} {
		b := archived(t, vectorOf(0, 2, 1, 2, c.rest), nil)
		_, err := NewReader(bytes.NewReader(b), int64(len(b)))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: got %v, want %q", c.rest, err, c.want)
		}
	}
	inner := strings.TrimSuffix(vector(0, 2, 1, 2)[2:], ".")
	for rest, want := range map[string]string{
		"\x88" + noHooks:          "",
		"\x88":                    "has 2 arguments, and 3 are known",
		"\x88" + noHooks + "}":    "has 4 arguments, and 3 are known",
		"\x88}K\x01K\x02s":        "backward_hooks is not empty",
		unicode("true") + noHooks: "requires_grad is neither",
	} {
		b := archived(t, "\x80\x02ctorch._utils\n_rebuild_parameter\n("+inner+rest+"tR.", nil)
		_, err := NewReader(bytes.NewReader(b), int64(len(b)))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("parameter %q: got %v, want %q", rest, err, want)
		}
	}
	for _, name := range []string{"_rebuild_tensor_v3", "_rebuild_parameter_with_state", "_rebuild_sparse_tensor",
		"_rebuild_qtensor"} {
		b := archived(t, "\x80\x02ctorch._utils\n"+name+"\n)R.", nil)
		check.Fails(NewReader(bytes.NewReader(b), int64(len(b))))(t, name)
	}
}

// A view with the other sign, as PyTorch writes it, is refused and not read with the wrong sign.
func TestNegatedView(t *testing.T) {
	path := "../../../shared/cases/arrays/neg_view.pt"
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there", path)
	}
	check.Fails(Open(path))(t, "resolve_neg")
}

// What is not a file of tensors is refused with what is wrong and what to do.
func TestRefuses(t *testing.T) {
	golden := func(name string) []byte {
		return check.Get(os.ReadFile("testdata/" + name))(t)
	}
	check.Get(NewReader(bytes.NewReader(archived(t, vector(0, 2, 1, 2), nil)),
		int64(len(archived(t, vector(0, 2, 1, 2), nil)))))(t)
	nested := "\x80\x02" + strings.Repeat("]", 40) + strings.Repeat("a", 39) + "."
	bomb := "\x80\x02]q\x00" // a list of ten times a list of ten times ...
	for i := range 9 {
		bomb += "](" + strings.Repeat("h"+string(rune(i)), 10) + "eq" + string(rune(i+1))
	}
	for want, b := range map[string][]byte{
		"a plain pickle, or of a format before PyTorch 0.4": []byte("\x80\x02K\x01."),
		"its data.pkl is compressed":                        archived(t, "deflate:"+vector(0, 2, 1, 2), nil),
		"its byteorder has 17 bytes, more than": archived(t, vector(0, 2, 1, 2),
			func(m map[string]string) { m["a/byteorder"] = "little little lit" }),
		"it makes an object that holds no tensors": archived(t, "\x80\x02ccollections\nOrderedDict\n)\x81.",
			nil),
		"it gives storage \"0\" two types or sizes": archived(t,
			"\x80\x02]("+strings.TrimSuffix(vector(0, 2, 1, 2)[2:], ".")+strings.TrimSuffix(vector(0, 2, 1, 3)[2:],
				".")+"e.", nil),
		`it names "torch.nn.modules.container.Sequential"`: golden("module.pt"),
		"its directory, at the end, is not there":          golden("rows.pt")[:len(golden("rows.pt"))-40],
		"it is not a file of torch.save":                   []byte("text"),
		"a zip archive without data.pkl": archived(t, "",
			func(m map[string]string) { delete(m, "a/data.pkl") }),
		"it has two pickles": archived(t, vector(0, 2, 1, 2),
			func(m map[string]string) { m["b/data.pkl"] = "." }),
		`byte order "big"`: archived(t, vector(0, 2, 1, 2),
			func(m map[string]string) { m["a/byteorder"] = "big" }),
		`the bytes of storage "0" are not in it`: archived(t, vector(0, 2, 1, 2),
			func(m map[string]string) { delete(m, "a/data/0") }),
		`storage "0" has 7 bytes and needs 8`: archived(t, vector(0, 2, 1, 2),
			func(m map[string]string) { m["a/data/0"] = "1234567" }),
		`storage "0" is compressed`: archived(t, vector(0, 2, 1, 2),
			func(m map[string]string) { m["a/data/0"] = "deflate:12345678" }),
		"shape [3] is not in its storage of 2": archived(t, vector(0, 3, 1, 2), nil),
		"shape [2] is not in its storage of 2": archived(t, vector(1, 2, 1, 2), nil),
		"shape [1] is not in its storage of 2": archived(t, vector(2, 1, 1, 2), nil),
		"it makes no tensor that can be":       archived(t, vector(3, 1, 1, 2), nil),
		`it names "os.system"`: archived(t,
			"\x80\x02cos\nsystem\n"+unicode("true")+"\x85R.", nil),
		`it names "builtins.eval"`: archived(t, "\x80\x04\x8c\x08builtins\x8c\x04eval\x93.",
			nil),
		"instruction 0x69 at byte 2: it is none that": archived(t, "\x80\x02i", nil),
		"version 6 of the format":                     archived(t, "\x80\x06.", nil),
		"takes more values than there are":            archived(t, "\x80\x02.", nil),
		"there is no mark":                            archived(t, "\x80\x02Kae.", nil),
		"ends within an instruction":                  archived(t, "\x80\x02X\xff\xff\xff\xff", nil),
		"gets value 7, which was not stored":          archived(t, "\x80\x02h\x07.", nil),
		"there is nothing to store":                   archived(t, "\x80\x02q\x07.", nil),
		"puts values into what holds none":            archived(t, "\x80\x02K\x01K\x02a.", nil),
		"the key of a dictionary is a torch.tuple":    archived(t, "\x80\x02})K\x02s.", nil),
		"it is not a storage of a tensor":             archived(t, "\x80\x02K\x02Q.", nil),
		"it makes no tensor and no dictionary": archived(t,
			"\x80\x02ccollections\nOrderedDict\nK\x01\x85R.", nil),
		"it sets what tensors do not have": archived(t, "\x80\x02]}b.", nil),
		"a number of 9 bytes":              archived(t, "\x80\x02\x8a\x09123456789.", nil),
		"more than 32 in each other":       archived(t, nested, nil),
		"it has more than 1048576 values":  archived(t, bomb+".", nil),
	} {
		check.Fails(NewReader(bytes.NewReader(b), int64(len(b))))(t, want)
	}
	check.Fails(Open("testdata/none.pt"))(t, "torch: ")
	if _, err := Open("testdata/module.pt"); err == nil ||
		!strings.Contains(err.Error(), "testdata/module.pt: data.pkl: instruction 0x63") {
		t.Errorf("got %v", err)
	}
}

// legacyFile is a file of the legacy format: a pickle, the pickle of the keys, and what follows.
func legacyFile(pickle, keys, rest string) []byte {
	return []byte("\x80\x02" + legacyMagic + "\x80\x02M\xe9\x03." + "\x80\x02}" + unicode("little_endian") + "\x88s." +
		pickle + keys + rest)
}

// A damaged or hostile file of the legacy format is refused.
func TestRefusesLegacy(t *testing.T) {
	whole, keys := vector(0, 2, 1, 2), "\x80\x02]"+unicode("0")+"a."
	numbers := "\x02\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x80\x3f\x00\x00\x00\x40"
	b := legacyFile(whole, keys, numbers)
	if f, err := NewReader(bytes.NewReader(b), int64(len(b))); err != nil || f.Tensors()[0].Offset != int64(len(b)-8) {
		t.Fatal(f, err)
	}
	for want, b := range map[string][]byte{
		"it has version 1000 of the legacy format":     bytes.Replace(b, []byte("M\xe9\x03"), []byte("M\xe8\x03"), 1),
		"its numbers are not stored in the byte order": bytes.Replace(b, []byte("\x88s."), []byte("\x89s."), 1),
		`its object: instruction 0x63`: legacyFile("\x80\x02cos\nsystem\n"+unicode("true")+"\x85R.",
			keys, numbers),
		`it names "os.system"`: legacyFile("\x80\x02cos\nsystem\n"+unicode("true")+"\x85R.",
			keys, numbers),
		"its object: it ends within an instruction": legacyFile(whole[:len(whole)-1], "", ""),
		"its keys of storages are not a list":       legacyFile(whole, "\x80\x02K\x01.", numbers),
		`a storage "1" that no tensor is in`:        legacyFile(whole, "\x80\x02]"+unicode("1")+"a.", numbers),
		`a storage "0" that no tensor is in, or has it`: legacyFile(whole, "\x80\x02]("+unicode("0")+unicode("0")+"e.",
			numbers+numbers),
		`the bytes of storage "0" are not in it`:  legacyFile(whole, "\x80\x02].", numbers),
		`it ends before storage "0"`:              legacyFile(whole, keys, numbers[:7]),
		`it ends within storage "0"`:              legacyFile(whole, keys, numbers[:15]),
		`storage "0" has 3 elements and needs 2`:  legacyFile(whole, keys, "\x03"+numbers[1:]+"1234"),
		`storage "0" has -1 elements and needs 2`: legacyFile(whole, keys, strings.Repeat("\xff", 8)+numbers[8:]),
	} {
		check.Fails(NewReader(bytes.NewReader(b), int64(len(b))))(t, want)
	}
	// A pickle larger than what is read at first.
	long := legacyFile("\x80\x02"+unicode(strings.Repeat("a", 100<<10))+"0"+whole[2:], keys, numbers)
	if f, err := NewReader(bytes.NewReader(long), int64(len(long))); err != nil ||
		f.Tensors()[0].Offset != int64(len(long)-8) {
		t.Error(f, err)
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
		b := check.Get(os.ReadFile(name))(f)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
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
	names := check.Get(filepath.Glob("testdata/*.pt"))(f)
	for _, name := range names {
		z, err := zip.OpenReader(name)
		if err != nil {
			continue // of the legacy format
		}
		a := check.Get(newArchive(&z.Reader, math.MaxInt64))(f)
		text := check.Get(a.read("data.pkl", maxPickle))(f)
		f.Add(text)
		z.Close()
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer budgettest.Within(t, len(text))()
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

func FuzzLegacy(f *testing.F) {
	numbers := "\x02\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x80\x3f\x00\x00\x00\x40"
	f.Add(vector(0, 2, 1, 2), "\x80\x02]"+unicode("0")+"a.", numbers)
	f.Add(vector(1, 1, 1, 2), "\x80\x02]("+unicode("0")+unicode("0")+"e.", numbers+numbers)
	f.Fuzz(func(t *testing.T, pickle, keys, rest string) {
		defer budgettest.Within(t, len(pickle)+len(keys)+len(rest))()
		b := legacyFile(pickle, keys, rest)
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
