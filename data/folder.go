package data

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/internal/names"
	"github.com/geoalign/geoalign/internal/normalform"
)

// AllImages instead of a split is all images of a folder of classes that is not divided.
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
// a class of another split must be one of them. Files of the formats that are read count, by their extension and also
// in folders further down, by links too (see images.Below); names that begin with a dot do not.
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
		return nil, fmt.Errorf("data: %s is divided into folders by split: choose one of train, val and test, or name "+
			"the folder below it", root)
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
		return nil, fmt.Errorf("data: %s: images in one folder per class need at least 2 classes (got %d folders)",
			namesFrom, len(classes))
	}
	present := classes
	if from != namesFrom {
		if present, err = folders(from); err != nil {
			return nil, err
		}
	}
	opt = opt.Counting()
	var items []File
	for k, class := range present {
		if opt.Progress != nil {
			opt.Progress(k+1, len(present))
		}
		label, known := slices.BinarySearch(classes, class)
		if !known {
			return nil, fmt.Errorf("data: %s: class %q is not in %s: rename or remove the folder", from, class,
				namesFrom)
		}
		caption := strings.ReplaceAll(class, "_", " ")
		if blank(opt.Clean, caption) {
			return nil, fmt.Errorf("data: %s: nothing of the class name %q is left as a caption: rename the folder",
				from, class)
		}
		files, err := imagesBelow(filepath.Join(from, class), opt.Account)
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
			} else {
				opt.Account.Used(images.FileUnit, -1) // it is of another split
			}
		}
	}
	if len(items) == 0 {
		return nil, fmt.Errorf(
			"data: %s: no image is in the %s split: add images, or make the folders train, val and test", from, split)
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

// imagesBelow returns the images of a class folder as sorted paths with slashes, and counts them.
func imagesBelow(dir string, a *account.Account) ([]string, error) {
	var names []string
	own := account.New()
	for name, err := range images.Below(dir, own) {
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		found := ""
		if !own.Whole() {
			found = ": " + own.String()
		}
		return nil, fmt.Errorf("data: class folder %s has no image (%s)%s: add some or remove the folder", dir,
			images.FormatsRead, found)
	}
	a.Add(own)
	slices.Sort(names)
	return names, nil
}

// Divide says which images of a list are in a split (train, val or test), of which val and test have a share in
// percent. An image is in the split that the first 8 bytes of the SHA-256 of its clean name in the normal form NFC say,
// as a big-endian number modulo 1,000,000 in ten-thousandths of a percent: from 0 on val, then test, then train. So all
// entries of an image are in one split, and new images move none to another.
func Divide(split string, val, test float64) func(name string) bool {
	return func(name string) bool {
		sum := sha256.Sum256([]byte(normalform.String(norm.NFC, names.Clean(name))))
		at := float64(binary.BigEndian.Uint64(sum[:])%1_000_000) / 10_000
		switch {
		case at < val:
			return split == "val"
		case at < val+test:
			return split == "test"
		}
		return split == "train"
	}
}
