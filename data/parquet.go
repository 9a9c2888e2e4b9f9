package data

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/names"
)

// ParquetConfig says how tables of images are read.
type ParquetConfig struct {
	Image, Caption string // columns
	// samples that are mixed with each other in training, see Parted; twice as many encoded images are kept in memory
	Shuffle int
}

// Parquet is a Dataset of the rows of .parquet files, each an image with its captions. Captions and
// paths are in memory, images are read page by page.
type Parquet struct {
	cfg    ParquetConfig
	root   string
	tables []*parquetTable
	groups []int // first row of each row group
	pages  table.Pages
	opt    Options
	fileRows
}

// parquetTable is one file.
type parquetTable struct {
	texts  packed        // of each row the path of its image ("": none) and its captions
	groups []rowGroup    // those with rows
	images *table.Column // bytes of the images; nil: images are files
	empty  int           // captions that were dropped
}

// rowGroup is rows of a file that lie together.
type rowGroup struct{ number, first int }

var (
	_ Cached = (*Parquet)(nil)
	_ Parted = (*Parquet)(nil)
)

// OpenParquet opens .parquet files as Hugging Face's datasets exports them. The column of images is a group
// of bytes and path, bytes, or a path, which starts from root unless absolute; that of captions is a string or a list
// of strings. An error names the file and the columns it has.
func OpenParquet(root string, paths []string, cfg ParquetConfig, opt Options) (*Parquet, error) {
	if len(paths) == 0 {
		return nil, errors.New("data: no table given: set data.parquet.train_files, val_files or test_files")
	}
	opt = opt.Counting()
	p := &Parquet{cfg: cfg, root: root, opt: opt, fileRows: newFileRows(paths, 1, opt)}
	p.pages.Most = 2 * max(cfg.Shuffle, 1) // at the end of samples that are mixed, the next ones are begun
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
	for _, g := range x.groups {
		p.groups = append(p.groups, p.Len()+g.first)
	}
	p.tables = append(p.tables, x)
	p.fileRows.add(&x.texts, x.empty)
	return nil
}

// readTable reads what is kept in memory of a file.
func readTable(r io.ReaderAt, size int64, cfg ParquetConfig, opt Options) (*parquetTable, error) {
	file, err := table.OpenParquet(r, size)
	if err != nil {
		return nil, err
	}
	images, path, err := file.Picture(cfg.Image)
	if err != nil {
		return nil, fmt.Errorf("data.parquet.image: %w", err)
	}
	caption, err := file.Strings(cfg.Caption)
	if err != nil {
		return nil, fmt.Errorf("data.parquet.caption: %w", err)
	}
	x := &parquetTable{images: images}
	for g, n := range file.Groups() {
		row := x.texts.len()
		if n == 0 {
			continue
		}
		if n < 0 || n > int64(math.MaxInt32-row) {
			return nil, fmt.Errorf("a row group has %d rows: at most %d are read of a file: write several", n,
				math.MaxInt32)
		}
		x.groups = append(x.groups, rowGroup{g, row})
		paths, garbled, err := path.Strings(g, n)
		if err != nil {
			return nil, err
		}
		captions, more, err := caption.Strings(g, n)
		if err != nil {
			return nil, err
		}
		opt.Account.Changed("text", garbled+more, "bytes that are not UTF-8, read as U+FFFD")
		for i, texts := range captions {
			x.add(append(paths[i], "")[0], texts, opt.Clean)
		}
	}
	return x, nil
}

// add adds a row with the path of its image.
func (x *parquetTable) add(path string, captions []string, clean string) {
	list := []string{path}
	for _, c := range captions {
		if blank(clean, c) {
			x.empty++
			continue
		}
		list = append(list, c)
	}
	x.texts.add(list...)
}

// of returns the table of row i.
func (p *Parquet) of(i int) *parquetTable {
	file, _ := p.at(i)
	return p.tables[file]
}

// Name is the path of a table and the number of the row in it, or the path of an image that is a file.
func (p *Parquet) Name(i int) string {
	if p.of(i).images == nil {
		return p.path(i)
	}
	file, in := p.at(i)
	return fmt.Sprintf("%s: row %d", p.files.paths[file], in)
}

// entry names row i by the path that it gives, if any, and not by its table.
func (p *Parquet) entry(i int) Entry {
	if p.of(i).images == nil {
		return Entry{Name: p.path(i), Rest: p.Captions(i), Files: []string{p.path(i)}}
	}
	return Entry{Name: p.text(i, 0), Rest: p.Captions(i), Files: []string{p.container(i)}, Shared: true}
}

// path of an image that is a file.
func (p *Parquet) path(i int) string {
	if path := p.text(i, 0); p.of(i).images == nil && path != "" {
		return names.Under(p.root, path)
	}
	return p.container(i)
}

// Parts are the row groups.
func (p *Parquet) Parts() ([]int, int) { return p.groups, p.cfg.Shuffle }

// Image reads and decodes the image of row i, or takes it from the cache.
func (p *Parquet) Image(i int) (*transform.Image, error) { return p.imageTimed(i, nil) }

// place of the image of row i. The part of a table has the state of the file with it that the row names, of which the
// image is where it has no bytes.
func (p *Parquet) place(i int) (path, part string) {
	file, in := p.at(i)
	named := p.text(i, 0)
	if p.tables[file].images == nil {
		return names.Under(p.root, named), ""
	}
	part = strconv.Itoa(in)
	if named != "" {
		if st, err := identity.StampOf(names.Under(p.root, named)); err == nil {
			part += " " + st.Shared()
		}
	}
	return p.files.paths[file], part
}

func (p *Parquet) imageTimed(i int, w *images.Stopwatch) (*transform.Image, error) {
	file, in := p.at(i)
	x, path := p.tables[file], p.text(i, 0)
	if x.images == nil {
		if path == "" {
			return nil, fmt.Errorf("data: %s: row %d has no path of an image", p.files.paths[file], in)
		}
		return p.cache.image(names.Under(p.root, path), p.opt.MaxPixels, w)
	}
	part := ""
	if p.cache != nil {
		_, part = p.place(i)
	}
	return p.cache.part(p.files.paths[file], part, p.opt.MaxPixels, w, func() (*transform.Image, error) {
		g := x.groups[sort.Search(len(x.groups), func(k int) bool { return x.groups[k].first > in })-1]
		b, err := p.pages.Get(x.images, g.number, in-g.first)
		if err == nil && len(b) == 0 && path != "" {
			return images.DecodeFileTimed(names.Under(p.root, path), p.opt.MaxPixels, w)
		}
		if err == nil && len(b) == 0 {
			err = errors.New("the row has no image")
		}
		return p.decoded(p.Name(i), b, err, w)
	})
}

// Close closes the files. The data set opens them again when it is used.
func (p *Parquet) Close() error {
	p.pages.Close()
	p.files.close()
	return nil
}
