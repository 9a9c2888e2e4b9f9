package features

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/files"
)

// An index of pairs is a table with a row per pair. A .tsv or .csv file has a first line that
// names its columns, of which image_row, text_row and split are read and the last may lack. A
// .npy file is a matrix of <i4 or <i8 whose columns are image_row and text_row.
//
//	split  image_row  text_row
//	train  0          0
//	train  0          1
//	val    1          7

// splitNames are the values of the column split.
var splitNames = []string{"train", "val", "test"}

// entry is a row of an index.
type entry struct {
	image, text int64
	split       int8 // in splitNames; -1: there is no such column
	line        int
}

// index is a table that was read.
type index struct {
	path    string
	unit    string // of entry.line
	entries []entry
}

// readIndex reads a table.
func readIndex(path string) (*index, error) {
	x := &index{path: path, unit: "line"}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".npy":
		x.unit = "row"
		return x, x.readNPY()
	case ".tsv":
		return x, x.openTable('\t')
	case ".csv":
		return x, x.openTable(',')
	default:
		return nil, fmt.Errorf("features: %s: an index of pairs must end in .tsv, .csv or .npy (got %q)", path, ext)
	}
}

// indexColumns are those of a table, of which the last may lack.
var indexColumns = []string{"image_row", "text_row", "split"}

// pickIndex finds them.
func pickIndex(header []string) (c table.Columns, err error) {
	for i, name := range indexColumns {
		at := -1
		for j, column := range header {
			if strings.TrimSpace(column) != name {
				continue
			}
			if at >= 0 {
				return c, fmt.Errorf("it has two columns %s", name)
			}
			at = j
		}
		switch {
		case at >= 0:
			c.At = append(c.At, at)
		case i < 2:
			return c, fmt.Errorf("it has no column %s: begin with a line that names the columns image_row and "+
				"text_row (got %.80q)", name, header)
		}
	}
	return c, nil
}

// openTable reads a .tsv or .csv file.
func (x *index) openTable(separator rune) error {
	t, err := table.OpenText(x.path, table.Layout{Separator: separator})
	if err != nil {
		return fmt.Errorf("features: index of pairs: %w", err)
	}
	defer t.Close()
	return x.readTable(t)
}

// readTable reads a table.
func (x *index) readTable(t *table.Text) error {
	return t.Read(pickIndex, func(r table.Row) (err error) {
		if r.Err != nil {
			return r.Wrong(r.Err)
		}
		e := entry{split: -1, line: r.Line}
		for i, dst := range []*int64{&e.image, &e.text} {
			text := strings.TrimSpace(r.Cells[i])
			if *dst, err = strconv.ParseInt(text, 10, 64); err != nil {
				return r.Wrong(fmt.Errorf("%s must be a whole number (got %.40q)", indexColumns[i], text))
			}
		}
		if len(r.Cells) > 2 {
			name := strings.TrimSpace(r.Cells[2])
			if e.split = int8(slices.Index(splitNames, name)); e.split < 0 {
				return r.Wrong(fmt.Errorf("split must be train, val or test (got %.40q)", name))
			}
		}
		x.entries = append(x.entries, e)
		return nil
	})
}

// readNPY reads a .npy file.
func (x *index) readNPY() error {
	f, size, err := files.Open(x.path, files.MaxList)
	if err != nil {
		return fmt.Errorf("features: index of pairs: %w", err)
	}
	defer f.Close()
	if x.entries, err = parseIndexNPY(f, size); err != nil {
		return fmt.Errorf("features: %s: %w", x.path, err)
	}
	return nil
}

// indexTypes are the types of a .npy file.
var indexTypes = map[string]int{"<i4": 4, "<i8": 8}

