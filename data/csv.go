package data

import (
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/names"
)

// CSVConfig says how tables of pairs are read.
type CSVConfig struct {
	Image, Caption string // columns; without a caption's the id is the caption
	ID             string // column of ids; empty: every image has its own
	Camera, Role   string // columns of cameras and roles (query, gallery or nothing); empty: none are known
	Comma          rune   // between columns; 0: a tab in files that end in .tsv, else a comma
	LazyQuotes     bool   // see encoding/csv
	// quotation marks are characters like any others: a line is a row, and each separator in it ends a cell
	Unquoted bool
}

// Table is a Dataset of the images and captions that tables of pairs name. It keeps where the rows lie,
// not what they say: about 20 bytes for each, and 80 while it is opened. Its files stay open until Close.
type Table struct {
	cfg       CSVConfig
	root      string
	files     []tableFile
	images    []uint32 // first row of each image
	ends      []uint32 // of the captions of each image in rows
	rows      []uint32 // of captions
	ids       []int64  // of images; nil: their places
	cameras   []int32  // of images, numbered in the order in which they come, -1 for none; nil: none are known
	roles     []Role   // of images; nil: none are known
	turned    []uint32 // images whose paths have backslashes for slashes, in order
	empty     int
	clean     string // see Clean
	maxPixels int
	keeper
	tally
}

// tableFile is one of the tables.
type tableFile struct {
	*table.Text
	at    columns
	first int // row
}

// columns are the places of columns.
type columns struct{ image, caption, id, camera, role int }

var (
	_ Cached = (*Table)(nil)
	_ Seen   = (*Table)(nil)
)

// maxRows is the number of rows that a Table can have.
const maxRows = math.MaxUint32

// LoadCSV opens tables with a row for each pair of an image and a caption, behind a line that names
// the columns. Paths of images start from root unless absolute; rows with the same path are one image with
// all their captions. With cfg.ID they must agree on the id; where every id is a whole number these are the ids,
// else ids number the distinct texts from 0. An error names the file and the line.
func LoadCSV(root string, tables []string, cfg CSVConfig, opt Options) (_ *Table, err error) {
	opt = opt.Counting()
	t := &Table{cfg: cfg, root: root, clean: opt.Clean, maxPixels: opt.MaxPixels, tally: tally{opt.Account}}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	b := tableBuilder{t: t, images: map[[16]byte]uint32{}, cameras: map[string]int32{}, numbers: true, opt: opt}
	if cfg.Caption == "" && cfg.ID == "" {
		return nil, errors.New(
			"data: table: rows have neither a caption nor an id: set data.csv.caption or data.csv.id")
	}
	for _, path := range tables {
		if st, err := os.Stat(path); err == nil { // else opening says why not
			b.size += st.Size()
		}
	}
	for _, path := range tables {
		f, size, err := files.Open(path, 0)
		if err != nil {
			return nil, fmt.Errorf("data: table: %w", err)
		}
		if err := b.read(path, f, size); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if b.done += size; opt.Progress != nil {
			opt.Progress(int(b.done>>20)+1, int(b.size>>20)+1)
		}
	}
	return t, b.finish()
}

// tableBuilder collects the rows of tables.
type tableBuilder struct {
	t       *Table
	images  map[[16]byte]uint32 // by a hash of the path
	cameras map[string]int32    // numbers
	owner   []uint32            // image of each row; noImage: its caption is blank
	keys    []idKey             // of images, only with cfg.ID
	numbers bool                // every key is a whole number

	opt        Options
	done, size int64 // bytes of the tables that are read, and of all

	file  tableFile  // that is read
	names names.List // of images in it
	width int        // its columns; 0: the line that names them is still to come
	line  int        // of the row that is added
}

// idKey is an id as it is written.
type idKey struct {
	sum    [16]byte
	number int64
}

const noImage = math.MaxUint32

func sum16(s string) [16]byte {
	h := sha256.Sum256([]byte(s))
	return [16]byte(h[:16])
}

