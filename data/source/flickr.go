package source

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/names"
)

// Flickr names the captions of data.kind = "flickr": lines of image#number, a tab and a caption, as in
// results_20130124.token of Flickr30k and Flickr8k.token.txt.
type Flickr struct {
	// the captions of all splits
	File string `toml:"file"`
	// folder of the images, below data.root unless absolute; empty: data.root
	ImageRoot string `toml:"image_root"`
	// text file with the name of a training image on each line, such as Flickr_8k.trainImages.txt; empty: all images
	// are training images
	TrainList string `toml:"train_list"`
	// likewise of validation
	ValList string `toml:"val_list"`
	// likewise of test
	TestList string `toml:"test_list"`
}

// Check implements section.Checked.
func (f *Flickr) Check(k *section.Checker) {
	if section.Of[Data](k).Kind != "flickr" {
		return
	}
	k.Require("data.flickr.file", f.File != "", `must name the file of the captions for data.kind "flickr"`)
	k.Require("data.flickr.train_list", f.TrainList != "" || f.ValList == "" && f.TestList == "",
		"must name a file where another split has a list", "else images of that split would be trained on")
	if k.Number("train.eval_every_steps") > 0 && (evaluated(k) == "val" || evaluated(k) == "test") {
		k.Training("data.flickr."+evaluated(k)+"_list", f.Split(evaluated(k)) != "", "must name a file",
			"or set eval.split or train.eval_every_steps = 0")
	}
}

// Split returns the list of a split: train, val or test.
func (f Flickr) Split(name string) string { return filesOf(name, f.TrainList, f.ValList, f.TestList) }

// kind is data.kind = "flickr".
func (*Flickr) kind() Kind {
	return imageFiles(lists{
		load: func(_ context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
			f := cfg.Data.Flickr
			list := f.Split(split)
			switch {
			case list != "":
				list = Below(cfg.Data.Root, list)
			case split != "train":
				return nil, unnamed("data.flickr."+split+"_list", "a file")
			}
			return opened(LoadFlickr(Below(cfg.Data.Root, f.File), Below(cfg.Data.Root, f.ImageRoot), list,
				options(cfg, o, "reading captions")))
		},
		splits: having(func(d Data, split string) bool { return split == "train" || d.Flickr.Split(split) != "" }),
		inputs: func(cfg Setup, split string) []Input {
			f := cfg.Data.Flickr
			list := append(Under(cfg, "data.flickr.file", f.File, false),
				Under(cfg, "data.flickr.image_root", f.ImageRoot, true)...)
			return append(list, Named(cfg, "data.flickr."+split+"_list", f.Split(split), false)...)
		},
		mayLack: true,
	})
}

// LoadFlickr reads the captions of Flickr30k or Flickr8k: lines of image#number, a tab and a caption,
// as in results_20130124.token and Flickr8k.token.txt. Images lie in imageRoot. images names a text file
// with the name of an image on each line, with or without .jpg, which are the images of the data set in
// their order; empty: all images, in the order of the captions. The id of an image is its place there.
func LoadFlickr(file, imageRoot, images string, opt data.Options) (*data.Files, error) {
	b, err := table.ReadFile(file, "Flickr file")
	if err != nil {
		return nil, err
	}
	opt = opt.Counting()
	written := names.List{Root: imageRoot}
	list, captions, err := parseFlickr(file, b, &written)
	if err != nil {
		return nil, err
	}
	countTurned(opt.Account, written, file)
	if images != "" {
		b, err := table.ReadFile(images, "list of images")
		if err != nil {
			return nil, err
		}
		if list, err = parseImageList(images, b, list, opt.Account); err != nil {
			return nil, err
		}
	}
	items := make([]data.File, len(list))
	for i, name := range list {
		items[i] = data.File{Path: filepath.Join(imageRoot, name), ID: int64(i), Captions: captions[name]}
		opt.Tell(i+1, len(list))
	}
	return data.NewFiles(items, opt), nil
}

// parseFlickr returns the images in their order, and the captions of each.
func parseFlickr(file string, b []byte, written *names.List) (list []string, captions map[string][]string, err error) {
	captions = map[string][]string{}
	for l, err := range table.LinesOf(file, b) {
		if err != nil {
			return nil, nil, err
		}
		if strings.TrimSpace(l.Text) == "" {
			continue
		}
		head, caption, ok := strings.Cut(l.Text, "\t")
		at := strings.LastIndexByte(head, '#')
		if !ok || at <= 0 || strings.Trim(head[at+1:], "0123456789") != "" {
			return nil, nil, l.Wrong(fmt.Errorf("want image.jpg#0, a tab and a caption (got %.60q); a table with a "+
				`line of names is data.kind "csv"`, l.Text))
		}
		name := written.Name(head[:at])
		if _, known := captions[name]; !known {
			list = append(list, name)
		}
		captions[name] = append(captions[name], caption)
	}
	if list == nil {
		return nil, nil, table.Whole(file, errors.New("it has no caption"))
	}
	return list, captions, nil
}

// parseImageList returns the images that a list names, of those that have captions.
func parseImageList(file string, b []byte, captioned []string, a *account.Account) (list []string, err error) {
	have := names.NewIndex[string]()
	for _, name := range captioned {
		have.Set(name, name)
	}
	seen := map[string]bool{}
	for l, err := range table.LinesOf(file, b) {
		if err != nil {
			return nil, err
		}
		said := strings.TrimSpace(l.Text)
		if said == "" {
			continue
		}
		name, how := have.Find(said)
		if how == names.Missing {
			name, how = have.Find(said + ".jpg")
		}
		switch how {
		case names.Missing:
			return nil, l.Wrong(fmt.Errorf("image %q has no caption in the file of captions", said))
		case names.Ambiguous:
			return nil, l.Wrong(fmt.Errorf("image %q has several names in the file of captions that differ only in "+
				"Unicode normalisation (NFC, NFD): write one of them", said))
		case names.Folded:
			a.Changed(entryUnit, 1, "names found that differ only in Unicode normalisation (NFC, NFD)", file+": "+said)
		}
		a.Used(entryUnit, 1)
		if seen[name] {
			return nil, l.Wrong(fmt.Errorf("image %q was named before", name))
		}
		seen[name] = true
		list = append(list, name)
	}
	if list == nil {
		return nil, table.Whole(file, errors.New("it names no image"))
	}
	return list, nil
}
