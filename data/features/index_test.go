package features

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

// indexed are 6 images and 12 texts with a table of their pairs.
func indexed(t testing.TB, name string, table []byte) PairsConfig {
	t.Helper()
	var images, texts [][]float32
	for i := range 6 {
		images = append(images, []float32{float32(i), 1})
	}
	for i := range 12 {
		texts = append(texts, []float32{float32(i), 2, 3})
	}
	return PairsConfig{Image: filetest.Temp(t, "image.npy", npy(images)), Text: filetest.Temp(t, "text.npy", npy(texts)), Index: filetest.Temp(t, name, table)}
}

// intNPY is a .npy file of pairs.
func intNPY(descr string, pairs ...[2]int64) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d, 2), }\n", descr, len(pairs))
	b := binary.LittleEndian.AppendUint16(append([]byte(npyMagic), 1, 0), uint16(len(header)))
	b = append(b, header...)
	for _, q := range pairs {
		for _, v := range q {
			if descr == "<i4" {
				b = binary.LittleEndian.AppendUint32(b, uint32(v))
			} else {
				b = binary.LittleEndian.AppendUint64(b, uint64(v))
			}
		}
	}
	return b
}

// A table says which rows are pairs, in any order and with any other columns.
func TestIndex(t *testing.T) {
	want := []Pair{{0, 1}, {0, 4}, {2, 0}, {5, 11}}
	for name, table := range map[string][]byte{
		"a.tsv": []byte("image_row\ttext_row\n5\t11\n0\t4\n2\t0\n0\t1\n"),
		"b.csv": []byte("\ufefftext_row,caption,image_row\r\n11,\"a, b\",5\r\n4,,0\r\n\r\n0,x,2\r\n1,x,0\r\n"),
		"e.csv": []byte("\ufeff\"image_row\",\"text_row\"\r\n\"5\",\"11\"\r\n\"0\",\"4\"\r\n\"2\",\"0\"\r\n\"0\",\"1\"\r\n"),
		"c.npy": intNPY("<i4", [2]int64{5, 11}, [2]int64{0, 4}, [2]int64{2, 0}, [2]int64{0, 1}),
		"d.npy": intNPY("<i8", [2]int64{5, 11}, [2]int64{0, 4}, [2]int64{2, 0}, [2]int64{0, 1}),
	} {
		p := open(t, indexed(t, name, table), 1)
		if got, err := p.Split("train"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
}

// The column split divides; else whole images are held out.
func TestIndexSplits(t *testing.T) {
	c := indexed(t, "a.tsv", []byte("split\timage_row\ttext_row\ntest\t5\t11\ntrain\t0\t4\nval\t2\t0\ntrain\t0\t1\ntest\t5\t2\n"))
	c.ValSamples = 1000 // which only a table without the column reads
	p := open(t, c, 1)
	for split, want := range map[string][]Pair{"train": {{0, 1}, {0, 4}}, "val": {{2, 0}}, "test": {{5, 2}, {5, 11}}} {
		if got, err := p.Split(split); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", split, got, err, want)
		}
	}
	if names, ok, err := IndexSplits(c.Index); !ok || err != nil || !slices.Equal(names, []string{"train", "val", "test"}) {
		t.Errorf("splits %v, %v, %v", names, ok, err)
	}
	table := "image_row\ttext_row\n"
	for i := range 12 {
		table += fmt.Sprintf("%d\t%d\n", i%6, i)
	}
	c = indexed(t, "a.tsv", []byte(table))
	if _, ok, err := IndexSplits(c.Index); ok || err != nil {
		t.Errorf("splits of a table without: %v, %v", ok, err)
	}
	c.ValSamples, c.TestSamples = 2, 1
	for _, hold := range []Hold{Random, Last} {
		c.Hold = hold
		p := open(t, c, 3)
		seen := map[int32]string{}
		for split, n := range map[string]int{"train": 6, "val": 4, "test": 2} {
			list, err := p.Split(split)
			if err != nil || len(list) != n {
				t.Errorf("%s: %v, %v", split, list, err)
			}
			for _, q := range list {
				if s, ok := seen[q.Image]; ok && s != split || q.Text%6 != q.Image {
					t.Errorf("%v is in %s and %s", q, split, s)
				}
				seen[q.Image] = split
			}
		}
		if hold == Last && (seen[5] != "test" || seen[4] != "val" || seen[3] != "val") {
			t.Errorf("the last are %v", seen)
		}
	}
}

// What is wrong with a table is told with its file and line.
func TestIndexRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		table []byte
		want  string
	}{
		{"a.tsv", []byte("image_row\ttext_row\n0\t0\n6\t1\n"), "a.tsv: line 3: image_row 6 is out of range: "},
		{"a.tsv", []byte("image_row\ttext_row\n0\t0\n1\t12\n"), "text.npy has 12 rows, counted from 0"},
		{"a.tsv", []byte("image_row\ttext_row\n0\t-1\n"), "line 2: text_row -1 is out of range"},
		{"a.tsv", []byte("image_row\ttext_row\n0\t1\n0\t2\n0\t1\n"), "line 4: text_row 1 was named in line 2 already"},
		{"a.tsv", []byte("image_row\ttext_row\n0\t1\n3\t1\n"), "line 3: text_row 1 was named in line 2 already: a text belongs to one image"},
		{"a.tsv", []byte("split\timage_row\ttext_row\ntrain\t0\t1\nval\t0\t2\n"), "line 3: image_row 0 is in split val here and in train before"},
		{"a.tsv", []byte("split\timage_row\ttext_row\ndev\t0\t1\n"), `line 2: split must be train, val or test (got "dev")`},
		{"a.tsv", []byte("split\timage_row\ttext_row\nval\t0\t1\n"), "has no pair of split train"},
		{"a.tsv", []byte("image_row\ttext_row\n0\tx\n"), `line 2: text_row must be a whole number (got "x")`},
		{"a.tsv", []byte("image_row\ttext_row\n0\t1.0\n"), `(got "1.0")`},
		{"a.tsv", []byte("image_row\ttext_row\n0\n"), "line 2: it has 1 columns, not 2"},
		{"a.tsv", []byte("0\t1\n0\t2\n"), "line 1: it has no column image_row"},
		{"a.tsv", []byte("image_row,text_row\n0,2\n"), "line 1: it has no column image_row"},
		{"a.csv", []byte("image_row,image_row,text_row\n0,2\n"), "line 1: it has two columns image_row"},
		{"a.tsv", nil, "it is empty: begin with a line that names the columns"},
		{"a.tsv", []byte("image_row\ttext_row\n"), "a.tsv has no pair"},
		{"a.npy", intNPY("<i4"), "a.npy has no pair"},
		{"a.npy", intNPY("<i8", [2]int64{0, 0}, [2]int64{1, 1 << 40}), "a.npy: row 1: text_row 1099511627776 is out of range"},
		{"a.npy", intNPY("<u8", [2]int64{0, 0}), `type "<u8": save them as <i4 or <i8`},
		{"a.npy", intNPY("<i8", [2]int64{0, 0}, [2]int64{1, 1})[:100], "2 rows need 32 bytes (got"},
		{"a.npy", bytes.Replace(intNPY("<i8", [2]int64{0, 0}), []byte("(1, 2)"), []byte("(2, 1)"), 1), "its shape is [2 1]"},
		{"a.txt", []byte("image_row\ttext_row\n"), `must end in .tsv, .csv or .npy (got ".txt")`},
	} {
		if _, err := Open(indexed(t, c.name, c.table), 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: got %v, want %q", c.table, err, c.want)
		}
	}
	c := indexed(t, "a.tsv", []byte("image_row\ttext_row\n0\t0\n"))
	c.Index = filepath.Join(t.TempDir(), "none.tsv")
	if _, err := Open(c, 1); err == nil || !strings.Contains(err.Error(), "index of pairs: ") {
		t.Errorf("got %v", err)
	}
}