// read adds the rows of a file of size bytes.
func (b *tableBuilder) read(path string, r io.ReaderAt, size int64) (err error) {
	cfg := b.t.cfg
	layout := table.Layout{Separator: cfg.Comma, Lazy: cfg.LazyQuotes, Unquoted: cfg.Unquoted}
	if layout.Separator == 0 {
		layout.Separator = ','
		if strings.EqualFold(filepath.Ext(path), ".tsv") {
			layout.Separator = '\t'
		}
	}
	b.file = tableFile{first: len(b.owner)}
	if b.file.Text, err = table.NewText(path, r, size, layout); err != nil {
		return err
	}
	b.file.Index = true
	b.names, b.width = names.List{Root: b.t.root}, 0
	err = b.file.Scan(func(line int, cells []string) error {
		if b.line = line; b.width > 0 {
			return b.wrong(b.row(cells))
		}
		b.width = len(cells)
		b.file.at, err = b.t.columns(cells, layout.Separator)
		return b.wrong(err)
	})
	switch {
	case err != nil:
		return csvReason(err, cfg.Unquoted)
	case b.width == 0:
		return table.Whole(path, errors.New("it is empty: begin with a line that names the columns"))
	case b.file.Rows() == 0:
		return table.Whole(path, errors.New("it has no row behind the line that names the columns"))
	}
	b.opt.Account.Changed(rowUnit, b.names.Turned, "backslashes in the path, which are read as slashes", path)
	b.t.files = append(b.t.files, b.file)
	return nil
}

// row takes a row of the table that is read.
func (b *tableBuilder) row(cells []string) error {
	if len(cells) != b.width {
		return csv.ErrFieldCount
	}
	if n := len(b.owner); b.opt.Progress != nil && n%1000 == 0 {
		b.opt.Progress(int((b.done+b.file.Offset())>>20), int(b.size>>20)+1)
	}
	return b.add(cells, b.file.at, len(b.owner))
}

// wrong is an error with the place of the row that is added.
func (b *tableBuilder) wrong(err error) error {
	if err == nil {
		return nil
	}
	return &table.LineError{File: b.file.Path(), Line: b.line, Err: err}
}

// place is that of the row that is added.
func (b *tableBuilder) place() string { return fmt.Sprintf("%s: line %d", b.file.Path(), b.line) }

// rowUnit is what an account of tables counts.
const rowUnit = "row"

// unquotedHint is what reads a table whose quotation marks are only characters.
const unquotedHint = `data.csv.quoting = "none" if the table has no quoting`

// csvReason says of a row that cannot be told apart what to do.
func csvReason(err error, unquoted bool) error {
	for _, x := range []struct {
		is   error
		cure string
	}{
		{csv.ErrBareQuote, ": put the cell in quotation marks and write its own twice, or set " + unquotedHint},
		{csv.ErrQuote, ": a cell that begins with a quotation mark ends with one, and its own are written twice; or set " + unquotedHint},
		{table.ErrOpenCell, ", so put such a cell in quotation marks and write its own twice, or set " + unquotedHint},
		{csv.ErrFieldCount, "it has more or fewer columns than the first line: put cells that hold the separator in quotation marks"},
	} {
		at, ok := errors.AsType[*table.LineError](err)
		if !ok || !errors.Is(err, x.is) {
			continue
		}
		switch {
		case x.is != csv.ErrFieldCount:
			x.cure = x.is.Error() + x.cure
		case unquoted:
			x.cure = "it has more or fewer columns than the first line: without quoting (data.csv.quoting) no cell " +
				"can hold the separator"
		}
		return &table.LineError{File: at.File, Line: at.Line, Err: errors.New(x.cure)}
	}
	return err
}

// columns finds the columns in the line that names them.
func (t *Table) columns(header []string, comma rune) (at columns, err error) {
	names := make([]string, len(header))
	for i, name := range header {
		names[i] = strings.TrimSpace(name)
	}
	find := func(key, name string) int {
		i := slices.Index(names, name)
		switch {
		case err != nil:
		case i < 0 && !utf8.ValidString(header[0]):
			err = errors.New(notUTF8)
		case i < 0:
			err = fmt.Errorf("data.csv.%s: there is no column %q: the columns are %q, by the separator %q", key, name,
				names, comma)
		case slices.Contains(names[i+1:], name):
			err = fmt.Errorf("data.csv.%s: there are two columns %q: rename one", key, name)
		}
		return i
	}
	optional := func(key, name string) int {
		if name == "" {
			return -1
		}
		return find(key, name)
	}
	at = columns{image: find("image", t.cfg.Image), caption: optional("caption", t.cfg.Caption),
		id:     optional("id", t.cfg.ID),
		camera: optional("camera", t.cfg.Camera), role: optional("role", t.cfg.Role)}
	if at.caption < 0 {
		at.caption = at.id
	}
	return at, err
}

