package embed

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/names"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
)

// Inputs name what EmbedFiles encodes: exactly one of Images, Texts and Rows.
type Inputs struct {
	Images string // folder, with those below it, or file with a path per line
	Texts  string // file with a text per line; blank lines are passed over
	Rows   string // file of features, or folder of them, for alignment heads; see features.OpenSource

	Payload  string // file with a JSON object per input of a list, of Texts or of Rows; empty: none
	Names    string // of Rows: file with a line per row that names it; empty: they are numbered
	Tensor   string // of Rows; empty: its only one
	Side     string // of Rows: image or text; empty: image
	Dims     int    // leading channels of features that rows have, see objectives.Matryoshka; 0: all
	Shard    int    // most inputs of a shard; 0: 100,000
	LeaveOut bool   // inputs that cannot be read are left out, with a note, and are not an error
}

// defaultShard is how many inputs a shard has.
const defaultShard = 100_000

// setDefaults fills in what is empty and checks the rest against a model.
func (in *Inputs) setDefaults(cfg config.Config) error {
	named := 0
	for _, s := range []string{in.Images, in.Texts, in.Rows} {
		if s != "" {
			named++
		}
	}
	if in.Shard == 0 {
		in.Shard = defaultShard
	}
	if in.Side == "" {
		in.Side = gallery.Image
	}
	stored, system := cfg.Has(section.Stored), cfg.Model.System
	bad := console.Argument
	switch {
	case named != 1:
		return bad("one of --images, --texts and --rows says what to embed (got %d of them)", named)
	case in.Shard < 1 || in.Shard > 1<<24:
		return bad("--shard must be 1 to %d rows (got %d)", 1<<24, in.Shard)
	case in.Side != gallery.Image && in.Side != gallery.Text:
		return bad("--side must be image or text (got %q)", in.Side)
	case in.Rows == "" && stored:
		return bad("model.system %q reads stored features: embed files of them with --rows", system)
	case in.Rows != "" && !stored:
		return bad("--rows needs a model of stored features (got model.system %q): embed its files with --images or --texts", system)
	case in.Names != "" && in.Rows == "":
		return bad("--names is of --rows: name a file of features")
	case in.Images != "" && cfg.Has(section.Sentences):
		return bad("model.system %q has no images: embed texts", system)
	case in.Texts != "" && cfg.Has(section.ImagesAlone):
		return bad("model.system %q has no texts: embed images", system)
	}
	return nil
}

// inputs are read some at a time, in an order that never changes.
type inputs interface {
	// next returns the next inputs, at most n, nil at the end.
	next(n int) (*part, error)
	// describe says what is read.
	describe(m *gallery.Manifest)
	account.Accounted
	io.Closer
}

// part is some inputs.
type part struct {
	gallery data.Gallery
	name    func(i int) string   // of input i; of a text its words
	line    func(i, row int) any // what the file of names says of input i
	sum     uint32               // checksum of the inputs; of images of names, sizes and times alone
	images  *imageFiles          // that are read; nil: the sum is of all that is read
}

// named sets the names of images or rows.
func (p *part) named(name func(i int) string) {
	p.name = name
	p.line = func(i, row int) any {
		return struct {
			Row  int    `json:"row"`
			Name string `json:"name"`
		}{row, name(i)}
	}
}

// openInputs opens what in names for a model of cfg, whose tokenizer may come later.
func openInputs(cfg config.Config, in Inputs, columns func() *data.Texts) (inputs, error) {
	open := func() (inputs, error) { return openRows(in, cfg.Data.CacheDir) }
	switch {
	case in.Images != "":
		open = func() (inputs, error) { return openImages(cfg, in.Images) }
	case in.Texts != "":
		open = func() (inputs, error) { return openTexts(cfg, in.Texts, columns) }
	}
	of, err := open()
	if err != nil {
		return nil, err
	}
	return withPayload(of, in)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// imageInputs are files of images.
type imageInputs struct {
	from, root      string
	size, maxPixels int
	input           transform.Input
	pull            func() (string, error, bool)
	stop            func()
	met             *account.Account
}

// noPictures refuses pictures by themselves where the image tower reads features of regions.
func noPictures(cfg config.Config) error {
	if !cfg.Has(section.Regions) {
		return nil
	}
	return console.Argument("model.image.style %q reads features of regions: a picture by itself has none; encode a split of data.kind = \"regions\"", encoders.StyleRegions)
}

// openImages opens a folder or a list of images.
func openImages(cfg config.Config, from string) (*imageInputs, error) {
	if err := noPictures(cfg); err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(from)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("--images: %w", err)
	}
	x := &imageInputs{from: abs, root: abs, size: cfg.Model.Image.Size, input: cfg.ImageInput(),
		maxPixels: cfg.Data.MaxPixels, met: account.New()}
	paths := images.Below(abs, x.met)
	if !st.IsDir() {
		x.root = filepath.Dir(abs)
		written := names.List{Root: x.root}
		paths = func(yield func(string, error) bool) {
			for l, err := range textLines(abs) {
				turned := written.Turned
				name := written.Name(l.Text)
				if err == nil {
					x.met.Used(images.FileUnit, 1)
					x.met.Changed(images.FileUnit, written.Turned-turned,
						"backslashes in the path, which are read as slashes", l.Text)
				}
				if !yield(filepath.FromSlash(name), err) || err != nil {
					return
				}
			}
		}
	}
	x.pull, x.stop = iter.Pull2(paths)
	return x, nil
}

