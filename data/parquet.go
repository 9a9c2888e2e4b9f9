package data

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/internal/parquetfile"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
)

// ParquetConfig says how tables of images are read.
type ParquetConfig struct {
	Image, Caption string // columns
	Shuffle        int    // samples that are mixed with each other in training, see Parted; twice as many encoded images are kept in memory
}

// Parquet is a Dataset of the rows of .parquet files, each an image with its captions. Captions and
// paths are in memory, images are read page by page.
type Parquet struct {
	cfg    ParquetConfig
	root   string
	files  handles
	tables []*parquetTable
	first  []int // row of each table, and the end
	groups []int // first row of each row group
	empty  int
	pages  pageCache
	opt    Options
	keeper
	tally
}

// parquetTable is one file.
type parquetTable struct {
	texts   packed               // of each row the path of its image ("": none) and its captions
	groups  []int                // first row of each row group
	images  []*parquetfile.Chunk // bytes of the images of each row group; nil: images are files
	ordinal int                  // of the first row group among those of all tables
}

var (
	_ Cached = (*Parquet)(nil)
	_ Parted = (*Parquet)(nil)
)

// OpenParquet opens .parquet files as Hugging Face's datasets exports them. The column of images is a group
// of bytes and path, bytes, or a path, which starts from root unless absolute; that of captions is a string or a list of
// strings. An error names the file and the columns it has.
func OpenParquet(root string, paths []string, cfg ParquetConfig, opt Options) (*Parquet, error) {
	if len(paths) == 0 {
		return nil, errors.New("data: no table given: set data.parquet.train_files, val_files or test_files")
	}
	opt = opt.counting()
	p := &Parquet{cfg: cfg, root: root, opt: opt, tally: tally{opt.Account}}
	p.files = handles{paths: paths, files: make([]identity.Stamp, len(paths))}
	p.pages.most = 2 * max(cfg.Shuffle, 1) // at the end of samples that are mixed, the next ones are begun
	for i, path := range paths {
		if err := p.open(i); err != nil {
			return nil, errors.Join(fmt.Errorf("data: table %s: %w", path, err), p.Close())
		}
		if opt.Progress != nil {
			opt.Progress(i+1, len(paths))
		}
	}
	if p.Len() == 0 {
		return nil, fmt.Errorf("data: the %d tables have no rows", len(paths))
	}
	for i := range p.Len() {
		countImage(p.account, p.NumCaptions(i), "")
	}
	p.account.LeftOut(CaptionUnit, p.empty, emptyCaption)
	return p, nil
}

// fileReader reads one of the files.
type fileReader struct {
	h *handles
	i int
}

// ReadAt implements io.ReaderAt.
func (r fileReader) ReadAt(b []byte, off int64) (int, error) { return r.h.readAt(r.i, b, off) }

// open reads the captions and paths of file i.
func (p *Parquet) open(i int) (err error) {
	defer parquetfile.Recovered(&err)
	f, size, err := files.Open(p.files.paths[i], 0)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	p.files.files[i] = identity.StampOfInfo(st)
	x, err := readTable(fileReader{&p.files, i}, size, p.cfg, p.opt)
	if err != nil {
		return err
	}
	n := p.Len()
	if p.first == nil {
		p.first = []int{0}
	}
	for _, g := range x.groups {
		p.groups = append(p.groups, n+g)
	}
	x.ordinal = len(p.groups) - len(x.groups)
	p.tables, p.first = append(p.tables, x.parquetTable), append(p.first, n+x.texts.len())
	p.empty += x.empty
	return nil
}

// tableReader reads what is kept in memory of a file.
type tableReader struct {
	*parquetTable
	empty int
}

func readTable(r io.ReaderAt, size int64, cfg ParquetConfig, opt Options) (x tableReader, err error) {
	defer parquetfile.Recovered(&err)
	x = tableReader{parquetTable: &parquetTable{}}
	file, err := parquetfile.Open(r, size, parquet.ReadBufferSize(1<<18))
	if err != nil {
		return x, err
	}
	image, path, err := imageColumns(file.Root(), cfg.Image)
	if err != nil {
		return x, err
	}
	caption, err := captionColumn(file.Root(), cfg.Caption)
	if err != nil {
		return x, err
	}
	chunks := make([][]*parquetfile.Chunk, 3)
	for i, leaf := range []*parquet.Column{image, path, caption} {
		if leaf == nil {
			continue
		}
		if chunks[i], err = parquetfile.Chunks(file, leaf); err != nil {
			return x, err
		}
	}
	row := 0
	for g, group := range file.RowGroups() {
		n := int(group.NumRows())
		if n <= 0 || n > math.MaxInt32-row {
			if n == 0 {
				continue
			}
			return x, fmt.Errorf("a row group has %d rows: at most %d are read of a file: write several", n, math.MaxInt32)
		}
		if x.groups = append(x.groups, row); image != nil {
			x.images = append(x.images, chunks[0][g])
		}
		var paths [][]string
		if path != nil {
			if paths, err = readStrings(chunks[1][g], path, n, opt.Account); err != nil {
				return x, err
			}
		}
		captions, err := readStrings(chunks[2][g], caption, n, opt.Account)
		if err != nil {
			return x, err
		}
		for i := range n {
			list := []string{""}
			if path != nil && len(paths[i]) > 0 {
				list[0] = paths[i][0]
			}
			for _, c := range captions[i] {
				if blank(opt.Clean, c) {
					x.empty++
					continue
				}
				list = append(list, c)
			}
			x.texts.add(list...)
		}
		row += n
	}
	return x, nil
}