const notUTF8 = "it is not UTF-8: save the table as UTF-8 (iconv -f LATIN1 -t UTF-8 does it of what is Latin-1)"

// add takes row number n.
func (b *tableBuilder) add(row []string, at columns, n int) error {
	if n == maxRows {
		return fmt.Errorf("more than %d rows: store them as shards or as parquet files", uint64(maxRows))
	}
	path := strings.TrimSpace(row[at.image])
	if path == "" {
		return fmt.Errorf("column %q is empty: want the path of an image", b.t.cfg.Image)
	}
	before := b.names.Turned
	name := b.names.Name(path)
	if b.opt.Keep != nil && !b.opt.Keep(name) {
		b.owner = append(b.owner, noImage)
		return nil
	}
	sum := sum16(names.Below(b.t.root, name))
	image, known := b.images[sum]
	if !known {
		image = uint32(len(b.t.images))
		b.images[sum] = image
		b.t.images = append(b.t.images, uint32(n))
		if b.names.Turned > before {
			b.t.turned = append(b.t.turned, image)
		}
	}
	if at.id >= 0 {
		id := strings.TrimSpace(row[at.id])
		key := idKey{sum: sum16(id)}
		number, err := strconv.ParseInt(id, 10, 64)
		key.number = number
		b.numbers = b.numbers && err == nil
		switch {
		case id == "":
			return fmt.Errorf("column %q is empty: want the id of the image, or set data.csv.id = \"\"", b.t.cfg.ID)
		case !known:
			b.keys = append(b.keys, key)
		case b.keys[image] != key:
			return fmt.Errorf("image %q has another id here (%q) than in an earlier row: one image, one id", path, id)
		}
	}
	if err := b.seen(row, at, int(image), known, path); err != nil {
		return err
	}
	if !utf8.ValidString(row[at.caption]) {
		return fmt.Errorf("column %q: %s", cmp.Or(b.t.cfg.Caption, b.t.cfg.ID), notUTF8)
	}
	if blank(b.t.clean, row[at.caption]) {
		b.t.empty++
		b.opt.Account.LeftOut(rowUnit, 1, emptyCaption, b.place())
		image = noImage
	} else {
		b.opt.Account.Used(rowUnit, 1)
	}
	if b.t.cfg.LazyQuotes && slices.ContainsFunc(row, func(cell string) bool { return strings.Contains(cell, "\n") }) {
		b.opt.Account.Changed(rowUnit, 1, "cells that span lines, which may be rows merged by data.csv.lazy_quotes",
			b.place())
	}
	b.owner = append(b.owner, image)
	return nil
}

// countBare counts the images without a caption, before t.ends is made of their numbers.
func (t *Table) countBare() {
	n := 0
	for _, captions := range t.ends {
		if captions == 0 {
			n++
		}
	}
	t.Account().Changed(ImageUnit, n, noCaption)
}

// finish sorts the rows by image.
func (b *tableBuilder) finish() error {
	t := b.t
	if len(t.images) == 0 && b.opt.Keep != nil && len(b.owner) > 0 {
		return errors.New("data: no image of the tables is in the split: raise data.split, or name files of its own")
	}
	if len(t.images) == 0 {
		return errors.New("data: no table given: set data.csv.train_files, val_files or test_files")
	}
	b.images = nil
	t.images = slices.Clip(t.images)
	t.ends = make([]uint32, len(t.images))
	for _, image := range b.owner {
		if image != noImage {
			t.ends[image]++
		}
	}
	t.Account().Used(ImageUnit, len(t.images))
	t.countBare()
	sum := uint32(0)
	for i, n := range t.ends { // where the rows of each image start
		t.ends[i], sum = sum, sum+n
	}
	t.rows = make([]uint32, sum)
	for row, image := range b.owner {
		if image != noImage {
			t.rows[t.ends[image]] = uint32(row)
			t.ends[image]++
		}
	}
	if b.keys != nil {
		t.ids = make([]int64, len(b.keys))
		known := map[[16]byte]int64{}
		for i, k := range b.keys {
			if t.ids[i] = k.number; b.numbers {
				continue
			}
			if _, ok := known[k.sum]; !ok {
				known[k.sum] = int64(len(known))
			}
			t.ids[i] = known[k.sum]
		}
	}
	return nil
}
