package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// ImportOptions say what rows of another program are.
type ImportOptions struct {
	Side   string // image or text; empty: image
	Tensor string // or column of the features; empty: the only one
	Shard  int    // most rows of a shard; 0: 100,000
	// Progress is told how many rows of how many are done, and Say of locks; nil: nobody is.
	Progress func(done, of int)
	Say      func(format string, args ...any)
}

// ImportRows makes rows of features, of whatever program, a gallery in a new folder, and returns how many there are. It
// reads the formats of features.OpenSource. What is known of the rows is, where it is there, a JSON object per row in
// gallery.NamesOf(path), with the keys of a gallery.Item, and in a Parquet file the columns id, name, caption and payload
// (JSON). The gallery names no model: its rows are compared by the cosine, or as Gallery.CompareBy says. Memory holds a
// shard.
func ImportRows(ctx context.Context, path, dir string, o ImportOptions) (n int, err error) {
	if o.Side == "" {
		o.Side = gallery.Image
	}
	if o.Shard == 0 {
		o.Shard = defaultShard
	}
	if _, err := os.Lstat(dir); !isMissing(err) {
		return 0, errors.Join(err, fmt.Errorf("import: %s is there already: name a new folder", dir))
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return 0, fmt.Errorf("import: %w", err)
	}
	err = files.FillFolder(dir, o.Say, func(temp string) error {
		n, err = importTo(ctx, path, temp, o)
		return err
	})
	return n, err
}

// importTo is ImportRows to an empty folder.
func importTo(ctx context.Context, path, dir string, o ImportOptions) (n int, err error) {
	cache, err := os.MkdirTemp(dir, ".import-") // of a file that cannot be mapped
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
	if err := features.Convert(ctx, path, o.Tensor, cache, nil); err != nil {
		return 0, err
	}
	x, err := features.OpenSource(path, o.Tensor, cache)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	lines, stop := iter.Pull2(linesOf(path, x.Rows()))
	defer stop()
	from, err := filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	m := gallery.Manifest{Version: 1, Side: o.Side, Source: "rows", From: from, Dim: x.Width(), ShardRows: o.Shard,
		Rows: x.Rows(), Complete: true}
	for first := 0; first < m.Rows; first += o.Shard {
		s, err := importShard(dir, &m, x, first, lines)
		if err != nil {
			return 0, fmt.Errorf("import: %s: %w", path, err)
		}
		if m.Shards = append(m.Shards, s); ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if o.Progress != nil {
			o.Progress(first+s.Rows, m.Rows)
		}
	}
	if _, err, more := lines(); err != nil || more {
		return 0, errors.Join(err, fmt.Errorf("import: %s has lines for more than its %d rows",
			gallery.NamesOf(path), m.Rows))
	}
	return m.Rows, m.Write(dir)
}

// importShard writes the next rows of a matrix, from first on.
func importShard(dir string, m *gallery.Manifest, x *features.Matrix, first int,
	lines func() (json.RawMessage, error, bool)) (gallery.Shard, error) {
	n := min(m.ShardRows, m.Rows-first)
	data := safetensors.Lazy{Len: n * m.Dim, Fill: func(dst []float32) error {
		for i := range n { // one by one: numbers that are not finite are an error
			if err := x.Row(first+i, dst[i*m.Dim:(i+1)*m.Dim]); err != nil {
				return err
			}
		}
		return nil
	}}
	var bad error
	s, err := gallery.WriteShard(dir, fmt.Sprintf("rows-%05d", len(m.Shards)),
		[]safetensors.Tensor{{Name: m.Side, Shape: []int{n, m.Dim}, Data: data}}, m.Meta, n, func(i int) any {
			line, err, more := lines()
			switch {
			case bad != nil || err != nil:
				bad = errors.Join(bad, err)
			case !more:
				bad = fmt.Errorf("there are lines for %d rows of %d: give one for each", first+i, m.Rows)
			}
			return line
		})
	return s, errors.Join(bad, err)
}

// maxImportLine is the most bytes of what is known of a row, as a gallery reads them.
const maxImportLine = 1 << 20

// linesOf yields what is known of the n rows of a file of features.
func linesOf(path string, n int) iter.Seq2[json.RawMessage, error] {
	if strings.EqualFold(filepath.Ext(path), ".parquet") {
		return columnLines(path, n)
	}
	names := gallery.NamesOf(path)
	return func(yield func(json.RawMessage, error) bool) {
		if _, err := os.Stat(names); isMissing(err) {
			nothing(n)(yield)
			return
		}
		for l, err := range table.Lines(names, maxImportLine) {
			line := json.RawMessage(l.Text)
			if err == nil {
				if line, err = importLine(line); err != nil {
					err = l.Wrong(err)
				}
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// nothing yields n lines that say nothing.
func nothing(n int) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for range n {
			if !yield(json.RawMessage("{}"), nil) {
				return
			}
		}
	}
}

// importLine checks what is known of a row, and leaves its number out.
func importLine(line []byte) (json.RawMessage, error) {
	if err := strictjson.Check(line); err != nil {
		return nil, err
	}
	var item gallery.Item
	err := json.Unmarshal(line, &item)
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && bad.Field != "" {
		err = fmt.Errorf("%q must be a %s, not a %s", bad.Field, bad.Type, bad.Value)
	}
	if err != nil {
		return nil, err
	}
	var of map[string]json.RawMessage
	if err := json.Unmarshal(line, &of); err != nil || of == nil {
		return nil, errors.Join(err,
			errors.New(`it is not an object: write one as {"id": "a", "payload": {"split": "test"}}`))
	}
	delete(of, "row")
	return json.Marshal(of)
}

// errNoColumns says that a Parquet file has features alone.
var errNoColumns = errors.New("it has no columns of what is known of the rows")

// columnLines yields what the columns of a Parquet file say of its rows.
func columnLines(path string, n int) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		var names []string
		pick := func(columns []string) (c table.Columns, err error) {
			for i, name := range columns {
				if slices.Contains([]string{"id", "name", "caption", "payload"}, name) {
					names, c.At = append(names, name), append(c.At, i)
				}
			}
			if len(names) == 0 {
				return c, errNoColumns
			}
			return c, nil
		}
		ended := errors.New("the caller wants no more")
		err := table.Read(path, pick, func(r table.Row) error {
			if r.Err != nil {
				return r.Wrong(r.Err)
			}
			of := map[string]json.RawMessage{}
			for k, name := range names {
				cell, err := json.RawMessage(r.Cells[k]), error(nil)
				if name != "payload" {
					cell, err = json.Marshal(r.Cells[k])
				}
				if err != nil {
					return err
				}
				if r.Cells[k] != "" {
					of[name] = cell
				}
			}
			line, err := json.Marshal(of)
			if err == nil {
				line, err = importLine(line)
			}
			if err != nil {
				return r.Wrong(err)
			}
			if !yield(line, nil) {
				return ended
			}
			return nil
		})
		switch {
		case errors.Is(err, errNoColumns):
			nothing(n)(yield)
		case err != nil && err != ended:
			yield(nil, err)
		}
	}
}