// topNames are the columns of a file.
func topNames(root *parquet.Column) (names []string) {
	for _, c := range root.Columns() {
		names = append(names, c.Name())
	}
	return names
}

// imageColumns finds the bytes and the paths of images; nil: none.
func imageColumns(root *parquet.Column, name string) (bytes, path *parquet.Column, err error) {
	c := root.Column(name)
	if c == nil {
		return nil, nil, fmt.Errorf("data.parquet.image: there is no column %q: the columns are %q", name, topNames(root))
	}
	is := func(c *parquet.Column) bool {
		return c != nil && c.Leaf() && c.Type().Kind() == parquet.ByteArray && c.MaxRepetitionLevel() == 0
	}
	switch {
	case is(c) && isText(c):
		return nil, c, nil
	case is(c):
		return c, nil, nil
	case !c.Leaf():
		if bytes, path = c.Column("bytes"), c.Column("path"); !is(path) {
			path = nil
		}
		if is(bytes) {
			return bytes, path, nil
		}
	}
	return nil, nil, fmt.Errorf("data.parquet.image: column %q is neither a group with bytes, nor bytes, nor a path (got %s): export images with datasets' to_parquet", name, c)
}

// isText says whether a column holds strings, not bytes.
func isText(c *parquet.Column) bool {
	t := c.Type().LogicalType()
	if t == nil {
		return false
	}
	_, ok := t.Value.(*format.StringType)
	return ok
}

// captionColumn finds the strings of captions.
func captionColumn(root *parquet.Column, name string) (*parquet.Column, error) {
	c := root.Column(name)
	if c == nil {
		return nil, fmt.Errorf("data.parquet.caption: there is no column %q: the columns are %q", name, topNames(root))
	}
	leaf := c
	for len(leaf.Columns()) == 1 {
		leaf = leaf.Columns()[0]
	}
	if !leaf.Leaf() || leaf.Type().Kind() != parquet.ByteArray || leaf.MaxRepetitionLevel() > 1 {
		return nil, fmt.Errorf("data.parquet.caption: column %q is neither a string nor a list of strings (got %s)", name, c)
	}
	return leaf, nil
}

// textUnit is what an account counts of texts before they are captions.
const textUnit = "text"

// readStrings returns the strings of each of the n rows of a row group; what is null is left out.
func readStrings(chunk *parquetfile.Chunk, leaf *parquet.Column, n int, a *account.Account) (rows [][]string, err error) {
	pages, err := chunk.Pages()
	if err != nil {
		return nil, err
	}
	rows = make([][]string, 0, min(n, 1<<16))
	err = eachPage(pages, func(values []parquet.Value) error {
		for _, v := range values {
			if v.RepetitionLevel() == 0 {
				rows = append(rows, nil)
			}
			switch {
			case len(rows) == 0 || len(rows) > n:
				return errors.New("its values are not those of its rows")
			case v.IsNull():
			case !utf8.Valid(v.ByteArray()):
				a.Changed(textUnit, 1, "bytes that are no UTF-8, read as U+FFFD")
				rows[len(rows)-1] = append(rows[len(rows)-1], strings.ToValidUTF8(string(v.ByteArray()), "\uFFFD"))
			default:
				rows[len(rows)-1] = append(rows[len(rows)-1], string(v.ByteArray()))
			}
		}
		return nil
	})
	if err == nil && len(rows) != n {
		err = fmt.Errorf("it has %d rows and its row group %d", len(rows), n)
	}
	if err != nil {
		return nil, parquetfile.Fault(fmt.Errorf("column %q: %w", leaf.Path()[0], err))
	}
	return rows, nil
}

// eachPage calls f with the values of pages, a part at a time, and closes them.
func eachPage(pages parquet.Pages, f func(values []parquet.Value) error) (err error) {
	defer func() { err = errors.Join(err, pages.Close()) }()
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		err = eachValue(page, f)
		parquet.Release(page)
		if err != nil {
			return err
		}
	}
}

