package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/filetest"
)

// TestTowerInputsOfTables: the images of tables of pairs are files that can be told apart, whose features can be kept.
func TestTowerInputsOfTables(t *testing.T) {
	root := pngFolder(t, 3)
	table, err := loadCSV(t, root, plainCSV, "filepath,title\nimages/0.png,one\nimages/1.png,two\nimages/0.png,three\n")
	if err != nil {
		t.Fatal(err)
	}
	s := trainOf(t, table, TrainConfig{Transform: transform.Train{Size: 4}, Text: someText(8)})
	in, ok := s.ImageInputs()
	if !ok || in.Rows != 2 {
		t.Fatalf("%d rows, %t", in.Rows, ok)
	}
	name, state := in.Item(1)
	if want, err := filepath.Abs(filepath.Join(root, "images/1.png")); err != nil || name != want+"\x00" || state == "" {
		t.Errorf("row 1 is %q in the state %q", name, state)
	}
}

// limited is a data set one of whose images cannot be opened.
type limited struct {
	Dataset
	err error
}

func (d limited) Image(i int) (*transform.Image, error) {
	if i == 2 {
		return nil, fmt.Errorf("data: image: %w", d.err)
	}
	return d.Dataset.Image(i)
}

func (d limited) place(i int) (path, part string) { return fmt.Sprint(i), "" }

// TestTowerInputsOfALimit: a machine that has run out of open files ends the pass over the images; a file that the disk cannot read is a
// row that cannot be made.
func TestTowerInputsOfALimit(t *testing.T) {
	for _, limit := range []error{syscall.EMFILE, syscall.EIO} {
		s := trainOf(t, limited{memory(4, "a"), limit}, TrainConfig{Transform: transform.Train{Size: 4}, Text: someText(8)})
		in, _ := s.ImageInputs()
		var bad []int
		stream := in.Stream([]int32{0, 1, 2, 3}, func(row int, _ error) { bad = append(bad, row) })
		b := batch.New(1, s.Columns()...)
		var failed error
		for c := range uint64(4) {
			failed = errors.Join(failed, stream.Sample(c, b.Row(0)))
		}
		if limit == syscall.EIO {
			if failed != nil || !slices.Equal(bad, []int{2}) {
				t.Errorf("%v: %v, bad rows %v", limit, failed, bad)
			}
		} else if !errors.Is(failed, limit) || bad != nil {
			t.Errorf("%v: %v, bad rows %v", limit, failed, bad)
		}
	}
}

// TestTableCutInUse: where a table can no longer be read as a whole, images of which not all captions are there are bad samples, and not
// ones with other captions than they had; its images are no longer known.
func TestTableCutInUse(t *testing.T) {
	root := pngFolder(t, 3)
	const text = "filepath,title\nimages/0.png,one\nimages/1.png,two\nimages/0.png,three\nimages/2.png,four\n"
	path := filepath.Join(t.TempDir(), "pairs.csv")
	filetest.Write(t, path, []byte(text))
	table, err := LoadCSV(root, []string{path}, plainCSV, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	streams := map[bool]*Train{}
	for _, pairs := range []bool{false, true} {
		if streams[pairs], err = NewTrain(table, TrainConfig{Transform: transform.Train{Size: 4}, Text: someText(8), Pairs: pairs}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path, int64(strings.Index(text, "images/0.png,three"))); err != nil {
		t.Fatal(err)
	}
	for pairs, s := range streams {
		b := batch.New(1, s.Columns()...)
		for c := range uint64(12) {
			i, _ := s.item(c)
			if err := s.Sample(c, b.Row(0)); (err == nil) != (i == 1) || err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("pairs %t: sample %d of image %d: %v", pairs, c, i, err)
			}
		}
	}
	in := streams[false].TextInputs()
	for k, want := range []string{"", "", "two", ""} {
		if _, state := in.Item(k); state != want {
			t.Errorf("caption %d is %q, want %q", k, state, want)
		}
	}
	if _, err := table.Image(2); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("image 2: %v", err)
	}
}
