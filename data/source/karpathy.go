package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/names"
)

// Karpathy is the file of data.kind = "karpathy".
type Karpathy struct {
	// the dataset_*.json
	File string `toml:"file"`
	// folder of the images, below data.root unless absolute; empty: data.root
	ImageRoot string `toml:"image_root"`
}

// Check implements section.Checked.
func (f *Karpathy) Check(k *section.Checker) {
	k.Require("data.karpathy.file", section.Of[Data](k).Kind != "karpathy" || f.File != "",
		`must name the dataset_*.json for data.kind "karpathy"`)
}

// kind is data.kind = "karpathy", whose file has all splits.
func (*Karpathy) kind() Kind {
	return imageFiles(lists{
		load: func(_ context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
			d := cfg.Data
			return opened(LoadKarpathy(Below(d.Root, d.Karpathy.File), Below(d.Root, d.Karpathy.ImageRoot), split,
				options(cfg, o, "reading captions")))
		},
		inputs: func(cfg Setup, _ string) []Input {
			d := cfg.Data
			return append(Under(cfg, "data.karpathy.file", d.Karpathy.File, false),
				Under(cfg, "data.karpathy.image_root", d.Karpathy.ImageRoot, true)...)
		},
		splits: func(Setup) []string { return Splits },
	})
}

// LoadKarpathy reads one split ("train", "val" or "test") of a dataset_*.json of
// Karpathy and Li: {"images": [{"filename", "filepath" (optional), "split",
// "sentences": [{"raw"}], "imgid"}]}. Images lie in imageRoot, in the folder
// filepath where given. The split "restval" (COCO) counts as train. The id of an
// image is its imgid; without imgid, its place in the list.
func LoadKarpathy(file, imageRoot, split string, opt data.Options) (*data.Files, error) {
	return table.Parsed(file, "Karpathy file", func(file string, b []byte) (*data.Files, error) {
		return parseKarpathy(file, b, imageRoot, split, opt)
	})
}

// karpathyImage is an entry of the list.
type karpathyImage struct {
	Filename  string `json:"filename"`
	Filepath  string `json:"filepath"`
	Split     string `json:"split"`
	ID        *int64 `json:"imgid"`
	Sentences []struct {
		Raw *string `json:"raw"`
	} `json:"sentences"`
}

func parseKarpathy(file string, b []byte, imageRoot, split string, opt data.Options) (*data.Files, error) {
	if !slices.Contains(Splits, split) {
		return nil, fmt.Errorf("data: unknown split %q: use train, val or test", split)
	}
	var doc struct {
		Images []json.RawMessage `json:"images"`
	}
	if err := table.ParseJSON(file, b, `not a Karpathy file (an object with a list "images")`, &doc); err != nil {
		return nil, err
	}
	if len(doc.Images) == 0 {
		return nil, table.Whole(file, errors.New(`list "images" is missing or empty`))
	}
	opt = opt.Counting()
	written := names.List{Root: imageRoot}
	var items []data.File
	ids := map[int64]int{}
	perSplit := map[string]int{}
	err := table.Each(table.Entries{File: file, Raw: doc.Images}, func(i int, e karpathyImage) error {
		opt.Tell(i+1, len(doc.Images))
		switch {
		case e.Filename == "":
			return errors.New(`field "filename" is missing`)
		case e.Split == "":
			return fmt.Errorf(`field "split" is missing (image %q)`, e.Filename)
		}
		perSplit[e.Split]++
		if e.Split != split && (e.Split != "restval" || split != "train") {
			return nil
		}
		it := data.File{Path: filepath.Join(imageRoot, written.Name(filepath.Join(e.Filepath, e.Filename))),
			ID: int64(i)}
		if e.ID != nil {
			it.ID = *e.ID
		}
		if first, ok := ids[it.ID]; ok {
			return fmt.Errorf("imgid %d is that of entry %d already", it.ID, first)
		}
		ids[it.ID] = i
		for j, s := range e.Sentences {
			if s.Raw == nil {
				return fmt.Errorf(`sentence %d lacks "raw" (image %q)`, j, e.Filename)
			}
			it.Captions = append(it.Captions, *s.Raw)
		}
		items = append(items, it)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, table.Whole(file, fmt.Errorf("no image of split %q (images per split: %v)", split, perSplit))
	}
	for _, s := range slices.Sorted(maps.Keys(perSplit)) {
		if s != "restval" && !slices.Contains(Splits, s) {
			opt.Account.NotUnderstood(entryUnit, perSplit[s], "a split that is neither train, restval, val nor test",
				fmt.Sprintf("%s: %q", file, s))
		}
	}
	countTurned(opt.Account, written, file)
	return data.NewFiles(items, opt), nil
}