// eachValue calls f with the values of a page, a part at a time.
func eachValue(page parquet.Page, f func(values []parquet.Value) error) error {
	buffer := make([]parquet.Value, 256)
	for r := page.Values(); ; {
		n, err := r.ReadValues(buffer)
		if err2 := f(buffer[:n]); err2 != nil {
			return err2
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// at returns the table of row i and the number of the row in it.
func (p *Parquet) at(i int) (x *parquetTable, table, in int) {
	k := sort.SearchInts(p.first, i+1) - 1
	return p.tables[k], k, i - p.first[k]
}

// Len is the number of rows.
func (p *Parquet) Len() int {
	if p.first == nil {
		return 0
	}
	return p.first[len(p.first)-1]
}

// Captions of row i.
func (p *Parquet) Captions(i int) []string {
	x, _, in := p.at(i)
	return x.texts.list(in, 1)
}

// NumCaptions is the number of captions of row i.
func (p *Parquet) NumCaptions(i int) int {
	x, _, in := p.at(i)
	first, end := x.texts.span(in)
	return int(end-first) - 1
}

// EmptyCaptions is the number of captions that were dropped because nothing of
// them is left after cleaning.
func (p *Parquet) EmptyCaptions() int { return p.empty }

// ImageID of row i is i.
func (p *Parquet) ImageID(i int) int64 { return int64(i) }

// Name is the path of a table and the number of the row in it, or the path of an image that is a file.
func (p *Parquet) Name(i int) string {
	x, k, in := p.at(i)
	if x.images == nil {
		return p.path(i)
	}
	return fmt.Sprintf("%s: row %d", p.files.paths[k], in)
}

// entry names row i by the path that it gives, if any, and not by its table.
func (p *Parquet) entry(i int) Entry {
	x, k, in := p.at(i)
	first, _ := x.texts.span(in)
	e := Entry{Name: x.texts.at(first), Rest: p.Captions(i), Files: []string{p.files.paths[k]}, Shared: true}
	if x.images == nil {
		e.Name = p.path(i)
		e.Files, e.Shared = []string{e.Name}, false
	}
	return e
}

// path of an image that is a file.
func (p *Parquet) path(i int) string {
	x, k, in := p.at(i)
	first, _ := x.texts.span(in)
	if path := x.texts.at(first); x.images == nil && path != "" {
		return under(p.root, path)
	}
	return p.files.paths[k]
}

// Parts are the row groups.
func (p *Parquet) Parts() ([]int, int) { return p.groups, p.cfg.Shuffle }

// Image reads and decodes the image of row i, or takes it from the cache.
func (p *Parquet) Image(i int) (*transform.Image, error) { return p.imageTimed(i, nil) }

// place of the image of row i. The part of a table has the state of the file with it that the row names, of which the image is where it
// has no bytes.
func (p *Parquet) place(i int) (path, part string) {
	x, k, in := p.at(i)
	first, _ := x.texts.span(in)
	file := x.texts.at(first)
	if x.images == nil {
		return under(p.root, file), ""
	}
	part = strconv.Itoa(in)
	if file != "" {
		if st, err := identity.StampOf(under(p.root, file)); err == nil {
			part += " " + st.Shared()
		}
	}
	return p.files.paths[k], part
}

func (p *Parquet) imageTimed(i int, w *Stopwatch) (*transform.Image, error) {
	x, k, in := p.at(i)
	first, _ := x.texts.span(in)
	path := x.texts.at(first)
	if x.images == nil {
		if path == "" {
			return nil, fmt.Errorf("data: %s: row %d has no path of an image", p.files.paths[k], in)
		}
		return p.cache.image(under(p.root, path), p.opt.MaxPixels, w)
	}
	part := ""
	if p.cache != nil {
		_, part = p.place(i)
	}
	return p.cache.part(p.files.paths[k], part, p.opt.MaxPixels, w, func() (*transform.Image, error) {
		b, err := p.bytes(x, in)
		if err == nil && len(b) == 0 && path != "" {
			return decodeFile(under(p.root, path), p.opt.MaxPixels, w)
		}
		if err == nil && len(b) == 0 {
			err = errors.New("the row has no image")
		}
		w.lap(StageRead)
		var m *transform.Image
		if err == nil {
			m, err = decode(b, p.opt.MaxPixels, w)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name(i), err)
		}
		return m, nil
	})
}

// bytes of the image of a row of a table.
func (p *Parquet) bytes(x *parquetTable, row int) ([]byte, error) {
	g, found := slices.BinarySearch(x.groups, row)
	if !found {
		g--
	}
	return p.pages.get(x.ordinal+g, row-x.groups[g], x.images[g])
}

// Close closes the files. The data set opens them again when it is used.
func (p *Parquet) Close() error {
	p.pages.close()
	p.files.close()
	return nil
}
