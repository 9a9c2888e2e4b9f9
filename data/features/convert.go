package features

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/words"
)

// Formats whose rows do not lie one after another become a .npy file in a cache folder once, which
// is then mapped. Its name is a sum of the contents of what it was made of, so a source that has changed has another
// copy.

// convertVersion grows when the copy of the same source becomes another one.
const convertVersion = 1

// converted says whether features of a path are read by way of a copy: a .parquet file, or a folder
// of .pt files.
func converted(path string) bool {
	st, err := os.Stat(path)
	return strings.EqualFold(filepath.Ext(path), ".parquet") || filepath.Ext(path) == "" || err == nil && st.IsDir()
}

// OpenSource is OpenMatrix for files that must be converted as well: .parquet files, of which tensor
// names the column, and folders of .pt files, each of a row or of rows, in natural order. They get a
// copy in the folder cache, which is made if it is not there; Convert makes it with a view on how far
// it is.
func OpenSource(path, tensor, cache string) (*Matrix, error) {
	if cache == "" || !converted(path) {
		return OpenMatrix(path, tensor)
	}
	c, err := newConversion(context.Background(), path, tensor, cache)
	if err != nil {
		return nil, fmt.Errorf("features: %w", err)
	}
	m, err := OpenMatrix(c.copied, "")
	if err != nil {
		if err := c.run(context.Background(), func(int, int) {}); err != nil {
			return nil, err
		}
		if m, err = OpenMatrix(c.copied, ""); err != nil {
			return nil, err
		}
	}
	m.path = path // in errors; its rows are those of the copy
	return m, nil
}

// Convert makes the copy that OpenSource reads of a path, where it reads one that is not there yet.
// progress is told how many rows or files of how many are done, and may be nil. It ends early with the error
// of ctx, and leaves then, and where it fails, nothing behind. A path that cannot be opened is nothing to
// convert: OpenSource says what is wrong.
func Convert(ctx context.Context, path, tensor, cache string, progress func(done, of int)) error {
	if cache == "" || !converted(path) {
		return nil
	}
	c, err := newConversion(ctx, path, tensor, cache)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return nil
	}
	if m, err := OpenMatrix(c.copied, ""); err == nil {
		return m.Close()
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	return c.run(ctx, progress)
}

// conversion is features on their way to a copy.
type conversion struct {
	path, tensor string
	sources      []string // files that are read
	copied       string   // file
}

func newConversion(ctx context.Context, path, tensor, cache string) (conversion, error) {
	c := conversion{path: path, tensor: tensor}
	var err error
	if c.sources, err = sourcesOf(path); err != nil {
		return c, err
	}
	name, err := copyName(ctx, path, c.sources, tensor)
	c.copied = filepath.Join(cache, name)
	return c, err
}

// run makes the copy.
func (c conversion) run(ctx context.Context, progress func(done, of int)) error {
	cache := filepath.Dir(c.copied)
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return fmt.Errorf("features: folder of the copy of %s: %w: set data.cache_dir to one that can be made", c.path,
			err)
	}
	read := torchRows
	if strings.EqualFold(filepath.Ext(c.path), ".parquet") {
		read = parquetRows
	}
	err := Write(c.copied, func(emit func([]float32) error) error {
		return read(c.sources, c.tensor, func(row []float32) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return emit(row)
		}, every(toldEvery, progress))
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("features: %s: %w", c.path, err)
}

// toldEvery is how many rows or files there are between two words of progress.
const toldEvery = 256

// every passes on the first word of each n steps, and the last one.
func every(n int, progress func(done, of int)) func(done, of int) {
	next := 0
	return func(done, of int) {
		if done >= next || done == of {
			progress(done, of)
			next = done - done%n + n
		}
	}
}

// sourcesOf lists the files that features are read from, in order.
func sourcesOf(path string) ([]string, error) {
	if strings.EqualFold(filepath.Ext(path), ".parquet") {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if stem, ok := strings.CutSuffix(e.Name(), ".pt"); ok && !strings.HasPrefix(stem, ".") {
			names = append(names, stem)
		}
	}
	if names == nil {
		return nil, fmt.Errorf(
			"%s: the folder has no .pt file: name a file of features, or a folder of files of torch.save", path)
	}
	slices.SortFunc(names, words.Natural)
	for i, stem := range names {
		names[i] = filepath.Join(path, stem+".pt")
	}
	return names, nil
}

// copyName returns the name of the copy of some files of a path: one of their contents, so that a copy of them
// elsewhere has the same.
func copyName(ctx context.Context, path string, sources []string, tensor string) (string, error) {
	book := identity.User()
	contents, err := book.SumOf(ctx, absolute(path)+" is converted", sources)
	if err != nil {
		return "", err
	}
	_ = book.Save() // else they are read again another time
	l := identity.NewList()
	l.Add(fmt.Sprint(convertVersion), tensor, contents.String())
	return fmt.Sprintf("features-%.16s.npy", l.Sum()), nil
}

// torchRows gives the rows of files of torch.save, each of which has one tensor: a row, or rows. told hears
// of files.
func torchRows(paths []string, tensor string, emit func([]float32) error, told func(done, of int)) error {
	for i, path := range paths {
		if err := torchFileRows(path, tensor, emit); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		told(i+1, len(paths))
	}
	return nil
}

func torchFileRows(path, tensor string, emit func([]float32) error) error {
	m := &Matrix{path: path, axes: 2, rowIsMatrix: true}
	if err := m.open(tensor, func(*os.File, int64) []byte { return nil }); err != nil {
		return err
	}
	defer m.Close()
	row := make([]float32, m.width)
	for i := range m.rows {
		if err := m.ReadRows(i, row); err != nil {
			return err
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}