// Every image is a sample with one of its texts, or every pair is one; their id is the image.
func TestStreamOfAnIndex(t *testing.T) {
	p := open(t, indexed(t, "a.tsv", []byte("image_row\ttext_row\n1\t0\n1\t5\n1\t7\n4\t2\n")), 1)
	for _, perCaption := range []bool{false, true} {
		s := p.Stream(StreamConfig{PerCaption: perCaption})
		n := map[bool]int{false: 2, true: 4}[perCaption]
		if s.EpochSamples() != n {
			t.Errorf("%d samples of an epoch, want %d", s.EpochSamples(), n)
		}
		counts := map[Pair]int{}
		b := batch.New(1, s.Columns()...)
		const epochs = 300
		for c := range epochs * n {
			if err := s.Sample(uint64(c), b.Row(0)); err != nil {
				t.Fatal(err)
			}
			image, text := b.Floats(batch.ImageFeatures)[0], b.Floats(batch.TextFeatures)[0]
			if b.Ints(batch.IDs)[0] != int32(image) {
				t.Errorf("image %v has the id %d", image, b.Ints(batch.IDs)[0])
			}
			counts[Pair{int32(image), int32(text)}]++
		}
		for q, least := range map[Pair]int{{1, 0}: 60, {1, 5}: 60, {1, 7}: 60, {4, 2}: epochs} { // of 100 on average
			if perCaption {
				least = epochs
			}
			if counts[q] < least {
				t.Errorf("%v was seen %d times in %d epochs (per caption %v)", q, counts[q], epochs, perCaption)
			}
		}
		if len(counts) != 4 {
			t.Errorf("samples %v", counts)
		}
	}
}

