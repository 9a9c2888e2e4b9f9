package data

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/names"
)

// MissingError says that files of images are not there, or are not files.
type MissingError struct {
	Count, Of int
	Examples  []error // the first ones, at most maxMissing
}

// maxMissing is the number of files that a MissingError names.
const maxMissing = 5

// Error counts the files and names the first.
func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "data: %d of %d image files cannot be read: correct their paths or data.root, or remove the "+
		"entries", e.Count, e.Of)
	for _, x := range e.Examples {
		fmt.Fprintf(&b, "\n  %v", x)
	}
	return b.String()
}

// Unwrap gives the reasons.
func (e *MissingError) Unwrap() []error { return e.Examples }

// FindFiles looks for the file of every image and returns a *MissingError where some are not
// there. Nothing is opened, and a data set without files has nothing to look for. progress is
// told how far it is, from one goroutine at a time, and may be nil. It ends early with the
// error of ctx.
func (e *Eval) FindFiles(ctx context.Context, workers int, progress func(done, of int)) error {
	f, ok := e.ds.(pathed)
	if x, is := e.ds.(ExampleDataset); is {
		ok = areFiles(x.Of)
	}
	if !ok {
		return nil
	}
	paths := make([]string, len(e.images))
	for i := range paths {
		paths[i] = f.path(e.images[i])
	}
	return findFiles(ctx, paths, workers, progress)
}

// findFiles returns a *MissingError where some of the paths are not files.
func findFiles(ctx context.Context, paths []string, workers int, progress func(done, of int)) error {
	errs := make([]error, len(paths))
	err := eachTold(ctx, len(paths), workers, progress, func(i int) error {
		errs[i] = isFile(paths[i])
		return nil
	})
	if err != nil {
		return err
	}
	missing := &MissingError{Of: len(errs)}
	for _, err := range errs {
		if err == nil {
			continue
		}
		if missing.Count++; len(missing.Examples) < maxMissing {
			missing.Examples = append(missing.Examples, err)
		}
	}
	if missing.Count > 0 {
		return missing
	}
	return nil
}

// pathed is implemented by data sets whose images are files of their own.
type pathed interface{ path(i int) string }

func (f *Files) path(i int) string { return f.items[i].Path }

// isFile returns an error unless there is a regular file at path.
func isFile(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return names.OtherForm(err, path)
	case !st.Mode().IsRegular():
		return &files.KindError{Path: path, Mode: st.Mode()}
	}
	return nil
}

// FindExampleFiles looks for the files of the pictures of examples, as Eval.FindFiles does.
func FindExampleFiles(ctx context.Context, x Examples, workers int, progress func(done, of int)) error {
	if !areFiles(x) {
		return nil
	}
	var paths []string
	seen := map[string]bool{}
	for i := range x.Len() {
		for k := range x.Pictures() {
			if p := x.PictureName(i, k); !seen[p] {
				seen[p] = true
				paths = append(paths, p)
			}
		}
	}
	return findFiles(ctx, paths, workers, progress)
}

// areFiles says whether the pictures of examples are files.
func areFiles(x Examples) bool {
	switch part := x.(type) {
	case firstExamples:
		return areFiles(part.Examples)
	case someExamples:
		return areFiles(part.Examples)
	case *FileExamples:
		return true
	}
	return false
}
