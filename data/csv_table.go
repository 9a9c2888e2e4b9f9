package data

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/names"
)

// row reads row n again, of all files.
func (t *Table) row(n uint32) ([]string, *tableFile, error) {
	k, found := slices.BinarySearchFunc(t.files, int(n), func(f tableFile, n int) int { return f.first - n })
	if !found {
		k--
	}
	f := &t.files[k]
	i := int(n) - f.first
	row, err := f.Row(i)
	switch _, broken := errors.AsType[*csv.ParseError](err); {
	case err != nil && err != io.EOF && !broken:
		return nil, f, fmt.Errorf("data: %s: row %d: %w", f.Path(), i+1, err)
	case err != nil || len(row) <= max(f.at.image, f.at.caption):
		return nil, f, fmt.Errorf("data: %s: row %d is not what it was: start again", f.Path(), i+1)
	}
	return row, f, nil
}

// Len is the number of images.
func (t *Table) Len() int { return len(t.images) }

// NumCaptions is the number of captions of image i. It reads nothing.
func (t *Table) NumCaptions(i int) int {
	if i == 0 {
		return int(t.ends[0])
	}
	return int(t.ends[i] - t.ends[i-1])
}

// Captions of image i; fewer where the file cannot be read, as Fault says.
func (t *Table) Captions(i int) []string {
	list, _ := t.captions(i)
	return list
}

// Fault is why the captions of image i cannot be read, nil if they can.
func (t *Table) Fault(i int) error {
	_, err := t.captions(i)
	return err
}

func (t *Table) captions(i int) (list []string, err error) {
	for _, n := range t.rows[int(t.ends[i])-t.NumCaptions(i) : t.ends[i]] {
		row, f, err := t.row(n)
		if err != nil {
			return list, err
		}
		list = append(list, strings.Clone(row[f.at.caption]))
	}
	return list, nil
}

// entry reads each row of image i once.
func (t *Table) entry(i int) (e Entry) {
	for _, n := range t.rows[int(t.ends[i])-t.NumCaptions(i) : t.ends[i]] {
		row, f, err := t.row(n)
		if err != nil { // a bad sample
			continue
		}
		if n == t.images[i] {
			e.Name = names.Under(t.root, strings.TrimSpace(row[f.at.image]))
		}
		e.Rest = append(e.Rest, strings.Clone(row[f.at.caption]))
	}
	if e.Name == "" {
		e.Name = t.Name(i)
	}
	e.Files = []string{e.Name}
	return e
}

// key is the sum of the bytes of the tables and of how they are read: rows are slow to read again.
func (t *Table) key(ctx context.Context) (identity.Sum, error) {
	all := identity.NewList()
	all.Add(fmt.Sprint(t.cfg), t.clean)
	for _, f := range t.files {
		size := f.Offset()
		parts := make([]string, (size+keyPart-1)/keyPart)
		if err := each(ctx, len(parts), runtime.GOMAXPROCS(0), func(k int) error {
			b := make([]byte, min(keyPart, size-int64(k)*keyPart))
			_, err := f.ReadAt(b, int64(k)*keyPart)
			if parts[k] = identity.OfBytes(b).String(); err == io.EOF { // with the last bytes
				err = nil
			}
			return err
		}); err != nil {
			return identity.Sum{}, fmt.Errorf("data: %s: %w", f.Path(), err)
		}
		all.Add(parts...)
	}
	return all.Sum(), nil
}

// keyPart is how much of a table is summed at a time.
const keyPart = 1 << 20

// ImageID of image i.
func (t *Table) ImageID(i int) int64 {
	if t.ids == nil {
		return int64(i)
	}
	return t.ids[i]
}

// EmptyCaptions is the number of rows whose captions were dropped because nothing of them is left
// after cleaning.
func (t *Table) EmptyCaptions() int { return t.empty }

// Name is the path of image i.
func (t *Table) Name(i int) string {
	path, err := t.file(i)
	if err != nil {
		return fmt.Sprintf("image %d", i)
	}
	return path
}

// file is the path of image i.
func (t *Table) file(i int) (string, error) {
	row, f, err := t.row(t.images[i])
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(row[f.at.image])
	if _, turned := slices.BinarySearch(t.turned, uint32(i)); turned {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	return names.Below(t.root, name), nil
}

func (t *Table) path(i int) string { return t.Name(i) }

func (t *Table) place(i int) (path, part string) { return t.Name(i), "" }

// Image reads and decodes image i, or takes it from the cache.
func (t *Table) Image(i int) (*transform.Image, error) { return t.imageTimed(i, nil) }

func (t *Table) imageTimed(i int, w *images.Stopwatch) (*transform.Image, error) {
	path, err := t.file(i)
	if err != nil {
		return nil, err
	}
	return t.cache.image(path, t.maxPixels, w)
}

// Close closes the files.
func (t *Table) Close() error {
	var errs []error
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// roles are the words of a column of roles.
var roles = map[string]Role{"": Either, "query": Query, "gallery": Searched}

// seen takes the camera and the role of a row of an image, which is known from an earlier row or not.
func (b *tableBuilder) seen(row []string, at columns, image int, known bool, path string) error {
	t := b.t
	if at.camera >= 0 {
		camera, name := int32(-1), strings.TrimSpace(row[at.camera])
		if name != "" {
			var old bool
			if camera, old = b.cameras[name]; !old {
				camera = int32(len(b.cameras))
				b.cameras[strings.Clone(name)] = camera
			}
		}
		switch {
		case !known:
			t.cameras = append(t.cameras, camera)
		case t.cameras[image] != camera:
			return fmt.Errorf("image %q has another camera here (%q) than in an earlier row: one image, one camera",
				path, name)
		}
	}
	if at.role >= 0 {
		name := strings.TrimSpace(row[at.role])
		role, ok := roles[name]
		switch {
		case !ok:
			return fmt.Errorf("column %q: there is no role %q: write query, gallery, or nothing for an image that is "+
				"both", t.cfg.Role, name)
		case !known:
			t.roles = append(t.roles, role)
		case t.roles[image] != role:
			return fmt.Errorf("image %q has another role here (%q) than in an earlier row: one image, one role", path,
				name)
		}
	}
	return nil
}

// Camera implements Seen.
func (t *Table) Camera(i int) int32 {
	if t.cameras == nil {
		return -1
	}
	return t.cameras[i]
}

// Role implements Seen.
func (t *Table) Role(i int) Role {
	if t.roles == nil {
		return Either
	}
	return t.roles[i]
}

// Columns of the tables that WriteCSV writes: the first two are the defaults of data.csv.
const (
	csvImage   = "filepath"
	csvCaption = "title"
	CSVID      = "image_id"
)

// ErrNoFiles says that images are not files of their own, such as parts of shards.
var ErrNoFiles = errors.New("data: its images are not files of their own, which a table could name")

// WriteCSV writes a table of the images of a data set that keep wants, as LoadCSV reads it with the id CSVID: a row for
// each caption, with paths that start from root where they lie below it. Images without a caption have none. It returns
// the images that were written. Of a data set whose images are not files of their own the error is ErrNoFiles.
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