// A set has each image once and all its texts.
func TestSetOfAnIndex(t *testing.T) {
	p := open(t, indexed(t, "a.tsv", []byte("image_row\ttext_row\n1\t0\n1\t5\n4\t2\n3\t9\n3\t1\n")), 1)
	for most, want := range map[int]struct {
		images, texts []float32
		owner         []int
	}{0: {[]float32{1, 3, 4}, []float32{0, 5, 1, 9, 2}, []int{0, 0, 1, 1, 2}}, 2: {[]float32{1, 3}, []float32{0, 5, 1, 9}, []int{0, 0, 1, 1}}} {
		set, err := p.Set("train", most)
		if err != nil {
			t.Fatal(err)
		}
		gallery, err := set.Texts(nil)
		if err != nil {
			t.Fatal(err)
		}
		x, y := batch.New(len(want.images), set.Images().Columns()...), batch.New(len(want.texts), gallery.Columns()...)
		if err := data.LoadRows(t.Context(), set.Images(), 0, len(want.images), x, 2); err != nil {
			t.Fatal(err)
		}
		if err := data.LoadRows(t.Context(), gallery, 0, len(want.texts), y, 2); err != nil {
			t.Fatal(err)
		}
		for i, v := range want.images {
			if x.Row(i).Floats(batch.ImageFeatures)[0] != v || set.ImageID(i) != int64(v) || x.Ints(batch.IDs)[i] != int32(v) {
				t.Errorf("image %d is not %v", i, v)
			}
		}
		for j, v := range want.texts {
			if y.Row(j).Floats(batch.TextFeatures)[0] != v || set.TextImage(j) != want.owner[j] || y.Ints(batch.IDs)[j] != int32(want.images[want.owner[j]]) {
				t.Errorf("text %d is not %v of image %d", j, v, want.owner[j])
			}
		}
	}
}

// The index of real features, with five captions of each image.
func TestFlickrIndex(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "data", "flickr8k_features")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the shared data is not here:", err)
	}
	p := open(t, PairsConfig{Image: filepath.Join(dir, "image.npy"), Text: filepath.Join(dir, "text.npy"), Index: filepath.Join(dir, "pairs.tsv")}, 1)
	for split, images := range map[string]int{"train": 6000, "val": 500, "test": 500} {
		set, err := p.Set(split, 0)
		if err != nil {
			t.Fatal(err)
		}
		if texts, err := set.Texts(nil); err != nil || set.Len() != images || texts.Len() != 5*images {
			t.Errorf("%s: %d images and %d texts (%v)", split, set.Len(), texts.Len(), err)
		}
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("split\timage_row\ttext_row\ntest\t5\t11\ntrain\t0\t4\n"))
	f.Add([]byte("\ufeffimage_row,text_row\r\n5,\"11\"\r\n"))
	f.Add(intNPY("<i4", [2]int64{5, 11}, [2]int64{0, 4}))
	f.Add(intNPY("<i8", [2]int64{5, 11}, [2]int64{0, 4}))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		read := func(separator rune) ([]entry, error) {
			x := index{path: "f"}
			t, err := table.NewText(x.path, bytes.NewReader(b), int64(len(b)), table.Layout{Separator: separator})
			if err == nil {
				err = x.readTable(t)
			}
			return x.entries, err
		}
		for _, parse := range []func() ([]entry, error){
			func() ([]entry, error) { return read('\t') },
			func() ([]entry, error) { return read(',') },
			func() ([]entry, error) { return parseIndexNPY(bytes.NewReader(b), int64(len(b))) },
		} {
			list, err := parse()
			if err != nil {
				continue
			}
			for i, e := range list {
				if e.split < -1 || int(e.split) >= len(splitNames) || i > 0 && e.line <= list[i-1].line {
					t.Errorf("entry %d is %+v after %+v", i, e, list[max(i-1, 0)])
				}
			}
		}
	})
}
