package regions

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// readAll reads every image of a file, which must give numbers or an error.
func readAll(t *testing.T, path string) {
	f, err := OpenFeatures(path, "", "")
	if err != nil {
		return
	}
	defer f.Close()
	if f.Len() < 1 || f.Most() < 1 || f.Width() < 1 {
		t.Fatalf("%d images of %d regions with %d features", f.Len(), f.Most(), f.Width())
	}
	most := min(f.Most(), 100)
	if f.Width() > 1<<20 {
		return
	}
	x, boxes := make([]float32, most*f.Width()), make([]float32, most*4)
	for i := range min(f.Len(), 100) {
		n, err := f.Read(i, x, boxes)
		if n < 0 || n > most || err != nil && n != 0 {
			t.Fatalf("image %d: %d of %d regions, %v", i, n, most, err)
		}
		for k, v := range x[:n*f.Width()] {
			if v-v != 0 {
				t.Fatalf("image %d: number %d is %v", i, k, v)
			}
		}
		for k, v := range boxes {
			if err == nil && !(v >= 0 && v <= 1) {
				t.Fatalf("image %d: number %d of the boxes is %v", i, k, v)
			}
		}
	}
}

func fuzzFile(f *testing.F, name string) func(t *testing.T, b []byte) {
	return func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		path := filepath.Join(t.TempDir(), name)
		filetest.Write(t, path, b)
		readAll(t, path)
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte(tableLineOf(0) + "\n" + tableLineOf(2) + "\r\n"))
	f.Add([]byte("1\t2\t3\t0\t\t\n" + tableLineOf(1)))
	f.Add([]byte("a\t1\t1\t1\tAAAA\tAACAPw==\n\n"))
	f.Fuzz(fuzzFile(f, "x.tsv"))
}

func FuzzTensors(f *testing.F) {
	add := func(tensors ...safetensors.Tensor) {
		var b bytes.Buffer
		if err := safetensors.Write(&b, tensors, nil); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	add(safetensors.Tensor{Name: "features", Shape: []int{1, 2, 1}, Data: []float32{1, 2}}, safetensors.Tensor{Name: "lengths", Shape: []int{1}, Data: []int64{1}}, safetensors.Tensor{Name: "boxes", Shape: []int{1, 2, 4}, Data: make([]float32, 8)})
	add(safetensors.Tensor{Name: "a", Shape: []int{1, 2}, Data: []float32{1, 2}}, safetensors.Tensor{Name: "a/boxes", Shape: []int{1, 4}, Data: []float32{0, 0, 1, 1}})
	f.Fuzz(fuzzFile(f, "x.safetensors"))
}

func FuzzLayout(f *testing.F) {
	f.Add("a\nb\n", "1\n2\n", `{"1": "x.jpg"}`, false, "auto", 0)
	f.Add("a,b\nb\nc\nd\ne\nf\ng\nh\ni\nj", "1\n1\n1\n1\n1\n2\n2\n2\n2\n2\n", `{}`, true, "yes", 5)
	dir := f.TempDir()
	var lines []string
	for i := range 10 {
		lines = append(lines, strings.Replace(tableLineOf(0), "100\t", string(rune('0'+i))+"\t", 1))
	}
	table := filepath.Join(dir, "x.tsv")
	filetest.Write(f, table, strings.Join(lines, "\n"))
	f.Fuzz(func(t *testing.T, captions, ids, mapping string, words bool, repeated string, most int) {
		defer budgettest.Within(t, len(captions)+len(ids)+len(mapping)+len(repeated))()
		dir := t.TempDir()
		c := Config{Features: table, Captions: filepath.Join(dir, "c.txt"), IDs: filepath.Join(dir, "i.txt"), Mapping: filepath.Join(dir, "m.json"), Words: words, Repeated: repeated, MaxCaptions: most}
		for path, text := range map[string]string{c.Captions: captions, c.IDs: ids, c.Mapping: mapping} {
			filetest.Write(t, path, text)
		}
		s, err := Load(c)
		if err != nil {
			return
		}
		defer s.Close()
		for i := range s.Len() {
			s.Captions(i)
			s.Name(i)
			if row := s.Row(i); row < -1 || row >= 10 {
				t.Fatalf("image %d is row %d", i, row)
			}
		}
	})
}
