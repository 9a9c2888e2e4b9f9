package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/filetest"
)

func TestFindFiles(t *testing.T) {
	dir := t.TempDir()
	var items []File
	for i := range 9 {
		path := filepath.Join(dir, fmt.Sprintf("%d.jpg", i))
		items = append(items, File{Path: path, Captions: []string{"a picture"}})
		if i < 2 { // not there
			continue
		}
		filetest.Write(t, path, "")
	}
	items[8].Captions = nil // not evaluated on
	if err := os.Remove(items[8].Path); err != nil {
		t.Fatal(err)
	}
	find := func(ctx context.Context, items []File) (told int, err error) {
		e := evalOf(t, NewFiles(items, Options{}), EvalConfig{ImageSize: 8})
		return told, e.FindFiles(ctx, 3, func(done, of int) {
			if told++; done != told || of != e.NumImages() {
				t.Errorf("told %d of %d after %d of %d", done, of, told, e.NumImages())
			}
		})
	}
	if _, err := find(t.Context(), items[2:]); err != nil {
		t.Error(err)
	}
	if err := os.Remove(items[5].Path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(items[5].Path, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := find(t.Context(), items)
	var missing *MissingError
	if !errors.As(err, &missing) || missing.Count != 3 || missing.Of != 8 || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"3 of 8 image files", items[0].Path, items[1].Path, items[5].Path + " is a folder", "data.root"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := find(ctx, items); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// Pictures in memory have no files to look for.
	e := evalOf(t, pictures(3), EvalConfig{ImageSize: 8})
	if err := e.FindFiles(ctx, 1, nil); err != nil {
		t.Error(err)
	}
}

// A row that hangs, as one of a network file may, does not keep an evaluation from its end.
func TestLoadingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hang := make(chan struct{})
	defer close(hang)
	err := each(ctx, 4, 2, func(int) error {
		cancel()
		<-hang
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
