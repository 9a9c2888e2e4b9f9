package data

import (
	"encoding/csv"
	"errors"
	"io"
	"path/filepath"
	"strconv"
)

// Columns of the tables that WriteCSV writes: the first two are the defaults of data.csv.
const (
	csvImage   = "filepath"
	csvCaption = "title"
	CSVID      = "image_id"
)

// ErrNoFiles says that images are no files of their own, such as parts of shards.
var ErrNoFiles = errors.New("data: its images are no files of their own, which a table could name")

// WriteCSV writes a table of the images of a data set that keep wants, as LoadCSV reads it with the id CSVID: a row for each
// caption, with paths that start from root where they lie below it. Images without a caption have none. It returns the images that were written. Of a
// data set whose images are no files of their own the error is ErrNoFiles.
func WriteCSV(w io.Writer, ds Dataset, root string, keep func(i int) bool) (images int, err error) {
	f, ok := ds.(pathed)
	if p, is := ds.(*Parquet); is {
		for _, x := range p.tables {
			ok = ok && x.images == nil
		}
	}
	if x, is := ds.(ExampleDataset); is {
		ok = areFiles(x.Of)
	}
	if !ok {
		return 0, ErrNoFiles
	}
	if root, err = filepath.Abs(root); err != nil {
		return 0, err
	}
	c := csv.NewWriter(w)
	_ = c.Write([]string{csvImage, csvCaption, CSVID}) // Error tells at the end
	for i := range ds.Len() {
		captions := ds.Captions(i)
		if !keep(i) || len(captions) == 0 {
			continue
		}
		path, err := filepath.Abs(f.path(i))
		if err != nil {
			return images, err
		}
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
		for _, s := range captions {
			_ = c.Write([]string{filepath.ToSlash(path), s, strconv.FormatInt(ds.ImageID(i), 10)})
		}
		images++
	}
	c.Flush()
	return images, c.Error()
}
