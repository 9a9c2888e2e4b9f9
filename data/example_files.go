package data

import (
	"fmt"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/transform"
)

// FileExamples are examples about image files.
type FileExamples struct {
	List      []Example
	Paths     [][]string // of the pictures of each, as many for all
	Classes   []string   // names of the classes; nil: none
	MaxPixels int        // pixel limit of a picture; 0: images.DefaultMaxPixels
	// Cut returns the part of a file that is picture k of a sample, for files that hold both; nil: a file is a picture.
	Cut func(m *transform.Image, k int) *transform.Image
	Met *account.Account // what became of the rows of the files; nil: nobody counted
	keeper
}

var (
	_ Examples          = (*FileExamples)(nil)
	_ account.Accounted = (*FileExamples)(nil)
)

// Account implements account.Accounted.
func (f *FileExamples) Account() *account.Account { return f.Met }

// Len implements Examples.
func (f *FileExamples) Len() int { return len(f.List) }

// Example implements Examples.
func (f *FileExamples) Example(i int) Example { return f.List[i] }

// Pictures implements Examples.
func (f *FileExamples) Pictures() int {
	if len(f.Paths) == 0 {
		return 1
	}
	return len(f.Paths[0])
}

// Picture implements Examples: it reads the file, or takes it from the cache.
func (f *FileExamples) Picture(i, k int) (*transform.Image, error) {
	m, err := f.cache.Image(f.Paths[i][k], f.MaxPixels)
	if err != nil || f.Cut == nil {
		return m, err
	}
	return f.Cut(m, k), nil
}

// PictureName implements Examples: the path.
func (f *FileExamples) PictureName(i, k int) string { return f.Paths[i][k] }

// Labels implements Examples.
func (f *FileExamples) Labels() []string { return f.Classes }

// Add appends an example with its pictures.
func (f *FileExamples) Add(e Example, paths ...string) {
	if len(f.Paths) > 0 && len(f.Paths[0]) != len(paths) {
		panic(fmt.Sprintf("data: an example of %d pictures among those of %d", len(paths), len(f.Paths[0])))
	}
	f.List, f.Paths = append(f.List, e), append(f.Paths, paths)
}