// Account implements account.Accounted.
func (x *imageInputs) Account() *account.Account { return x.met }

func (x *imageInputs) describe(m *gallery.Manifest) {
	m.Side, m.Source, m.From, m.Root = gallery.Image, "images", x.from, x.root
	m.MaxPixels = x.maxPixels
}

// imageFiles are files of images by which a shard that was made of them is known again.
type imageFiles struct {
	names, paths []string
	stamps       string // sum of the names and stamps of all files, before they are read
	proven       bool   // no file has changed just before that
}

// stamped returns the sum of the names and stamps of the files, and whether these prove what the files hold.
func (f *imageFiles) stamped() (sum string, proven bool) {
	l, now := identity.NewList(), time.Now()
	proven = true
	for i, path := range f.paths {
		s, err := identity.StampOf(path)
		proven = proven && (err != nil || s.Proves(now))
		l.Add(f.names[i], s.String()) // the zero one of a file that is not there
	}
	return l.Sum().String(), proven
}

// contents reads the files and returns the sum of their names and bytes.
func (f *imageFiles) contents(ctx context.Context) (string, error) {
	l := identity.NewList()
	for i, path := range f.paths {
		sum, err := identity.Of(ctx, path)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil { // it is left out, or encoding it said so
			sum = identity.Sum{}
		}
		l.Add(f.names[i], sum.String())
	}
	return l.Sum().String(), nil
}

// next notes names, sizes and times of change, by which galleries of earlier versions know their images, and the files.
func (x *imageInputs) next(n int) (*part, error) {
	var files, paths []string
	p := &part{}
	for len(files) < n {
		name, err, ok := x.pull()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		size, changed := int64(-1), int64(0)
		if st, err := os.Stat(x.path(name)); err == nil {
			size, changed = st.Size(), st.ModTime().UnixNano()
		}
		files, paths = append(files, name), append(paths, x.path(name))
		p.sum = crc32.Update(p.sum, castagnoli, fmt.Appendf(nil, "%s\x00%d\x00%d\n", name, size, changed))
	}
	if len(files) == 0 {
		return nil, nil
	}
	p.images = &imageFiles{names: slices.Clone(files), paths: paths}
	p.images.stamps, p.images.proven = p.images.stamped()
	p.gallery = listedImages{len(files), x.size, x.input, func(i int) (*transform.Image, error) {
		if !utf8.ValidString(files[i]) { // a gallery could not say which file it is
			return nil, fmt.Errorf("%s: the name is not UTF-8: rename the file", x.path(files[i]))
		}
		return images.DecodeFile(x.path(files[i]), x.maxPixels)
	}}
	p.named(func(i int) string { return files[i] })
	return p, nil
}

func (x *imageInputs) path(name string) string { return names.Under(x.root, name) }

func (x *imageInputs) Close() error { x.stop(); return nil }

// maxTextLine is the longest line of a list or of texts in bytes.
const maxTextLine = 1 << 16

// textLines yields the lines of a file that are not blank, without spaces around them.
func textLines(path string) iter.Seq2[table.Line, error] {
	return func(yield func(table.Line, error) bool) {
		for l, err := range table.Lines(path, maxTextLine) {
			if l.Text = strings.TrimSpace(l.Text); (err != nil || l.Text != "") && !yield(l, err) {
				return
			}
		}
	}
}

// textInputs are the lines of a file.
type textInputs struct {
	from    string
	cfg     config.Config
	columns func() *data.Texts
	pull    func() (table.Line, error, bool)
	stop    func()
	met     *account.Account
	last    int // line that was read
}

func openTexts(cfg config.Config, from string, columns func() *data.Texts) (*textInputs, error) {
	abs, err := filepath.Abs(from)
	if err != nil {
		return nil, err
	}
	f, _, err := files.Open(abs, 0) // before the work
	if err != nil {
		return nil, fmt.Errorf("--texts: %w", err)
	}
	x := &textInputs{from: abs, cfg: cfg, columns: columns, met: account.New()}
	x.pull, x.stop = iter.Pull2(textLines(abs))
	return x, f.Close()
}

