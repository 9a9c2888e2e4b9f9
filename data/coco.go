package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/names"
)

// LoadCOCO reads the captions_*.json of COCO: {"images": [{"id", "file_name"}], "annotations":
// [{"image_id", "caption"}]}. Images lie in imageRoot. The order is that of the images, their ids are
// those of the file; images without an annotation have no caption.
func LoadCOCO(file, imageRoot string, opt Options) (*Files, error) {
	b, err := table.ReadFile(file, "COCO file")
	if err != nil {
		return nil, err
	}
	return parseCOCO(file, b, imageRoot, opt)
}

// cocoImage and cocoAnnotation are entries of the two lists.
type (
	cocoImage struct {
		ID   *int64 `json:"id"`
		Name string `json:"file_name"`
	}
	cocoAnnotation struct {
		Image   *int64  `json:"image_id"`
		Caption *string `json:"caption"`
	}
)

func parseCOCO(file string, b []byte, imageRoot string, opt Options) (*Files, error) {
	var doc struct {
		Images      []json.RawMessage `json:"images"`
		Annotations []json.RawMessage `json:"annotations"`
	}
	if err := table.ParseJSON(file, b, `not a COCO file (an object with the lists "images" and "annotations")`,
		&doc); err != nil {
		return nil, err
	}
	if len(doc.Images) == 0 {
		return nil, table.Whole(file, errors.New(`list "images" is missing or empty`))
	}
	if len(doc.Annotations) == 0 {
		return nil, table.Whole(
			file, errors.New(
				`list "annotations" is missing or empty: take captions_*.json, not image_info_*.json or `+
					`instances_*.json`))
	}
	opt = opt.counting()
	written := names.List{Root: imageRoot}
	items := make([]File, len(doc.Images))
	at := make(map[int64]int, len(items))
	err := table.Each(table.Entries{File: file, List: "images", Raw: doc.Images}, func(i int, e cocoImage) error {
		switch {
		case e.Name == "":
			return errors.New(`field "file_name" is missing`)
		case e.ID == nil:
			return fmt.Errorf(`field "id" is missing (image %q)`, e.Name)
		}
		if first, ok := at[*e.ID]; ok {
			return fmt.Errorf("id %d is that of entry %d already", *e.ID, first)
		}
		at[*e.ID] = i
		items[i] = File{Path: filepath.Join(imageRoot, written.Name(e.Name)), ID: *e.ID}
		return nil
	})
	if err != nil {
		return nil, err
	}
	countTurned(opt.Account, written, file)
	err = table.Each(table.Entries{File: file, List: "annotations", Raw: doc.Annotations},
		func(i int, e cocoAnnotation) error {
			switch {
			case e.Image == nil:
				return errors.New(`field "image_id" is missing`)
			case e.Caption == nil:
				return errors.New(`field "caption" is missing: take captions_*.json, not instances_*.json`)
			}
			k, ok := at[*e.Image]
			if !ok {
				return fmt.Errorf(`image_id %d is that of no entry of "images"`, *e.Image)
			}
			items[k].Captions = append(items[k].Captions, *e.Caption)
			opt.tell(i+1, len(doc.Annotations))
			return nil
		})
	if err != nil {
		return nil, err
	}
	return NewFiles(items, opt), nil
}
