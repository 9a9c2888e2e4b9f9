package photos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/files"
)

// row is the line of a picture in a file of names: beside its name what tells whether it is the same picture.
type row struct {
	Row   int    `json:"row"`
	Name  string `json:"name"`            // path from the folder, with slashes
	Bytes int64  `json:"bytes"`           // of the file
	Stamp string `json:"stamp,omitempty"` // identity.Stamp of it; empty: it proves nothing, the file is read again
	Sum   string `json:"sum"`             // identity.Sum of all its bytes
}

// readRows reads the lines of a shard.
func readRows(dir string, s gallery.Shard) ([]row, error) {
	path := filepath.Join(dir, s.Names)
	f, _, err := files.Open(path, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list := make([]row, 0, s.Rows)
	for d := json.NewDecoder(bufio.NewReaderSize(f, 1<<18)); ; {
		var r row
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF) && len(list) == s.Rows:
			return list, nil
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%s has %d lines for %d rows", path, len(list), s.Rows)
		case err != nil:
			return nil, fmt.Errorf("%s: line %d: %w", path, len(list)+1, err)
		}
		list = append(list, r)
	}
}

// unreadable is a file that could not be decoded when it had this stamp. It is a hint that saves a second try.
type unreadable struct {
	Name      string `json:"name"`
	Stamp     string `json:"stamp"`
	MaxPixels int    `json:"max_pixels"`
	Why       string `json:"why"`
}

// unreadableFile lists them beside a gallery.
const unreadableFile = "unreadable.json"

// readUnreadable returns what the file has, nothing where it cannot be used.
func readUnreadable(dir string) map[string]unreadable {
	of := map[string]unreadable{}
	b, err := files.Read(filepath.Join(dir, unreadableFile), 64<<20)
	var list []unreadable
	if err == nil && json.Unmarshal(b, &list) == nil {
		for _, x := range list {
			of[x.Name] = x
		}
	}
	return of
}
