package regions

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/geoalign/geoalign/data/table"
)

// attentionTable is the .tsv of bottom-up attention (Anderson et al. 2018): a line for each image of image_id, image_w,
// image_h, num_boxes, boxes and features, the last two float32 in base64. It keeps where lines lie and reads one when
// its image is used.
type attentionTable struct {
	*table.Text
	keys        []string // image_id
	lines       []table.Line
	most, width int
	bytes       sync.Pool
}

// Limits of a table: one with more is not a table of regions.
const (
	maxTableLine = 256 << 20
	maxTableHead = 1024 // bytes of the first four columns
	maxRegions   = 1 << 16
)

// tableColumns is the number of columns.
const tableColumns = 6

// openTable finds the lines of a table. Of an image with two lines the first counts.
func openTable(path string) (Features, error) {
	f, err := table.OpenText(path, table.Layout{})
	if err != nil {
		return nil, fmt.Errorf("regions: %w", err)
	}
	t := &attentionTable{Text: f}
	t.bytes.New = func() any { return new([]byte) }
	if err = t.index(); err == nil {
		err = t.measure()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

// index finds the lines.
func (t *attentionTable) index() error {
	seen := map[string]bool{}
	for l, err := range t.Lines(maxTableLine, maxTableHead) {
		if err == nil && strings.TrimSpace(l.Text) == "" {
			continue
		}
		var h tableRow
		if err == nil {
			h, err = parseTableHead([]byte(l.Text))
			if err != nil {
				err = l.Wrong(err)
			}
		}
		if err != nil {
			return fmt.Errorf("regions: %w", err)
		}
		if !seen[h.id] {
			seen[h.id] = true
			l.Text = ""
			t.keys, t.lines, t.most = append(t.keys, h.id), append(t.lines, l), max(t.most, h.boxes)
		}
	}
	if t.most == 0 {
		return fmt.Errorf("regions: %s: no image has a region", t.Path())
	}
	return nil
}

// tableRow is the begin of a line.
type tableRow struct {
	id            string
	width, height float32 // of the image in pixels
	boxes         int
}

// parseTableHead reads the first four columns.
func parseTableHead(head []byte) (h tableRow, err error) {
	cells := bytes.SplitN(head, []byte("\t"), 5)
	if len(cells) < 5 {
		return h, fmt.Errorf("it has no %d columns with tabs between: want image_id, image_w, image_h, num_boxes, "+
			"boxes, features; a file that is cut short must be copied again", tableColumns)
	}
	if h.id = string(bytes.TrimSpace(cells[0])); h.id == "" {
		return h, errors.New("its image_id is empty")
	}
	var sizes [3]int
	for i, name := range []string{"image_w", "image_h", "num_boxes"} {
		n, err := strconv.ParseInt(string(bytes.TrimSpace(cells[i+1])), 10, 32)
		if err != nil || n < 0 || i < 2 && n == 0 {
			return h, fmt.Errorf("its %s is %.20q: want a whole number", name, cells[i+1])
		}
		sizes[i] = int(n)
	}
	h.width, h.height, h.boxes = float32(sizes[0]), float32(sizes[1]), sizes[2]
	if h.boxes > maxRegions {
		return h, fmt.Errorf("its num_boxes is %d: at most %d can be read", h.boxes, maxRegions)
	}
	return h, nil
}

// measure finds the width of the features in the first line that has some.
func (t *attentionTable) measure() error {
	var first error
	for i := range t.lines {
		err := t.line(i, func(h tableRow, _, features []byte) error {
			n := base64.StdEncoding.DecodedLen(len(features)) - bytes.Count(features[max(0, len(features)-2):],
				[]byte("="))
			if h.boxes > 0 && n > 0 && n%(4*h.boxes) == 0 {
				t.width = n / (4 * h.boxes)
				return nil
			}
			if h.boxes > 0 {
				return t.wrong(i, fmt.Errorf("its features have %d bytes, which are not rows of %d regions", n,
					h.boxes))
			}
			return nil
		})
		if first = errors.Join(first, err); t.width > 0 || first != nil && i > 100 {
			break
		}
	}
	if t.width == 0 {
		return first
	}
	return nil
}

// wrong says of which image an error is.
func (t *attentionTable) wrong(i int, err error) error {
	return fmt.Errorf("regions: %s: line %d, image %s: %w", t.Path(), t.lines[i].Number, t.keys[i], err)
}

// line calls f with the columns of the line of image i.
func (t *attentionTable) line(i int, f func(h tableRow, boxes, features []byte) error) error {
	b := t.bytes.Get().(*[]byte)
	defer t.bytes.Put(b)
	size := int(t.lines[i].Size)
	if cap(*b) < size {
		*b = make([]byte, size)
	}
	*b = (*b)[:size]
	if n, err := t.ReadAt(*b, t.lines[i].At); n < size {
		return t.wrong(i, fmt.Errorf("it cannot be read any more: %w", err))
	}
	h, err := parseTableHead((*b)[:min(size, maxTableHead)])
	if err != nil {
		return t.wrong(i, err)
	}
	cells := bytes.Split(bytes.TrimRight(*b, "\r\n"), []byte("\t"))
	if len(cells) != tableColumns {
		return t.wrong(
			i, fmt.Errorf("it has %d columns, not %d: where it is the last line the file is cut short, so copy it "+
				"again", len(cells), tableColumns))
	}
	return f(h, cells[4], cells[5])
}

func (t *attentionTable) Len() int       { return len(t.lines) }
func (t *attentionTable) Most() int      { return t.most }
func (t *attentionTable) Width() int     { return t.width }
func (t *attentionTable) Boxed() bool    { return true }
func (t *attentionTable) Keys() []string { return t.keys }

func (t *attentionTable) Read(i int, features, boxes []float32) (n int, err error) {
	err = t.line(i, func(h tableRow, placed, rows []byte) error {
		n = min(h.boxes, len(features)/t.width)
		if err := decodeFloats(features[:n*t.width], rows, h.boxes*t.width); err != nil {
			return t.wrong(i, fmt.Errorf("its features: %w", err))
		}
		clear(features[n*t.width:])
		if err := checkFinite(features[:n*t.width], t.Path(), t.lines[i].Number, t.width); err != nil {
			return err
		}
		if boxes == nil {
			return nil
		}
		if err := decodeFloats(boxes[:4*n], placed, 4*h.boxes); err != nil {
			return t.wrong(i, fmt.Errorf("its boxes: %w", err))
		}
		clear(boxes[4*n:])
		for k := range boxes[:4*n] {
			boxes[k] /= [2]float32{h.width, h.height}[k%2]
		}
		return checkBoxes(boxes[:4*n], BoxError{Path: t.Path(), Row: t.lines[i].Number})
	})
	if err != nil {
		n = 0
	}
	return n, err
}

// decodeFloats reads the first of n float32 in base64.
func decodeFloats(dst []float32, text []byte, n int) error {
	b := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	got, err := base64.StdEncoding.Decode(b, text)
	switch {
	case err != nil:
		return fmt.Errorf("%w: the line is damaged or cut short", err)
	case got != 4*n:
		return fmt.Errorf("%d bytes instead of %d: the line is damaged or cut short, or its num_boxes is wrong", got,
			4*n)
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}
