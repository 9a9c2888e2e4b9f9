package data

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// AllImages in the place of a split is all images of a folder of classes that is not divided.
const AllImages = "all"

// splits are the splits of a data set, which a folder of classes may have as folders.
var splits = []string{"train", "val", "test"}

// LoadFolder reads a split (train, val, test or AllImages) of images that lie in one folder per
// class. Where root has a folder train, val or test with folders in it, the images of
// the split are root/<split>/<class>/*; else they are root/<class>/*, and FolderSplit
// divides them.
//
// Classes are numbered in the order of their sorted names. In folders by split the
// classes are those of train (of the split itself where there is no train), and
// a class of another split must be one of them. Files of the formats that are read count, by
// their extension and also in folders further down; names that begin with a dot do not.
//
// The caption of an image is the name of its class with '_' as a space, and its id is
// the number of its class: every image of a class is a right answer to the caption of
// another one.
func LoadFolder(root, split string, opt Options) (*Files, error) {
	if !slices.Contains(splits, split) && split != AllImages {
		return nil, fmt.Errorf("data: a folder of classes has no split %q: use train, val or test", split)
	}
	bySplit, err := hasSplitFolders(root)
	if err != nil {
		return nil, err
	}
	if bySplit && split == AllImages {
		return nil, fmt.Errorf("data: %s is divided into folders by split: choose one of train, val and test, or name the folder below it", root)
	}
	from, namesFrom := root, root
	if bySplit {
		from, namesFrom = filepath.Join(root, split), filepath.Join(root, "train")
		if _, err := os.Stat(namesFrom); err != nil {
			namesFrom = from
		}
	}
	classes, err := folders(namesFrom)
	if err != nil {
		return nil, err
	}
	if len(classes) < 2 {
		return nil, fmt.Errorf("data: %s: images in one folder per class need at least 2 classes (got %d folders)", namesFrom, len(classes))
	}
	present := classes
	if from != namesFrom {
		if present, err = folders(from); err != nil {
			return nil, err
		}
	}
	var items []File
	for k, class := range present {
		if opt.Progress != nil {
			opt.Progress(k+1, len(present))
		}
		label, known := slices.BinarySearch(classes, class)
		if !known {
			return nil, fmt.Errorf("data: %s: class %q is not in %s: rename or remove the folder", from, class, namesFrom)
		}
		caption := strings.ReplaceAll(class, "_", " ")
		if blank(opt.Clean, caption) {
			return nil, fmt.Errorf("data: %s: nothing of the class name %q is left as a caption: rename the folder", from, class)
		}
		files, err := imagesBelow(filepath.Join(from, class))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			if bySplit || split == AllImages || FolderSplit(class, name) == split {
				items = append(items, File{
					Path:     filepath.Join(from, class, filepath.FromSlash(name)),
					ID:       int64(label),
					Captions: []string{caption},
					Label:    int32(label),
				})
			}
		}
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("data: %s: no image is in the %s split: add images, or make the folders train, val and test", from, split)
	}
	f := NewFiles(items, opt)
	f.classes = classes
	return f, nil
}

// FolderSplit is the split of an image whose class folder is not divided: by the
// first 8 bytes of the SHA-256 of "class/name", as a big-endian number modulo 10, 0 to
// 7 is train, 8 val, 9 test. name is the path below the class folder, with slashes. It
// depends on nothing else, so adding images moves none to another split.
func FolderSplit(class, name string) string {
	sum := sha256.Sum256([]byte(class + "/" + name))
	switch binary.BigEndian.Uint64(sum[:]) % 10 {
	case 8:
		return "val"
	case 9:
		return "test"
	}
	return "train"
}

// FolderSplits returns the splits that LoadFolder finds below root: the folders train,
// val and test that are there, or all three where the classes are not divided.
func FolderSplits(root string) ([]string, error) {
	bySplit, err := hasSplitFolders(root)
	if err != nil || !bySplit {
		return splits, err
	}
	dirs, err := folders(root)
	return slices.DeleteFunc(slices.Clone(splits), func(s string) bool { return !slices.Contains(dirs, s) }), err
}

// hasSplitFolders reports whether root has a folder named like a split with folders
// in it. One without is a class of that name.
func hasSplitFolders(root string) (bool, error) {
	dirs, err := folders(root)
	if err != nil {
		return false, err
	}
	for _, d := range dirs {
		if !slices.Contains(splits, d) {
			continue
		}
		inside, err := folders(filepath.Join(root, d))
		if err != nil {
			return false, err
		}
		if len(inside) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// folders returns the names of the folders in dir, links to folders included, sorted.
func folders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("data: folder of classes: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		is := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(filepath.Join(dir, e.Name()))
			is = err == nil && info.IsDir()
		}
		if is {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// ImagesBelow gives the images of a folder and those below it as paths from it, with slashes:
// files of the formats that are read, by their extension. Names that begin with a dot do not count. The order
// is that of the names, folder by folder. An error is the last that it gives.
func ImagesBelow(dir string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case name != "." && strings.HasPrefix(d.Name(), "."):
				if d.IsDir() {
					return fs.SkipDir
				}
			case !d.IsDir() && isImageName(name) && !yield(name, nil):
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield("", fmt.Errorf("data: folder %s: %w", dir, err))
		}
	}
}

// imagesBelow returns the images of a class folder as sorted paths with slashes.
func imagesBelow(dir string) ([]string, error) {
	var names []string
	for name, err := range ImagesBelow(dir) {
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("data: class folder %s has no image (%s): add some or remove the folder", dir, FormatsRead)
	}
	slices.Sort(names)
	return names, nil
}