// Account implements account.Accounted.
func (x *textInputs) Account() *account.Account { return x.met }

func (x *textInputs) describe(m *gallery.Manifest) {
	m.Side, m.Source, m.From = gallery.Text, "texts", x.from
}

func (x *textInputs) next(n int) (*part, error) {
	var lines []table.Line
	var texts []string
	p := &part{}
	for len(lines) < n {
		l, err, ok := x.pull()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		x.met.Used("line", 1)
		x.met.LeftOut("line", l.Number-x.last-1, "a blank line")
		x.last = l.Number
		lines, texts = append(lines, l), append(texts, l.Text)
		if c := x.columns(); c != nil &&
			data.CountUnknown(c.Tokenizer, c.Tokenizer.Encode(data.Clean(x.cfg.Data.Clean, l.Text, x.cfg.Data.MaxWords),
				0)) > 0 {
			x.met.Changed("line", 1, "with words that the vocabulary lacks",
				fmt.Sprintf("line %d: %s", l.Number, l.Text))
		}
		p.sum = crc32.Update(p.sum, castagnoli, fmt.Appendf(nil, "%d\x00%s\n", l.Number, l.Text))
	}
	if len(lines) == 0 {
		return nil, nil
	}
	p.gallery = run.Texts(x.cfg, texts, x.columns())
	p.name = func(i int) string { return lines[i].Text }
	p.line = func(i, row int) any {
		return struct {
			Row     int    `json:"row"`
			Line    int    `json:"line"`
			Caption string `json:"caption"`
		}{row, lines[i].Number, lines[i].Text}
	}
	return p, nil
}

func (x *textInputs) Close() error { x.stop(); return nil }

// rowInputs are the rows of a file of features.
type rowInputs struct {
	m            *features.Matrix
	side, column string
	at           int
	names        *rowNames // nil: they are numbered
	met          *account.Account
}

// openRows opens a file of features, of which cache holds a copy where it must be converted.
func openRows(in Inputs, cache string) (*rowInputs, error) {
	m, err := features.OpenSource(in.Rows, in.Tensor, cache)
	if err != nil {
		return nil, fmt.Errorf("--rows: %w", err)
	}
	x := &rowInputs{m: m, side: in.Side, column: featuresColumn(in.Side), met: account.New()}
	if in.Names != "" {
		if x.names, err = openRowNames(in.Names, m.Rows()); err != nil {
			return nil, errors.Join(fmt.Errorf("--names: %w", err), m.Close())
		}
	}
	return x, nil
}

// featuresColumn returns the column of the stored features of a side.
func featuresColumn(side string) string {
	if side == gallery.Text {
		return batch.TextFeatures
	}
	return batch.ImageFeatures
}

// fits compares the width of the rows with what a loaded model reads.
func (x *rowInputs) fits(m run.Model) error {
	of := m.Image()
	if x.side == gallery.Text {
		of = m.Text()
	}
	if want := of.Width(); x.m.Width() != want {
		return console.Argument("%s: its rows have %d numbers, and the head of the side %s reads %d: name features of the encoder that it was trained on, or the other side", x.m.Path(), x.m.Width(), x.side, want)
	}
	return nil
}

// Account implements account.Accounted.
func (x *rowInputs) Account() *account.Account { return x.met }

func (x *rowInputs) describe(m *gallery.Manifest) {
	m.Side, m.Source, m.From = x.side, "rows", x.m.Path()
	if abs, err := filepath.Abs(m.From); err == nil {
		m.From = abs
	}
}

// next reads the rows for their checksum.
func (x *rowInputs) next(n int) (*part, error) {
	if n = min(n, x.m.Rows()-x.at); n == 0 {
		return nil, nil
	}
	x.met.Used("row", n)
	p := &part{gallery: storedRows{x.m, x.at, n, x.column}}
	sum := crc32.New(castagnoli)
	row := make([]float32, x.m.Width())
	for i := range n {
		if err := x.m.ReadRows(x.at+i, row); err != nil {
			return nil, err
		}
		if err := safetensors.WriteFloats(sum, row); err != nil {
			return nil, err
		}
	}
	p.sum = sum.Sum32()
	first := x.at
	name := func(i int) string { return fmt.Sprintf("row %d", first+i) }
	if x.names != nil {
		names, err := x.names.next(n)
		if err != nil {
			return nil, fmt.Errorf("--names: %w", err)
		}
		for _, s := range names {
			p.sum = crc32.Update(p.sum, castagnoli, fmt.Appendf(nil, "%s\n", s))
		}
		name = func(i int) string { return names[i] }
	}
	p.named(name)
	x.at += n
	return p, nil
}

func (x *rowInputs) Close() error {
	if x.names != nil {
		x.names.stop()
	}
	return x.m.Close()
}

// isMissing says whether err is of a file that is not there.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
