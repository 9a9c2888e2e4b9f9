package gallery

import (
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/search"
	"github.com/geoalign/geoalign/space"
)

// ExportKinds are the endings of files that Export writes.
var ExportKinds = []string{".npy", ".parquet", ".csv", ".faiss"}

// exported is a row of a table.
type exported struct {
	ID       string    `parquet:"id"`
	Name     string    `parquet:"name,optional"`
	Caption  string    `parquet:"caption,optional"`
	Payload  string    `parquet:"payload,optional"` // JSON
	Features []float32 `parquet:"features,list"`
}

const (
	exportBatch = 256     // rows that are read at once
	exportGroup = 1 << 15 // rows of a group of a Parquet file, which are in memory at once
)

// Export writes the rows of the view that were not deleted to a file, by the ending of its name, and returns how many:
//
//	.npy      float32 (N, C)
//	.parquet  columns id, name, caption, payload (JSON) and features (a list of FLOAT)
//	.csv      the same columns under their names, features as pgvector reads them: [0.1,0.2]
//	.faiss    IndexFlatIP, of the cosine of rows of length 1; of the metric l2 IndexFlatL2
//
// Beside .npy and .faiss the lines of the rows are written to NamesOf(path). Memory holds exportGroup rows
// at most.
func (v *View) Export(ctx context.Context, path string) (n int, err error) {
	if n = v.Rows(); n == 0 {
		return 0, fmt.Errorf("gallery: %s has no rows of the side %s to export", v.g.Path, v.side)
	}
	if err := v.g.Wait(ctx); err != nil {
		return 0, err
	}
	switch filepath.Ext(path) {
	case ".npy":
		if err := features.Write(path, func(emit func([]float32) error) error {
			return v.each(ctx, func(_ int, row []float32) error { return emit(row) })
		}); err != nil {
			return 0, err
		}
	case ".faiss":
		if err := files.ReplaceFrom(path, func(w io.Writer) error { return v.writeFAISS(ctx, w, n) }); err != nil {
			return 0, err
		}
	case ".csv":
		return n, files.ReplaceFrom(path, func(w io.Writer) error { return v.writeCSV(ctx, w) })
	case ".parquet":
		return n, files.ReplaceFrom(path, func(w io.Writer) error {
			table := parquet.NewGenericWriter[exported](w, parquet.MaxRowsPerRowGroup(exportGroup))
			err := v.items(ctx, func(x exported) error { _, err := table.Write([]exported{x}); return err })
			return errors.Join(err, table.Close())
		})
	default:
		return 0, fmt.Errorf("gallery: %s: a gallery is exported to files that end in %s", path,
			strings.Join(ExportKinds, ", "))
	}
	return n, files.ReplaceFrom(NamesOf(path), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return v.each(ctx, func(i int, _ []float32) error {
			line, err := v.g.identified(v.side, i)
			if err != nil {
				return err
			}
			return e.Encode(line)
		})
	})
}

// NamesOf is the file beside a file of features with a line of JSON for each row.
func NamesOf(path string) string { return path[:len(path)-len(filepath.Ext(path))] + ".jsonl" }

// each hands over the rows that were not deleted, as queries of the view's kind are compared with them.
func (v *View) each(ctx context.Context, take func(i int, row []float32) error) error {
	pool, c := rowsPool(v.pool), v.pool.width
	if l := v.g.liveOf(v.side); l != nil {
		pool = l.pool(v.pool, v.tensor)
	}
	block := make([]float32, exportBatch*c)
	for from := 0; from < pool.Rows(); from += exportBatch {
		if err := ctx.Err(); err != nil {
			return err
		}
		x := block[:min(exportBatch, pool.Rows()-from)*c]
		if err := pool.ReadRows(from, x); err != nil {
			return err
		}
		for i := range len(x) / c {
			if !v.g.Has(v.side, from+i) {
				continue
			}
			if err := take(from+i, x[i*c:(i+1)*c]); err != nil {
				return err
			}
		}
	}
	return nil
}

// items is each with what is known of the rows.
func (v *View) items(ctx context.Context, take func(x exported) error) error {
	return v.each(ctx, func(i int, row []float32) error {
		item, err := v.g.Item(v.side, i)
		if err != nil {
			return err
		}
		return take(exported{item.ID, item.Name, item.Caption, string(item.Payload), row})
	})
}

// writeCSV writes a table for the COPY of PostgreSQL, to which an empty cell is null.
func (v *View) writeCSV(ctx context.Context, to io.Writer) error {
	w := csv.NewWriter(to)
	if err := w.Write([]string{"id", "name", "caption", "payload", "features"}); err != nil {
		return err
	}
	var b []byte
	err := v.items(ctx, func(x exported) error {
		b = append(b[:0], '[')
		for i, f := range x.Features {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendFloat(b, float64(f), 'g', -1, 32)
		}
		return w.Write([]string{x.ID, x.Name, x.Caption, x.Payload, string(append(b, ']'))})
	})
	w.Flush()
	return errors.Join(err, w.Error())
}

// writeFAISS writes a flat index of n rows as faiss.write_index does: a header with width, rows and metric (0: inner
// product, 1: squared distance), and the number of floats before them.
func (v *View) writeFAISS(ctx context.Context, w io.Writer, n int) error {
	kind, metric, c := "IxFI", int32(0), v.pool.width
	if v.metric == search.L2 {
		kind, metric = "IxF2", 1
	}
	head := struct {
		Kind    [4]byte
		Width   int32
		Rows    int64
		Unused  [2]int64 // 2^20 in files of FAISS
		Trained bool
		Metric  int32
		Floats  uint64
	}{[4]byte([]byte(kind)), int32(c), int64(n), [2]int64{1 << 20, 1 << 20}, true, metric, uint64(n) * uint64(c)}
	if err := binary.Write(w, binary.LittleEndian, head); err != nil {
		return err
	}
	var unit []float32
	return v.each(ctx, func(_ int, row []float32) error {
		if v.metric == search.Cosine {
			unit = space.Space{Dim: c}.Truncate(unit[:0], row, c)
			row = unit
		}
		return binary.Write(w, binary.LittleEndian, row)
	})
}
