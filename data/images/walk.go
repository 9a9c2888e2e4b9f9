package images

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/data/account"
)

// FileUnit is what an Account of folders and lists of images counts.
const FileUnit = "file"

// Below gives the images of a folder and those below it as paths from it, with slashes: those of the formats
// that are read, by their extensions. Names that begin with a dot do not count. The order is that of the names, folder
// by folder. Links to folders are followed behind all else, each folder once: a link to one that is read under another
// name, as a link to a folder around it is, is left out. a counts all files and such links, and may be nil. An error is
// the last that it gives.
func Below(dir string, a *account.Account) iter.Seq2[string, error] { return walked(dir, a, nil) }

// BelowReadable is Below that passes over folders that cannot be read: unread is told their paths from dir. That dir
// itself cannot be read is an error.
func BelowReadable(dir string, a *account.Account, unread func(name string)) iter.Seq2[string, error] {
	return walked(dir, a, unread)
}

func walked(dir string, a *account.Account, unread func(name string)) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		w := &walk{dir: dir, account: a, yield: yield, unread: unread, seen: map[string]bool{}}
		err := w.folder(".")
		for err == nil && len(w.links) > 0 {
			link := w.links[0]
			w.links = w.links[1:]
			err = w.folder(link)
		}
		if err != nil && err != fs.SkipAll {
			yield("", fmt.Errorf("data: folder %s: %w", dir, err))
		}
	}
}

// walk looks for the images of a folder.
type walk struct {
	dir     string
	account *account.Account
	yield   func(string, error) bool
	unread  func(string)    // is told of folders that cannot be read; nil: they are an error
	seen    map[string]bool // folders that were read, without links
	links   []string        // to folders, yet to be read
}

// folder gives the images of a folder and those below it. name is its path from the root.
func (w *walk) folder(name string) error {
	real, err := filepath.EvalSymlinks(filepath.Join(w.dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	if w.seen[real] {
		w.account.LeftOut(FileUnit, 1, "a link to a folder that is read under another name", name)
		return nil
	}
	w.seen[real] = true
	return w.entries(name, real)
}

// entries gives the images of a folder whose path without links is real.
func (w *walk) entries(name, real string) error {
	list, err := os.ReadDir(real)
	if err != nil && w.unread != nil && name != "." {
		w.account.LeftOut(FileUnit, 1, "a folder that cannot be read", name)
		w.unread(name)
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		at, kind := path.Join(name, e.Name()), e.Type()
		if kind&fs.ModeSymlink != 0 {
			// else a file that is not there, if it has the name of an image
			if info, err := os.Stat(filepath.Join(real, e.Name())); err == nil {
				kind = info.Mode().Type()
			}
			if kind.IsDir() {
				w.links = append(w.links, at)
				continue
			}
		}
		if kind.IsDir() {
			below := filepath.Join(real, e.Name())
			if w.seen[below] { // by a link from before
				w.account.LeftOut(FileUnit, 1, "a folder that is read under another name", at)
				continue
			}
			w.seen[below] = true
			if err := w.entries(at, below); err != nil {
				return err
			}
			continue
		}
		if err := w.file(at); err != nil {
			return err
		}
	}
	return nil
}

// file gives an image, and counts what is none by its name.
func (w *walk) file(name string) error {
	f, known := FormatOfName(name)
	switch {
	case f.Read:
		w.account.Used(FileUnit, 1)
		if !w.yield(name, nil) {
			return fs.SkipAll
		}
	case known:
		w.account.NotUnderstood(FileUnit, 1, "a kind of image that is not read ("+f.Name+")", name)
	default:
		w.account.LeftOut(FileUnit, 1, "no image by its name", name)
	}
	return nil
}
