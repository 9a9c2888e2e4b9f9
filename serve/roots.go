package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/files"
)

// roots are the folders that pictures are read from, and nothing beside them, whatever a gallery names and wherever
// links lead.
type roots struct {
	list []*os.Root
	real []string // their paths without links
}

// openRoots opens folders. One that is not there is an error, unless it is the first, that of a gallery whose pictures
// may be elsewhere.
func openRoots(paths []string) (*roots, error) {
	r := &roots{}
	for i, path := range paths {
		abs, err := filepath.Abs(path)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		var root *os.Root
		if err == nil {
			root, err = os.OpenRoot(abs)
		}
		switch {
		case err == nil:
			r.list, r.real = append(r.list, root), append(r.real, abs)
		case i > 0 || !errors.Is(err, os.ErrNotExist):
			return nil, errors.Join(fmt.Errorf("pictures are to be read from %s: %w", path, err), r.Close())
		}
	}
	return r, nil
}

// Close gives the folders back.
func (r *roots) Close() (err error) {
	for _, root := range r.list {
		err = errors.Join(err, root.Close())
	}
	return err
}

// outsideError says that a picture lies in none of the folders.
type outsideError struct{ path string }

func (e *outsideError) Error() string {
	return fmt.Sprintf("%s is not below the folder of the gallery's images, or a link leads out of it: --images-root names further folders", e.path)
}

// open opens a file that lies in one of the folders when its links are followed. That it does the system makes sure of
// when it is opened: a link that is changed meanwhile leads nowhere.
func (r *roots) open(path string) (*os.File, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, err
	}
	for i, root := range r.list {
		rel, err := filepath.Rel(r.real[i], abs)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if st, err := root.Stat(rel); err == nil && !st.Mode().IsRegular() { // to open a pipe waits for its writer
			return nil, &files.KindError{Path: abs, Mode: st.Mode()}
		}
		return root.Open(rel)
	}
	return nil, &outsideError{abs}
}

// picture decodes an image file in one of the folders.
func (r *roots) picture(path string, maxPixels int) (*transform.Image, error) {
	f, err := r.open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if maxPixels <= 0 {
		maxPixels = images.DefaultMaxPixels
	}
	most := 8*int64(maxPixels) + 16<<20 // as images.DecodeFile
	size, err := files.Regular(f, most)
	if err != nil {
		return nil, err
	}
	b, err := files.Rest(f, size, most)
	if err != nil {
		return nil, err
	}
	m, err := images.Decode(b, maxPixels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
