package embed

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run"
)

// unnamed are galleries whose rows have no names.
type unnamed struct{ data.Galleries }

// TestEmbedOverOthers: of rows without names, and of a side that is not embedded, no file is left of what was
// embedded into the folder before: a search would tell its captions.
func TestEmbedOverOthers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{ImagesFile, TextsFile} {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("{\"row\": 0}\n"), 0o666))
	}
	rows := []safetensors.Tensor{{Name: gallery.Image, Shape: []int{1, 2}, Data: []float32{0.6, 0.8}}, {Name: gallery.Text, Shape: []int{1, 2}, Data: []float32{1, 0}}}
	check.OK(t, writeEmbeddings(&run.Split{Galleries: unnamed{}}, rows, Result{Path: dir, Images: 1, Texts: 1}))
	for _, name := range []string{ImagesFile, TextsFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is of what was there before (%v)", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, FeaturesFile)); err != nil {
		t.Error(err)
	}
}
