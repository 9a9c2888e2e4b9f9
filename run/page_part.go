package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/geoalign/geoalign/internal/files"
)

// mostPart bounds the file of a part of a page, in bytes.
const mostPart = 64 << 20

// writePart keeps a part of the page of a run as JSON.
func writePart(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return files.Replace(path, append(b, '\n'))
}

// readPart reads what writePart wrote and checks it; found is false without the file.
func readPart(path string, v any, check func() error) (found bool, err error) {
	b, err := files.Read(path, mostPart)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err == nil && check != nil {
		err = check()
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w: remove it to draw the page without", path, err)
	}
	return true, nil
}
