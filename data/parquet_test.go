package data

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

const parquetFolder = "testdata/parquet"

// parquetFile is one of the files that tools/goldens/parquet_images.py wrote.
func parquetFile(name string) string { return filepath.Join(parquetFolder, name+".parquet") }

// Lists of strings of which pages hold none (tools/goldens/parquet_writers.py).
func TestParquetOfEmptyLists(t *testing.T) {
	p, err := OpenParquet("", []string{parquetFile("empties")}, ParquetConfig{Image: "image", Caption: "caption"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Len() != 40 {
		t.Fatalf("%d rows", p.Len())
	}
	for i := range 40 {
		var want []string
		if i%3 == 0 {
			want = []string{fmt.Sprintf("Caption %d.", i)}
		}
		if got := p.Captions(i); !slices.Equal(got, want) {
			t.Errorf("row %d has %q, want %q", i, got, want)
		}
	}
}

// The images and captions of every form in which Arrow writes them.
func TestParquet(t *testing.T) {
	root := pngFolder(t, 6)
	for _, name := range []string{"struct", "lists", "index", "binary", "paths", "holes"} {
		t.Run(name, func(t *testing.T) {
			p, err := OpenParquet(root, []string{parquetFile(name), parquetFile("struct")}, ParquetConfig{Image: "image", Caption: "caption", Shuffle: 4}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			want := naive{Memory: &Memory{}, mixed: 4, first: []int{0, 6, 10}} // struct has row groups of 4
			if name == "struct" {
				want.first = []int{0, 4, 6, 10}
			}
			for k := range 12 {
				i := k % 6
				m, captions := pixelsOf(i), []string{fmt.Sprintf("Caption %d.", i)}
				switch {
				case k >= 6:
				case name == "lists":
					captions = nil
					for j := range i % 3 {
						captions = append(captions, fmt.Sprintf("Caption %d, text %d.", i, j))
					}
				case name == "holes":
					if captions = nil; i < 4 {
						captions = []string{[]string{"zero", "one", "two", "three"}[i]}
					}
					if i == 1 || i == 3 || i == 4 {
						m = nil
					}
				}
				want.Images, want.Texts = append(want.Images, m), append(want.Texts, captions)
			}
			checkSame(t, p, want)
			if n := p.EmptyCaptions(); n != 0 && name != "holes" || name == "holes" && n != 1 {
				t.Errorf("%d empty captions", n)
			}
		})
	}
}

// An image that a row names instead of its bytes is read anew where its file has changed.
func TestParquetCacheOfFiles(t *testing.T) {
	root := pngFolder(t, 6)
	p, err := OpenParquet(root, []string{parquetFile("holes")}, ParquetConfig{Image: "image", Caption: "caption"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cache, err := NewCache(CacheConfig{Kind: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	p.UseCache(cache)
	for k, want := range []int{2, 2, 5, 5} { // row 2 is images/2.png
		if k == 2 {
			filetest.Write(t, filepath.Join(root, "images/2.png"), append(pngOf(t, 5), "longer"...))
		}
		for i, want := range map[int]int{0: 0, 2: want} {
			if m, err := p.Image(i); err != nil || !bytes.Equal(m.Pix, pixelsOf(want).Pix) {
				t.Errorf("access %d of row %d: not the pixels of image %d (%v)", k, i, want, err)
			}
		}
	}
	if s := cache.Stats(); s.Misses != 3 || s.Hits != 5 {
		t.Errorf("%d of the cache and %d decoded, want 5 and 3", s.Hits, s.Misses)
	}
}

func TestParquetRefuses(t *testing.T) {
	text := filepath.Join(t.TempDir(), "a.parquet")
	filetest.Write(t, text, []byte("this is not a table, and long enough to be one"))
	for _, c := range []struct{ file, image, caption, want string }{
		{parquetFile("none"), "image", "caption", "no such file"},
		{text, "image", "caption", "it is not a .parquet file"},
		{parquetFile("struct"), "picture", "caption", `data.parquet.image: there is no column "picture": the columns are ["label" "image" "caption"]`},
		{parquetFile("struct"), "image", "text", `data.parquet.caption: there is no column "text": the columns are`},
		{parquetFile("struct"), "label", "caption", `column "label" is neither a group with bytes, nor bytes, nor a path`},
		{parquetFile("struct"), "image", "image", `column "image" is neither a string nor a list of strings`},
		{parquetFile("struct"), "image", "label", `column "label" is neither a string nor a list of strings`},
	} {
		_, err := OpenParquet("", []string{c.file}, ParquetConfig{Image: c.image, Caption: c.caption}, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if _, err := OpenParquet("", nil, ParquetConfig{}, Options{}); err == nil {
		t.Error("no file and no error")
	}
}

// A file with a wrong bit anywhere, or cut, is an error or a data set whose images are some or
// errors.
func TestDamagedParquetImages(t *testing.T) {
	whole, err := os.ReadFile(parquetFile("lists"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.parquet")
	try := func(what string, b []byte) {
		filetest.Write(t, path, b)
		p, err := OpenParquet("", []string{path}, ParquetConfig{Image: "image", Caption: "caption", Shuffle: 2}, Options{})
		if err != nil {
			return
		}
		defer p.Close()
		if p.Len() > 1<<20 {
			t.Fatalf("%s: %d rows", what, p.Len())
		}
		for i := range p.Len() {
			_, _ = p.Image(i)
			p.Captions(i)
		}
	}
	for i := 0; i < len(whole); i += 11 {
		b := slices.Clone(whole)
		b[i] ^= 1 << (i % 8)
		try(fmt.Sprint("bit at ", i), b)
		if i%55 == 0 {
			try(fmt.Sprint("cut at ", i), whole[:i])
		}
	}
}

func FuzzParquet(f *testing.F) {
	names, err := filepath.Glob(parquetFile("*"))
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		b := filetest.Read(f, name)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		x, err := readTable(bytes.NewReader(b), int64(len(b)), ParquetConfig{Image: "image", Caption: "caption"}, Options{})
		if err != nil {
			return
		}
		c := table.Pages{Most: 2}
		defer c.Close()
		for i := range min(x.texts.len(), 100) {
			_ = x.texts.list(i, 0)
		}
		for _, g := range x.groups {
			for _, row := range []int{1, 0} {
				if x.images == nil {
					break
				}
				if _, err := c.Get(x.images, g.number, row); err != nil && err.Error() == "" {
					t.Error("an error without words")
				}
			}
		}
	})
}

// A column that the library does not read rightly is refused, if it is one that is read.
func TestParquetOfLZ4(t *testing.T) {
	type row struct {
		Image   []byte `parquet:"image"`
		Packed  []byte `parquet:"packed,lz4"`
		Caption string `parquet:"caption"`
		Said    string `parquet:"said,lz4"`
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := parquet.WriteFile(path, []row{{pngOf(t, 0), pngOf(t, 0), "a", "a"}}); err != nil {
		t.Fatal(err)
	}
	for cfg, want := range map[ParquetConfig]string{
		{Image: "image", Caption: "caption"}: "", {Image: "packed", Caption: "caption"}: `column "packed" is not supported: it is compressed by LZ4`, {Image: "image", Caption: "said"}: `column "said" is not supported: it is compressed by LZ4`,
	} {
		p, err := OpenParquet("", []string{path}, cfg, Options{})
		if err == nil {
			p.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
}
