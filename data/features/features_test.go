package features

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// stored is the matrix that tools/goldens/features.py wrote.
var stored = [][]float32{{0, -1.5, 2, 0.25}, {1, 6e-8, -3, 100}, {65504, 0.5, -0.125, 7}}

// unmapped reads files piece by piece, as where they cannot be mapped.
func unmapped(*os.File, int64) []byte { return nil }

// Every form in which other libraries store a matrix gives its numbers, mapped and not.
func TestMatrixForms(t *testing.T) {
	half := float32(5.9604645e-08) // 6e-8 rounds to 2^-24
	for _, c := range []struct {
		file, tensor, kind string
		small              float32
	}{
		{"f2.npy", "", "F16", half}, {"f4.npy", "", "F32", 6e-8}, {"f8.npy", "", "F64", 6e-8}, {"v2.npy", "", "F32", 6e-8}, {"v3.npy", "", "F32", 6e-8},
		{"one.safetensors", "", "F64", 6e-8}, {"one.safetensors", "only", "F64", 6e-8},
		{"all.npz", "f2", "F16", half}, {"all.npz", "f4", "F32", 6e-8}, {"all.npz", "f8", "F64", 6e-8}, {"packed.npz", "f2", "F16", half}, {"packed.npz", "f4", "F32", 6e-8},
		{"rows.pt", "", "F32", 6e-8}, {"named.pt", "image", "F64", 6e-8}, {"named.pt", "text.rows", "F16", half},
		{"two.safetensors", "image", "F32", 6e-8}, {"two.safetensors", "text", "F16", half},
	} {
		for _, mapping := range []func(*os.File, int64) []byte{files.Map, unmapped} {
			m, err := openMatrix(filepath.Join("testdata", c.file), c.tensor, mapping)
			if err != nil {
				t.Fatal(err)
			}
			if m.Rows() != 3 || m.Width() != 4 || m.Type() != c.kind {
				t.Errorf("%s: %d rows of %d, %s", c.file, m.Rows(), m.Width(), m.Type())
			}
			row := make([]float32, 4)
			for i, want := range stored {
				want = slices.Clone(want)
				if i == 1 {
					want[1] = c.small
				}
				if err := m.Row(i, row); err != nil || !slices.Equal(row, want) {
					t.Errorf("%s row %d: %v, %v, want %v", c.file, i, row, err, want)
				}
			}
			for _, i := range []int{-1, 3} {
				if err := m.Row(i, row); err == nil || !strings.Contains(err.Error(), "there is no row") {
					t.Errorf("row %d: %v", i, err)
				}
			}
			if err := m.Row(0, row[:3]); err == nil {
				t.Error("a row that is too short must fail")
			}
			if n := testing.AllocsPerRun(20, func() { m.Row(1, row) }); n > 0 {
				t.Errorf("%s: %v allocations in a row", c.file, n)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if runtime.GOOS == "linux" {
		if m, err := OpenMatrix("testdata/f4.npy", ""); err != nil || m.mapped == nil {
			t.Errorf("a file is not mapped (%v)", err)
		}
	}
}

// npy is a .npy file of float32 rows.
func npy(rows [][]float32) []byte {
	return npyOf(fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", len(rows), len(rows[0])), rows)
}

func npyOf(header string, rows [][]float32) []byte {
	b := append([]byte(npyMagic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)+1))
	b = append(b, header+"\n"...)
	for _, r := range rows {
		for _, v := range r {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

// tensors is a .safetensors file of tensors.
func tensors(t testing.TB, list ...safetensors.Tensor) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.Write(&b, list, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is not a matrix of floats is refused with the file, the reason and what to do.
func TestMatrixRefuses(t *testing.T) {
	whole, err := os.ReadFile("testdata/f4.npy")
	if err != nil {
		t.Fatal(err)
	}
	two := tensors(t, safetensors.Tensor{Name: "image", Shape: []int{1, 2}, Data: []float32{1, 2}}, safetensors.Tensor{Name: "ids", Shape: []int{2, 1}, Data: []int64{1, 2}},
		safetensors.Tensor{Name: "cube", Shape: []int{1, 1, 1}, Data: []float32{1}})
	for _, c := range []struct {
		path, tensor string
		want         []string
	}{
		{"testdata/fortran.npy", "", []string{"fortran.npy", "do not lie together", "numpy.ascontiguousarray"}},
		{"testdata/big.npy", "", []string{`big-endian (type ">f4")`, "astype('<f4')"}},
		{"testdata/object.npy", "", []string{`Python objects (type "|O"), which are pickled and not read`, "allow_pickle=False"}},
		{"testdata/all.npz", "none", []string{`it has no tensor "none": it holds f2, f4, f8, row, ints, objects`}},
		{"testdata/all.npz", "", []string{"it holds the tensors f2, f4, f8, row, ints, objects: name one of them"}},
		{"testdata/all.npz", "ints", []string{"ints.npy", `type "<i8"`}},
		{"testdata/all.npz", "row", []string{"row.npy", "shape is [4]"}},
		{"testdata/all.npz", "objects", []string{"objects.npy", "Python objects"}},
		{"testdata/packed.npz", "ints", []string{"ints.npy", `type "<i8"`}},
		{filetest.Temp(t, "cut.npz", filetest.Read(t, "testdata/all.npz")[:500]), "f4", []string{"its directory, at the end, is not there"}},
		{filetest.Temp(t, "fewer.npz", bytes.Replace(filetest.Read(t, "testdata/all.npz"), []byte("'<f4', 'fortran_order': False, 'shape': (3, 4)"), []byte("'<f4', 'fortran_order': False, 'shape': (2, 4)"), 1)), "f4", []string{"f4.npy has 176 bytes, and its 2 rows of 4 numbers need others"}},
		{filetest.Temp(t, "text.npz", []byte("text")), "f4", []string{"it is not a .npz file"}},
		{"testdata/transposed.pt", "", []string{"do not lie together (strides [1 3])", "x.contiguous()"}},
		{"testdata/row.pt", "", []string{"shape is [4]"}},
		{"testdata/named.pt", "", []string{"it holds the tensors image, text.rows, count"}},
		{"testdata/named.pt", "count", []string{"shape is []"}},
		{"testdata/float.parquet", "", []string{"must be converted", "data.cache_dir"}},
		{"testdata", "", []string{"must be converted", "data.cache_dir"}},
		{"testdata/int.npy", "", []string{`type "<i8"`, "<f2, <f4 or <f8"}},
		{"testdata/row.npy", "", []string{"shape is [4]", "a row for each pair"}},
		{"testdata/record.npy", "", []string{"record.npy", "save a plain matrix of floats"}},
		{"testdata/f4.npy", "image", []string{"name no tensor", `got "image"`}},
		{"testdata/none.npy", "", []string{"none.npy", "no such file"}},
		{"testdata/none.safetensors", "", []string{"none.safetensors", "no such file"}},
		{"testdata/f4.csv", "", []string{".npy, .npz, .safetensors, .pt, .pth or .parquet", `got ".csv"`}},
		{filetest.Temp(t, "short.npy", whole[:len(whole)-1]), "", []string{"cut short", "3 rows of 4 numbers need 176 bytes (got 175)", "copy it again"}},
		{filetest.Temp(t, "long.npy", append(slices.Clone(whole), 0, 0)), "", []string{"2 bytes follow"}},
		{filetest.Temp(t, "head.npy", whole[:60]), "", []string{"ends within its header"}},
		{filetest.Temp(t, "magic.npy", whole[:8]), "", []string{"ends within its header"}},
		{filetest.Temp(t, "none.npy", ""), "", []string{"does not begin as a .npy file"}},
		{filetest.Temp(t, "text.npy", []byte("1 2 3\n4 5 6\n")), "", []string{"does not begin as a .npy file", "numpy.save"}},
		{filetest.Temp(t, "empty.npy", npyOf("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }", nil)), "", []string{"shape is [0 4]"}},
		{filetest.Temp(t, "huge.npy", npyOf("{'descr': '<f4', 'fortran_order': False, 'shape': (2000000000, 2000000000), }", nil)), "", []string{"overflows"}},
		{filetest.Temp(t, "many.npy", npyOf("{'descr': '<f4', 'fortran_order': False, 'shape': (3000000000, 1), }", nil)), "", []string{"too large"}},
		{filetest.Temp(t, "two.safetensors", two), "", []string{"image", "ids", "name one of them"}},
		{filetest.Temp(t, "two.safetensors", two), "text", []string{`no tensor "text"`, "image"}},
		{filetest.Temp(t, "two.safetensors", two), "ids", []string{"I64"}},
		{filetest.Temp(t, "two.safetensors", two), "cube", []string{`tensor "cube"`, "shape is [1 1 1]"}},
		{filetest.Temp(t, "cut.safetensors", two[:len(two)-3]), "image", []string{"cut.safetensors", "truncated"}},
	} {
		_, err := OpenMatrix(c.path, c.tensor)
		if err == nil {
			t.Errorf("%s %q: no error", c.path, c.tensor)
			continue
		}
		for _, want := range append(c.want, filepath.Base(c.path)) {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s %q: %v: want %q", c.path, c.tensor, err, want)
			}
		}
	}
}

// A mapped file that gets shorter is an error of the row, not the end of the process.
func TestMatrixFileShrinks(t *testing.T) {
	rows := make([][]float32, 5000)
	for i := range rows {
		rows[i] = []float32{1, 2, 3, 4}
	}
	path := filetest.Temp(t, "a.npy", npy(rows))
	for _, mapping := range []func(*os.File, int64) []byte{files.Map, unmapped} {
		filetest.Write(t, path, npy(rows))
		m, err := openMatrix(path, "", mapping)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if m.mapped != nil && runtime.GOOS != "linux" {
			continue // what a fault looks like depends on the system
		}
		if err := os.Truncate(path, 4096); err != nil {
			t.Fatal(err)
		}
		row := make([]float32, 4)
		if err := m.Row(4999, row); err == nil || !strings.Contains(err.Error(), "a.npy") {
			t.Errorf("got %v", err)
		}
		if err := m.Row(0, row); err != nil {
			t.Errorf("a row that is still there: %v", err)
		}
	}
}

// pairsOf writes two files of n rows, row i of images (i, 1) and of texts (i, 2, 3), with edits.
func pairsOf(t testing.TB, n int, edit func(images, texts [][]float32)) PairsConfig {
	t.Helper()
	var images, texts [][]float32
	for i := range n {
		images, texts = append(images, []float32{float32(i), 1}), append(texts, []float32{float32(i), 2, 3})
	}
	if edit != nil {
		edit(images, texts)
	}
	return PairsConfig{Image: filetest.Temp(t, "image.npy", npy(images)), Text: filetest.Temp(t, "text.npy", npy(texts))}
}

func open(t testing.TB, c PairsConfig, seed uint64) *Pairs {
	t.Helper()
	p, err := Open(c, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// The splits are disjoint, cover all rows, and depend on the seed.
func TestSplits(t *testing.T) {
	c := pairsOf(t, 50, nil)
	c.ValSamples, c.TestSamples = 7, 5
	p := open(t, c, 3)
	var all []int32
	for split, n := range map[string]int{"train": 38, "val": 7, "test": 5} {
		rows := rowsOf(t, p, split)
		if len(rows) != n || !slices.IsSorted(rows) {
			t.Errorf("%s: %v", split, rows)
		}
		all = append(all, rows...)
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != 50 {
		t.Errorf("the splits have %d of 50 rows", len(all))
	}
	again, other := open(t, c, 3), open(t, c, 4)
	a := rowsOf(t, p, "val")
	b := rowsOf(t, again, "val")
	d := rowsOf(t, other, "val")
	if !slices.Equal(a, b) || slices.Equal(a, d) {
		t.Errorf("validation rows %v, %v again, %v with another seed", a, b, d)
	}
	c.ValSamples = 20 // the test split stays what it is
	more := open(t, c, 3)
	a = rowsOf(t, p, "test")
	b = rowsOf(t, more, "test")
	if !slices.Equal(a, b) {
		t.Errorf("test rows %v and %v", a, b)
	}
}

// rowsOf returns the image rows of a split, and fails unless texts are in step with them.
func rowsOf(t testing.TB, p *Pairs, split string) (rows []int32) {
	t.Helper()
	list, err := p.Split(split)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range list {
		if q.Image != q.Text {
			t.Errorf("%s has the pair %v", split, q)
		}
		rows = append(rows, q.Image)
	}
	return rows
}

// The draw of earlier versions, from which checkpoints have their splits.
func TestSplitsStayTheSame(t *testing.T) {
	c := pairsOf(t, 20, nil)
	c.ValSamples, c.TestSamples = 3, 4
	p := open(t, c, 42)
	if val, test := rowsOf(t, p, "val"), rowsOf(t, p, "test"); !slices.Equal(val, []int32{9, 12, 18}) || !slices.Equal(test, []int32{2, 3, 8, 17}) {
		t.Errorf("val %v, test %v", val, test)
	}
}

// With a seed of the splits the seed of the run changes the budget alone; without, all of it.
func TestSeedOfTheSplits(t *testing.T) {
	c := pairsOf(t, 60, nil)
	c.ValSamples, c.TestSamples, c.Seed, c.Paired = 9, 11, 5, 10
	a, b := open(t, c, 1), open(t, c, 2)
	for _, split := range []string{"val", "test"} {
		if x, y := rowsOf(t, a, split), rowsOf(t, b, split); !slices.Equal(x, y) {
			t.Errorf("%s rows %v and %v", split, x, y)
		}
	}
	x, y := rowsOf(t, a, "train"), rowsOf(t, b, "train")
	if len(x) != 10 || len(y) != 10 || !slices.IsSorted(x) || slices.Equal(x, y) {
		t.Errorf("budgets %v and %v", x, y)
	}
	c.Paired = 25
	more := rowsOf(t, open(t, c, 1), "train")
	for _, i := range x {
		if !slices.Contains(more, i) {
			t.Errorf("the budget of 25 pairs %v lacks %d of that of 10 %v", more, i, x)
		}
	}
	c.Paired = 40
	if all := rowsOf(t, open(t, c, 1), "train"); len(all) != 40 {
		t.Errorf("%d pairs of a budget of all", len(all))
	}
	c.Seed = 1
	if same := rowsOf(t, open(t, c, 9), "test"); !slices.Equal(same, rowsOf(t, open(t, PairsConfig{Image: c.Image, Text: c.Text, Division: Division{ValSamples: 9, TestSamples: 11}}, 1), "test")) {
		t.Errorf("a seed of the splits is another one than the run's: %v", same)
	}
}

// The last rows are held out: the test split at the end, validation before it.
func TestHoldLast(t *testing.T) {
	c := pairsOf(t, 10, nil)
	c.ValSamples, c.TestSamples, c.Hold = 3, 2, Last
	p := open(t, c, 7)
	for split, want := range map[string][]int32{"train": {0, 1, 2, 3, 4}, "val": {5, 6, 7}, "test": {8, 9}} {
		if got := rowsOf(t, p, split); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", split, got, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	c := pairsOf(t, 10, nil)
	for want, edit := range map[string]func(c *PairsConfig){
		"must be >= 0 (got -1, 0 and 0)":             func(c *PairsConfig) { c.ValSamples = -1 },
		`hold must be "random" or "last" (got "x")`:  func(c *PairsConfig) { c.Hold = "x" },
		"data.pairs.paired = 8 is more than the 7":   func(c *PairsConfig) { c.ValSamples, c.Paired = 3, 8 },
		"no image is left for training":              func(c *PairsConfig) { c.ValSamples, c.TestSamples = 6, 4 },
		"has 10 and":                                 func(c *PairsConfig) { c.Text = filetest.Temp(t, "short.npy", npy(stored)) },
		"short.npy has 3: row i of both must be one": func(c *PairsConfig) { c.Text = filetest.Temp(t, "short.npy", npy(stored)) },
		"no such file":                               func(c *PairsConfig) { c.Text = "nowhere.npy" },
		"name no tensor":                             func(c *PairsConfig) { c.ImageTensor = "x" },
	} {
		x := c
		edit(&x)
		if _, err := Open(x, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	p := open(t, c, 1)
	for split, want := range map[string]string{"val": "the val split is empty: set data.pairs.val_samples", "dev": `no split "dev"`} {
		if _, err := p.Set(split, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// The loader's batches hold both sides of each training row once an epoch, in step, in
// another order every epoch; rows that are not finite are bad samples.
func TestStream(t *testing.T) {
	c := pairsOf(t, 40, func(images, texts [][]float32) {
		images[11][1], texts[30][0] = float32(math.NaN()), float32(math.Inf(-1))
	})
	c.ValSamples, c.TestSamples = 3, 4
	p := open(t, c, 5)
	train := rowsOf(t, p, "train")
	broken := 0
	for _, i := range train {
		if i == 11 || i == 30 {
			broken++
		}
	}
	s := p.Stream(StreamConfig{})
	l, err := data.NewLoader(s, data.LoaderConfig{BatchSize: 1, Columns: s.Columns(), MaxBadShare: 0.5, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var orders [2][]int32
	for e := range orders {
		for len(orders[e]) < len(train)-broken {
			b, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			id := b.Ints(batch.IDs)[0]
			if x, y := b.Floats(batch.ImageFeatures), b.Floats(batch.TextFeatures); !slices.Equal(x, []float32{float32(id), 1}) || !slices.Equal(y, []float32{float32(id), 2, 3}) {
				t.Errorf("row %d: %v and %v", id, x, y)
			}
			orders[e] = append(orders[e], id)
			l.Recycle(b)
		}
	}
	if slices.Equal(orders[0], orders[1]) {
		t.Error("two epochs have one order")
	}
	want := slices.DeleteFunc(slices.Clone(train), func(i int32) bool { return i == 11 || i == 30 })
	for _, o := range orders {
		if slices.Sort(o); !slices.Equal(o, want) {
			t.Errorf("an epoch has the rows %v, want %v", o, want)
		}
	}
	if bad, _, examples := l.Bad(); int(bad) < broken || broken == 0 {
		t.Errorf("%d bad samples (%v), want %d an epoch", bad, examples, broken)
	} else if _, is := errors.AsType[*NonFiniteError](examples[0].Err); !is {
		t.Errorf("reason %v", examples[0].Err)
	}
	// A side that nobody asked for is not read.
	text, err := data.NewLoader(s, data.LoaderConfig{BatchSize: len(train) - 1, Columns: []data.Column{{Name: batch.TextFeatures, Shape: []int{3}}}, MaxBadShare: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	if _, err := text.Next(t.Context()); err != nil {
		t.Error(err)
	}
	if bad, _, ex := text.Bad(); bad > 1 {
		t.Errorf("%d bad texts: %v", bad, ex)
	}
	_, err = data.NewLoader(s, data.LoaderConfig{BatchSize: 1, Columns: []data.Column{{Name: batch.ImageFeatures, Shape: []int{768}}}})
	if _, missing := errors.AsType[*batch.MissingError](err); !missing || !strings.Contains(err.Error(), "image features (2) float32") {
		t.Errorf("another width: %v", err)
	}
}

// A set gives the rows of a split for both sides, in step, and no more than asked for.
func TestSet(t *testing.T) {
	c := pairsOf(t, 30, nil)
	c.ValSamples, c.TestSamples = 8, 6
	p := open(t, c, 2)
	set, err := p.Set("val", 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t, p, "val")
	texts, err := set.Texts(nil)
	if err != nil {
		t.Fatal(err)
	}
	x, y := batch.New(8, set.Images().Columns()...), batch.New(8, texts.Columns()...)
	if err := data.LoadRows(t.Context(), set.Images(), 0, 8, x, 3); err != nil {
		t.Fatal(err)
	}
	if err := data.LoadRows(t.Context(), texts, 0, 8, y, 3); err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if x.Row(i).Floats(batch.ImageFeatures)[0] != float32(r) || y.Row(i).Floats(batch.TextFeatures)[0] != float32(r) ||
			x.Ints(batch.IDs)[i] != r || set.TextImage(i) != i || set.TextRow(i) != int(r) || set.ImageID(i) != int64(r) || !strings.Contains(set.ImageName(i), fmt.Sprint("image.npy row ", r)) {
			t.Errorf("pair %d is not row %d", i, r)
		}
	}
	if some, err := p.Set("train", 5); err != nil || some.Len() != 5 || some.NumTexts() != 5 || some.Images().Len() != 5 {
		t.Errorf("at most 5: %v", err)
	}
}

func TestCheckAndStats(t *testing.T) {
	c := pairsOf(t, 60, func(images, texts [][]float32) {
		for i := range images { // every image twice
			images[i][0] = float32(i / 2)
		}
		images[0], texts[59] = []float32{0, float32(math.NaN())}, []float32{0, 0, 0}
		texts[1] = []float32{float32(math.Inf(1)), 0, 0}
	})
	c.ValSamples = 20
	p := open(t, c, 1)
	counts := map[string]int{}
	var zero int
	for _, split := range []string{"train", "val"} {
		s, err := p.Stats(t.Context(), split)
		if err != nil {
			t.Fatal(err)
		}
		if rows := rowsOf(t, p, split); s.Pairs != len(rows) || s.Image.Width != 2 || s.Text.Width != 3 || s.Image.Type != "F32" {
			t.Errorf("%s: %+v", split, s)
		}
		if n := s.Image.Norms; n.Min < 1 || n.Max > 31 || n.Median <= n.Min || n.Mean <= n.Min {
			t.Errorf("%s: norms %+v", split, n)
		}
		counts["bad"] += s.Image.Bad + s.Text.Bad
		zero += s.Text.Zero
		calls := 0
		found, err := p.Check(t.Context(), split, CheckConfig{Others: []string{map[string]string{"train": "val", "val": "train"}[split]}, Examples: 2, Progress: func(int, int) { calls++ }})
		if err != nil || calls == 0 {
			t.Fatal(err, calls)
		}
		for _, f := range found {
			counts[f.Kind] += f.Count
			if len(f.Examples) == 0 || len(f.Examples) > 2 || f.Hint == "" || f.Grave() != (f.Kind != data.ZeroRow) {
				t.Errorf("%+v", f)
			}
		}
	}
	if counts["bad"] != 2 || zero != 1 || counts[data.BadRow] != 2 || counts[data.ZeroRow] != 1 || counts[data.Leak] < 4 {
		t.Errorf("found %v and %d zero rows", counts, zero)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Stats(ctx, "train"); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := p.Check(ctx, "train", CheckConfig{}); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	clean := open(t, pairsOf(t, 20, func(images, _ [][]float32) { images[0][0] = 5.5 }), 1)
	if found, err := clean.Check(t.Context(), "train", CheckConfig{}); err != nil || len(found) != 0 {
		t.Errorf("a clean set: %v, %v", found, err)
	}
}

// The train split is checked with all rows that training may see, those of further files too.
func TestCheckOfPools(t *testing.T) {
	c := pooled(t, func(images, texts [][]float32) { images[29] = []float32{7, 7} })
	c.Hold, c.ValSamples, c.TestSamples = Last, 3, 4
	c.ImagePool = filetest.Temp(t, "more.npy", npy([][]float32{{7, 7}, {0, 0}, {8, 8}}))
	c.TextPool = filetest.Temp(t, "texts.npy", npy([][]float32{{1, float32(math.NaN()), 3}}))
	p := open(t, c, 3)
	if images, texts := p.Unpaired(); images != (Unpaired{13, 3}) || texts != (Unpaired{13, 1}) {
		t.Errorf("unpaired %+v and %+v", images, texts)
	}
	found, err := p.Check(t.Context(), "train", CheckConfig{Others: []string{"val", "test"}})
	if err != nil || len(found) != 3 {
		t.Fatal(found, err)
	}
	for i, want := range []string{"texts.npy: row 0 is not finite", "more.npy row 0 equals row 29 of test", "more.npy: row 1"} {
		if f := found[i]; f.Count != 1 || !strings.Contains(f.Examples[0], want) {
			t.Errorf("%+v, want %q", f, want)
		}
	}
	if s, err := p.Stats(t.Context(), "train"); err != nil || s.Pairs != 10 || s.Image.Rows != 10 {
		t.Errorf("%+v, %v", s, err)
	}
}
