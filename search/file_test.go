package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// saved returns an index, the file that it was saved to and the rows of the pool.
func saved(t testing.TB, m Metric, n, d int) (index *Index, path string, x []float32) {
	t.Helper()
	index, x = built(t, m, n, d, BuildOptions{})
	path = Beside(filepath.Join(t.TempDir(), "image.npy"))
	check.OK(t, index.Save(path))
	return index, path, x
}

// reopened opens an index on the calling goroutine.
func reopened(t testing.TB, path string, p Pool) (*Index, error) {
	t.Helper()
	return Open(t.Context(), nil, path, p, nil)
}

// openBytes has an index take the bytes of a file and a pool.
func openBytes(path string, b []byte, p Pool, x *Index) error {
	if err := x.open(path, b); err != nil {
		return err
	}
	return x.take(context.Background(), nil, path, p, nil)
}

// TestFile: an index that is opened finds what the one that was saved finds, and saves the same
// bytes.
func TestFile(t *testing.T) {
	const n, d, k = 700, 19, 6
	for _, m := range metrics {
		index, path, x := saved(t, m, n, d)
		opened := check.Get(reopened(t, path, pool(t, x, d)))(t)
		if fmt.Sprint(opened.Stats()) != fmt.Sprint(index.Stats()) {
			t.Errorf("%s: %+v, want %+v", m, opened.Stats(), index.Stats())
		}
		want := check.Get(index.Search(context.Background(), nil, x, Options{K: k}))(t)
		got := check.Get(opened.Search(context.Background(), nil, x, Options{K: k}))(t)
		if !slices.Equal(got.Rows, want.Rows) || !slices.Equal(got.Scores, want.Scores) {
			t.Errorf("%s: the opened index has other hits", m)
		}
		again := path + ".again"
		check.OK(t, opened.Save(again))
		a, errA := os.ReadFile(path)
		b, errB := os.ReadFile(again)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: saved again it has other bytes: %v %v", m, errA, errB)
		}
		if err := opened.Save(path); err != nil { // over the file that is mapped
			t.Fatal(err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestClosedTwice: a second Close is none of another index, whose file may by then be mapped where the first one's was.
func TestClosedTwice(t *testing.T) {
	const n, d = 300, 8
	_, path, x := saved(t, Cosine, n, d)
	first := check.Get(reopened(t, path, pool(t, x, d)))(t)
	check.OK(t, first.Close())
	second := check.Get(reopened(t, path, pool(t, x, d)))(t)
	if err := first.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if _, err := second.Search(context.Background(), nil, x[:d], Options{K: 3}); err != nil {
		t.Fatalf("an index that is open: %v", err)
	}
	if err := errors.Join(second.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

// TestStale: an index is refused with rows that it is not of.
func TestStale(t *testing.T) {
	const n, d = 300, 8
	_, path, x := saved(t, Cosine, n, d)
	other := slices.Clone(x)
	other[len(other)-1]++
	swapped := slices.Concat(x[d:2*d], x[:d], x[2*d:])
	for name, c := range map[string]struct {
		x    []float32
		d    int
		want string
	}{
		"a row less":    {x[d:], d, "it has 300 rows of width 8, the pool has 299 of width 8"},
		"another width": {x, d / 2, "the pool has 600 of width 4"},
		"another value": {other, d, "rows differ among 256 to 299 (1 of 2 blocks of rows)"},
		"other places":  {swapped, d, "rows differ among 0 to 255 (1 of 2 blocks of rows)"},
	} {
		_, err := reopened(t, path, pool(t, c.x, c.d))
		if stale, ok := errors.AsType[*StaleError](err); !ok || stale.Path != path ||
			!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "build it again") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestDamagedFile: whatever byte is changed and wherever the file is cut, it is refused.
func TestDamagedFile(t *testing.T) {
	_, path, x := saved(t, L2, 40, 5)
	p := pool(t, x, 5)
	whole := check.Get(os.ReadFile(path))(t)
	refused := func(b []byte, what string) {
		t.Helper()
		index := &Index{}
		if err := openBytes(path, b, p, index); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), "build it again") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	check.OK(t, openBytes(path, whole, p, &Index{}))
	for i := range whole {
		b := slices.Clone(whole)
		b[i] ^= 1 << (i % 8)
		refused(b, fmt.Sprintf("byte %d of %d changed", i, len(whole)))
	}
	for i := 0; i < len(whole); i += 7 {
		refused(whole[:i], fmt.Sprintf("cut to %d of %d bytes", i, len(whole)))
	}
	refused(append(slices.Clone(whole), 0), "a byte more")
}

// rewrite returns the file of an index with other contents and a right checksum.
func rewrite(t testing.TB, x *Index, change func(h map[string]any,
	tensors []safetensors.Tensor) []safetensors.Tensor) []byte {
	t.Helper()
	text := check.Get(json.Marshal(x.header))(t)
	h := map[string]any{}
	check.OK(t, json.Unmarshal(text, &h))
	tensors := x.tensors()
	for i := range tensors { // those of the index stay
		switch v := tensors[i].Data.(type) {
		case []float32:
			tensors[i].Data = slices.Clone(v)
		case []int32:
			tensors[i].Data = slices.Clone(v)
		}
	}
	tensors = change(h, tensors)
	text = check.Get(json.Marshal(h))(t)
	var b bytes.Buffer
	meta := map[string]string{headerKey: string(text), sumKey: safetensors.SumZero}
	check.OK(t, safetensors.Write(&b, tensors, meta))
	meta[sumKey] = fmt.Sprintf("%08x", crc32.Checksum(b.Bytes(), crc32.MakeTable(crc32.Castagnoli)))
	b.Reset()
	check.OK(t, safetensors.Write(&b, tensors, meta))
	return b.Bytes()
}

// TestHostileFile: files with a right checksum and contents that a search would fail by.
func TestHostileFile(t *testing.T) {
	index, x := built(t, L2, 40, 5, BuildOptions{})
	p := pool(t, x, 5)
	set := func(key string, value any) func(map[string]any, []safetensors.Tensor) []safetensors.Tensor {
		return func(h map[string]any, t []safetensors.Tensor) []safetensors.Tensor { h[key] = value; return t }
	}
	find := func(tensors []safetensors.Tensor, name string) int {
		return slices.IndexFunc(tensors, func(t safetensors.Tensor) bool { return t.Name == name })
	}
	ints := func(name string, at int, value int32) func(map[string]any, []safetensors.Tensor) []safetensors.Tensor {
		return func(_ map[string]any, t []safetensors.Tensor) []safetensors.Tensor {
			t[find(t, name)].Data.([]int32)[at] = value
			return t
		}
	}
	inf := func(name string) func(map[string]any, []safetensors.Tensor) []safetensors.Tensor {
		return func(_ map[string]any, t []safetensors.Tensor) []safetensors.Tensor {
			v := t[find(t, name)].Data.([]float32)
			v[len(v)-1] /= 0 * v[0]
			return t
		}
	}
	// A search would blame its queries, whose points have no products in float32.
	far := func(name string) func(map[string]any, []safetensors.Tensor) []safetensors.Tensor {
		return func(_ map[string]any, t []safetensors.Tensor) []safetensors.Tensor {
			v := t[find(t, name)].Data.([]float32)
			v[len(v)-1] = 3.87e18
			return t
		}
	}
	for name, c := range map[string]struct {
		change func(map[string]any, []safetensors.Tensor) []safetensors.Tensor
		want   string
	}{
		"a later version":          {set("version", 4), "it has version 4 of the format, and this program reads versions 2 and 3"},
		"an earlier version":       {set("version", 1), "it has version 1 of the format, and this program reads versions 2 and 3"},
		"bits without their codes": {set("version", 3), `codes "" of version 3`},
		"codes of bits":            {set("codes", "bits"), `codes "bits" of version 2`},
		"bytes that are rescored":  {set("rescore", 4), "of which 4 rows are scored anew"},
		"another fingerprint":      {set("fingerprint", "00c0ffee"), `the fingerprint of its rows is "00c0ffee", and the sums of their blocks give `},
		"an unknown key":           {set("colour", "red"), "its description cannot be read"},
		"no rows":                  {set("rows", 0), "0 rows of width 5"},
		"more rows":                {set("rows", 41), `its tensor "rows" is I32 [40], not I32 [41]`},
		"far too many rows":        {set("rows", 1<<40), "rows of width 5"},
		"a huge width":             {set("width", 1<<30), "40 rows of width 1073741824"},
		"an unknown metric":        {set("metric", "dot"), `metric "dot"`},
		"another metric":           {set("metric", "cosine"), "it has 8 tensors, not 6"},
		"no cells":                 {set("cells", 0), "0 cells of 40 rows"},
		"more cells than rows":     {set("cells", 41), "41 cells of 40 rows"},
		"no curve":                 {set("curve", []Point{}), "0 points"},
		"a recall above 1":         {set("curve", []Point{{1, 1.5}}), "recall 1.5 of 1 cells"},
		"a falling curve":          {set("curve", []Point{{2, .5}, {1, .6}}), "recall 0.6 of 1 cells"},
		"cells that are not":       {set("curve", []Point{{1000, .5}}), "recall 0.5 of 1000 cells"},
		"an effort not measured":   {set("probes", 11), "11 cells to look at"},
		"starts that fall":         {ints("starts", 1, 41), "cell 2 begins at row "},
		"starts below 0":           {ints("starts", 0, -1), "cell 0 begins at row -1"},
		"starts that end early":    {ints("starts", 12, 39), "cell 12 begins at row 39"},
		"a row that is not there":  {ints("rows", 3, 40), "row 40 of the pool is in it twice or not there"},
		"a row below 0":            {ints("rows", 3, -1), "row -1 of the pool"},
		"an infinite centre":       {inf("centres"), `of its tensor "centres" has length`},
		"an infinite scale":        {inf("scales"), `of its tensor "scales" is`},
		"an infinite half":         {inf("half"), `of its tensor "half" is`},
		"an infinite shift":        {inf("shift"), `of its tensor "shift" has length`},
		"a centre too far":         {far("centres"), `row 11 of its tensor "centres" has length 3.87e+18`},
		"a shift too far":          {far("shift"), `row 0 of its tensor "shift" has length 3.87e+18`},
		"a tensor less": {func(_ map[string]any, t []safetensors.Tensor) []safetensors.Tensor {
			return slices.Delete(t, find(t, "half"), find(t, "half")+1)
		}, `its tensor "half" is`},
		"a row twice": {func(_ map[string]any, t []safetensors.Tensor) []safetensors.Tensor {
			r := t[find(t, "rows")].Data.([]int32)
			r[0] = r[1]
			return t
		}, "is in it twice or not there"},
	} {
		err := openBytes("x.search", rewrite(t, index, c.change), p, &Index{})
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	// The same way to write gives a file that is taken.
	if err := openBytes("x.search", rewrite(t, index, set("seed", 5)), p, &Index{}); err != nil {
		t.Error(err)
	}
}

// TestHostileValues: values that are finite and whose products are not make a search fail, not
// the program.
func TestHostileValues(t *testing.T) {
	index, x := built(t, L2, 40, 5, BuildOptions{})
	for name, most := range map[string]float32{"centres": 1.4e18, "scales": 9e36, "half": 9e36, "shift": 1.4e18} {
		b := rewrite(t, index, func(_ map[string]any, tensors []safetensors.Tensor) []safetensors.Tensor {
			for _, t := range tensors {
				if v, ok := t.Data.([]float32); ok && t.Name == name {
					for i := range v {
						v[i] = most * float32(1-i%2*2)
					}
				}
			}
			return tensors
		})
		var got Index
		check.OK(t, openBytes("x.search", b, pool(t, x, 5), &got))
		large := slices.Clone(x)
		for i := range large {
			large[i] *= 1e17
		}
		for _, q := range [][]float32{x, large} {
			if _, err := got.Search(context.Background(), nil, q, Options{K: 40}); err != nil {
				t.Logf("%s: %v", name, err)
			}
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	p := pool(t, []float32{1, 2}, 1)
	if _, err := reopened(t, filepath.Join(dir, "none"), p); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	check.Fails(reopened(t, dir, p))(t, "is a folder")
	empty := filepath.Join(dir, "empty")
	check.OK(t, os.WriteFile(empty, nil, 0o644))
	if _, err := reopened(t, empty, p); !errors.Is(err, ErrFormat) {
		t.Errorf("an empty file: %v", err)
	}
	var b bytes.Buffer
	check.OK(t, safetensors.Write(&b, []safetensors.Tensor{{Name: "x", Shape: []int{2, 1}, Data: []float32{1, 2}}},
		nil))
	if err := openBytes("x", b.Bytes(), p, &Index{}); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "without the description of an index") {
		t.Errorf("other tensors: %v", err)
	}
}

// TestSaveErrors: what cannot be written leaves nothing behind.
func TestSaveErrors(t *testing.T) {
	index, _ := built(t, Cosine, 50, 4, BuildOptions{})
	dir := t.TempDir()
	check.Error(t, index.Save(dir), "is not a regular file")
	if err := index.Save(filepath.Join(dir, "none", "x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into no folder: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// TestFileThatShrinks: a search of an index whose file is cut while it is open is an error and
// not the end of the program.
func TestFileThatShrinks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what happens to a mapped file that is cut is known of Linux alone")
	}
	for _, m := range []Metric{Cosine, Inner, L2} {
		for _, size := range []int64{0, 1 << 14} {
			_, path, x := saved(t, m, 4000, 64)
			index, err := reopened(t, path, pool(t, x, 64))
			if err != nil {
				t.Fatal(err)
			}
			check.OK(t, os.Truncate(path, size))
			for _, threads := range []int{0, 2} {
				if threads == 0 {
					_, err = index.Search(context.Background(), nil, x[:64*10], Options{K: 5})
				} else {
					_, err = index.Search(context.Background(), engine(t, threads), x, Options{K: 5})
				}
				if err == nil || !strings.Contains(err.Error(), "can no longer be read") {
					t.Errorf("%s, %d bytes left, %d threads: %v", m, size, threads, err)
				}
			}
			if err := index.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// FuzzParseHeader: any text is read or refused, and what is read is written the same.
func FuzzParseHeader(f *testing.F) {
	f.Add(`{"version":2,"rows":9,"width":2,"metric":"l2","cells":3,"probes":2,"k":1,"queries":5,"curve":[{"probes":2,"recall":1}],"seed":18446744073709551615,"fingerprint":"00c0ffee"}`)
	f.Add(`{"version":2}`)
	f.Add(`{"version":2,"rows":1e99}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		defer budgettest.Within(t, len(text))()
		h, err := parseHeader(text)
		if err != nil {
			return
		}
		again := check.Get(json.Marshal(h))(t)
		if h2, err := parseHeader(string(again)); err != nil || fmt.Sprint(h) != fmt.Sprint(h2) {
			t.Errorf("%s is read as %+v, then as %+v: %v", text, h, h2, err)
		}
	})
}

// FuzzFile: the bytes of a file, with the checksum made right, are an index that can be searched
// or refused.
func FuzzFile(f *testing.F) {
	index, x := built(f, L2, 20, 3, BuildOptions{Cells: 4})
	p := pool(f, x, 3)
	f.Add(rewrite(f, index, func(_ map[string]any, t []safetensors.Tensor) []safetensors.Tensor { return t }))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		if at := bytes.Index(b, []byte(`"`+sumKey+`":"`)); at >= 0 && at+len(sumKey)+4+8 <= len(b) {
			b = slices.Clone(b)
			digits := b[at+len(sumKey)+4:][:8]
			copy(digits, safetensors.SumZero)
			copy(digits, fmt.Sprintf("%08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
		}
		var got Index
		if openBytes("x", b, p, &got) == nil {
			if _, err := got.Search(context.Background(), nil, x, Options{K: 5}); err != nil {
				t.Error(err)
			}
		}
	})
}