// parseIndexNPY reads a .npy file of size bytes.
func parseIndexNPY(r io.ReaderAt, size int64) ([]entry, error) {
	h, err := readNPYHeader(r)
	if err != nil {
		return nil, err
	}
	width, ok := indexTypes[h.descr]
	if !ok {
		return nil, fmt.Errorf(
			"its numbers are of type %q: save them as <i4 or <i8, as numpy.save(file, x.astype('<i8')) does", h.descr)
	}
	if len(h.shape) != 2 || h.shape[1] != 2 || h.fortran && h.shape[0] > 1 {
		return nil, fmt.Errorf("its shape is %v (fortran_order %v): a row for each pair with the two columns "+
			"image_row and text_row is needed, in C order", h.shape, h.fortran)
	}
	n := h.shape[0]
	if n > math.MaxInt32 || size-h.start != int64(2*width*n) {
		return nil, fmt.Errorf("%d rows need %d bytes (got %d): copy it again", n, int64(2*width)*int64(n),
			size-h.start)
	}
	list := make([]entry, n)
	in, b := bufio.NewReaderSize(io.NewSectionReader(r, h.start, size-h.start), 1<<16), make([]byte, 2*width)
	for i := range list {
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		e := entry{split: -1, line: i}
		if width == 4 {
			e.image, e.text = int64(int32(binary.LittleEndian.Uint32(b))),
				int64(int32(binary.LittleEndian.Uint32(b[4:])))
		} else {
			e.image, e.text = int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
		}
		list[i] = e
	}
	return list, nil
}

// hasSplits says whether the table has the column split.
func (x *index) hasSplits() bool { return len(x.entries) > 0 && x.entries[0].split >= 0 }

// bad is an error at an entry.
func (x *index) bad(e entry, format string, args ...any) error {
	return fmt.Errorf("features: %s: %s %d: %s", x.path, x.unit, e.line, fmt.Sprintf(format, args...))
}

// check refuses rows that are not in their files, texts that are named twice, and images in
// two splits.
func (x *index) check(images, texts *Matrix) error {
	if len(x.entries) == 0 {
		return fmt.Errorf("features: %s has no pair: write a row for each", x.path)
	}
	// 1 plus the entry of a text, 2 plus the split of an image
	owner, part := make([]int32, texts.Rows()), make([]int8, images.Rows())
	for i, e := range x.entries {
		if e.image < 0 || e.image >= int64(images.Rows()) {
			return x.bad(e, "image_row %d is out of range: %s has %d rows, counted from 0", e.image, images.Path(),
				images.Rows())
		}
		if e.text < 0 || e.text >= int64(texts.Rows()) {
			return x.bad(e, "text_row %d is out of range: %s has %d rows, counted from 0", e.text, texts.Path(),
				texts.Rows())
		}
		if first := owner[e.text]; first > 0 {
			return x.bad(e, "text_row %d was named in %s %d already: a text belongs to one image, so remove one, or "+
				"store its features once for each image", e.text, x.unit, x.entries[first-1].line)
		}
		owner[e.text] = int32(i + 1)
		if s := part[e.image]; s != 0 && s != e.split+2 {
			return x.bad(e, "image_row %d is in split %s here and in %s before: an image belongs to one split", e.image,
				splitNames[e.split], splitNames[s-2])
		}
		part[e.image] = e.split + 2
	}
	return nil
}

// pairs returns the pairs, or those of one split, by image and text.
func (x *index) pairs(of func(e entry) bool) (list []Pair) {
	for _, e := range x.entries {
		if of(e) {
			list = append(list, Pair{int32(e.image), int32(e.text)})
		}
	}
	slices.SortFunc(list, Pair.compare)
	return list
}

// divide returns the splits that the column says.
func (x *index) divide() (map[string][]Pair, error) {
	splits := map[string][]Pair{}
	for i, name := range splitNames {
		splits[name] = x.pairs(func(e entry) bool { return int(e.split) == i })
	}
	if len(splits["train"]) == 0 {
		return nil, fmt.Errorf("features: %s has no pair of split train", x.path)
	}
	return splits, nil
}

// IndexSplits returns the splits that an index of pairs names, train first, and whether it has
// a column for them.
func IndexSplits(path string) (names []string, column bool, err error) {
	x, err := readIndex(path)
	if err != nil || !x.hasSplits() {
		return nil, false, err
	}
	var found [3]bool
	for _, e := range x.entries {
		found[e.split] = true
	}
	for i, name := range splitNames {
		if found[i] {
			names = append(names, name)
		}
	}
	return names, true, nil
}
