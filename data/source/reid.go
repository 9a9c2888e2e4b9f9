package source

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
)

// ReID is data.kind = "reid": images with identities in the folders and lists of a published collection below
// data.root. Its splits are train and test; the id stands for the caption that there is none of.
type ReID struct {
	// market1501 (folders bounding_box_train, query and bounding_box_test; DukeMTMC has the same) | msmt17 (lists
	// list_train.txt, list_val.txt, which is trained with, list_query.txt and list_gallery.txt) | sop (Stanford Online
	// Products: Ebay_train.txt and Ebay_test.txt) | cub (CUB-200-2011: images.txt and image_class_labels.txt, classes
	// up to 100 are trained with and the others tested)
	Layout string `toml:"layout"`
}

// layouts reads a split, train or test, of the collections of data.reid.layout.
var layouts = map[string]func(l *reidList, train bool) error{
	"market1501": market, "msmt17": msmt, "sop": sop, "cub": cub,
}

// Check implements section.Checked.
func (f *ReID) Check(k *section.Checker) {
	if section.Of[Data](k).Kind == "reid" {
		k.OneOf("data.reid.layout", "market1501", "msmt17", "sop", "cub")
	}
}

// kind is data.kind = "reid".
func (*ReID) kind() Kind {
	splits := []string{"train", "test"}
	return imageFiles(lists{
		load: func(_ context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
			if !slices.Contains(splits, split) {
				return nil, fmt.Errorf("data: a collection of data.kind \"reid\" has no split %q: use train or test",
					split)
			}
			l := reidList{root: cfg.Data.Root}
			if err := layouts[cfg.Data.ReID.Layout](&l, split == "train"); err != nil {
				return nil, err
			}
			if len(l.items) == 0 {
				return nil, fmt.Errorf("data: %s has no image of the split %s of %s: set data.root and "+
					"data.reid.layout", l.root, split, cfg.Data.ReID.Layout)
			}
			return data.NewIdentified(l.items, l.cameras, l.roles, options(cfg, o, "reading lists")), nil
		},
		splits: func(Setup) []string { return splits },
		inputs: func(cfg Setup, _ string) []Input { return []Input{root(cfg)} },
	})
}

// reidList collects the images of a split.
type reidList struct {
	root    string
	items   []data.File
	cameras []int32
	roles   []data.Role
}

func (l *reidList) add(path string, id int64, camera int32, role data.Role) {
	l.items = append(l.items, data.File{Path: path, ID: id, Captions: []string{strconv.FormatInt(id, 10)}})
	l.cameras, l.roles = append(l.cameras, camera), append(l.roles, role)
}

// lines calls f with the fields of each line of a list; an error names the file and the line.
func (l *reidList) lines(name string, fields int, f func(x []string) error) error {
	path := filepath.Join(l.root, name)
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	for n := 1; s.Scan(); n++ {
		x := strings.Fields(s.Text())
		if len(x) == 0 {
			continue
		}
		if len(x) != fields {
			return fmt.Errorf("%s: line %d has %d fields: want %d", path, n, len(x), fields)
		}
		if err := f(x); err != nil {
			return fmt.Errorf("%s: line %d: %w", path, n, err)
		}
	}
	return s.Err()
}

// marketName are the identity and the camera in 0002_c1s1_000451_03.jpg. Identity -1 is a bad detection, which the
// protocol ignores; 0 are people of nobody, wrong for every query.
var marketName = regexp.MustCompile(`^(-?\d+)_c(\d+)`)

func market(l *reidList, train bool) error {
	folders := map[string]data.Role{"query": data.Query, "bounding_box_test": data.Searched}
	if train {
		folders = map[string]data.Role{"bounding_box_train": data.Either}
	}
	for _, folder := range []string{"bounding_box_train", "query", "bounding_box_test"} {
		role, ok := folders[folder]
		if !ok {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(l.root, folder))
		if err != nil {
			return err
		}
		for _, e := range entries {
			m := marketName.FindStringSubmatch(e.Name())
			if ext := strings.ToLower(filepath.Ext(e.Name())); m == nil || ext != ".jpg" && ext != ".png" {
				continue // Thumbs.db
			}
			id, camera, err := idAndCamera(m[1], m[2])
			if err != nil {
				return fmt.Errorf("%s: %w", filepath.Join(l.root, folder, e.Name()), err)
			}
			if id >= 0 {
				l.add(filepath.Join(l.root, folder, e.Name()), id, camera, role)
			}
		}
	}
	return nil
}

// idAndCamera are the numbers of an identity and of a camera, which are counted from 1.
func idAndCamera(id, camera string) (int64, int32, error) {
	i, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("want a number for the identity (got %q)", id)
	}
	c, err := strconv.ParseInt(camera, 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("want a number for the camera (got %q)", camera)
	}
	return i, int32(c), nil
}

// msmt reads lines such as 0000/0000_000_01_0303morning_0008_0.jpg 0: the third part of the name is the camera.
func msmt(l *reidList, train bool) error {
	type list struct {
		name, folder string
		role         data.Role
	}
	lists := []list{{"list_query.txt", "test", data.Query}, {"list_gallery.txt", "test", data.Searched}}
	if train {
		lists = []list{{"list_train.txt", "train", data.Either}, {"list_val.txt", "train", data.Either}}
	}
	for _, x := range lists {
		err := l.lines(x.name, 2, func(f []string) error {
			parts := strings.Split(filepath.Base(f[0]), "_")
			if len(parts) < 3 {
				return fmt.Errorf("want a name such as 0000_000_01_0303morning_0008_0.jpg (got %q)", f[0])
			}
			id, camera, err := idAndCamera(f[1], parts[2])
			if err == nil {
				l.add(filepath.Join(l.root, x.folder, filepath.FromSlash(f[0])), id, camera, x.role)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sop reads lines of an image, its class, its kind of product and its path, behind one that names these.
func sop(l *reidList, train bool) error {
	name := "Ebay_test.txt"
	if train {
		name = "Ebay_train.txt"
	}
	return l.lines(name, 4, func(f []string) error {
		if f[0] == "image_id" {
			return nil
		}
		id, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return fmt.Errorf("want a number for the class (got %q)", f[1])
		}
		l.add(filepath.Join(l.root, filepath.FromSlash(f[3])), id, -1, data.Either)
		return nil
	})
}

// cubClasses is how many of the classes of CUB are trained with, the first ones (Song et al. 2016).
const cubClasses = 100

func cub(l *reidList, train bool) error {
	classes := map[string]int64{} // by image
	err := l.lines("image_class_labels.txt", 2, func(f []string) error {
		class, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return fmt.Errorf("want a number for the class (got %q)", f[1])
		}
		classes[f[0]] = class
		return nil
	})
	if err != nil {
		return err
	}
	return l.lines("images.txt", 2, func(f []string) error {
		class, ok := classes[f[0]]
		if !ok {
			return fmt.Errorf("image %s has no class in image_class_labels.txt", f[0])
		}
		if (class <= cubClasses) == train {
			l.add(filepath.Join(l.root, "images", filepath.FromSlash(f[1])), class, -1, data.Either)
		}
		return nil
	})
}
