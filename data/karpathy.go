package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/names"
)

// LoadKarpathy reads one split ("train", "val" or "test") of a dataset_*.json of
// Karpathy and Li: {"images": [{"filename", "filepath" (optional), "split",
// "sentences": [{"raw"}], "imgid"}]}. Images lie in imageRoot, in the folder
// filepath where given. The split "restval" (COCO) counts as train. The id of an
// image is its imgid; without imgid, its place in the list.
func LoadKarpathy(file, imageRoot, split string, opt Options) (*Files, error) {
	b, err := table.ReadFile(file, "Karpathy file")
	if err != nil {
		return nil, err
	}
	return parseKarpathy(file, b, imageRoot, split, opt)
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

func parseKarpathy(file string, b []byte, imageRoot, split string, opt Options) (*Files, error) {
	if !slices.Contains(splits, split) {
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
	opt = opt.counting()
	written := names.List{Root: imageRoot}
	var items []File
	ids := map[int64]int{}
	perSplit := map[string]int{}
	err := table.Each(table.Entries{File: file, Raw: doc.Images}, func(i int, e karpathyImage) error {
		opt.tell(i+1, len(doc.Images))
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
		it := File{Path: filepath.Join(imageRoot, written.Name(filepath.Join(e.Filepath, e.Filename))), ID: int64(i)}
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
	for _, s := range sortedKeys(perSplit) {
		if s != "restval" && !slices.Contains(splits, s) {
			opt.Account.NotUnderstood(entryUnit, perSplit[s], "a split that is neither train, restval, val nor test",
				fmt.Sprintf("%s: %q", file, s))
		}
	}
	countTurned(opt.Account, written, file)
	return NewFiles(items, opt), nil
}
