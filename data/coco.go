package data

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/names"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// LoadCOCO reads the captions_*.json of COCO: {"images": [{"id", "file_name"}], "annotations":
// [{"image_id", "caption"}]}. Images lie in imageRoot. The order is that of the images, their ids are
// those of the file; images without an annotation have no caption.
func LoadCOCO(file, imageRoot string, opt Options) (*Files, error) {
	b, err := files.Read(file, files.MaxList)
	if err != nil {
		return nil, fmt.Errorf("data: COCO file: %w", err)
	}
	return parseCOCO(file, b, imageRoot, opt)
}

func parseCOCO(file string, b []byte, imageRoot string, opt Options) (*Files, error) {
	var doc struct {
		Images      []json.RawMessage `json:"images"`
		Annotations []json.RawMessage `json:"annotations"`
	}
	if err := json.Unmarshal(files.WithoutMark(b), &doc); err != nil {
		return nil, &RecordError{file, -1, fmt.Errorf(`not a COCO file (an object with the lists "images" and "annotations"): %w`, jsonError(err))}
	}
	if len(doc.Images) == 0 {
		return nil, &RecordError{file, -1, fmt.Errorf(`list "images" is missing or empty`)}
	}
	if len(doc.Annotations) == 0 {
		return nil, &RecordError{file, -1, fmt.Errorf(`list "annotations" is missing or empty: take captions_*.json, not image_info_*.json or instances_*.json`)}
	}
	opt = opt.counting()
	written := names.List{Root: imageRoot}
	items := make([]File, len(doc.Images))
	at := make(map[int64]int, len(items))
	for i, raw := range doc.Images {
		var e struct {
			ID   *int64 `json:"id"`
			Name string `json:"file_name"`
		}
		bad := func(err error) error { return &RecordError{file, i, fmt.Errorf(`list "images": %w`, err)} }
		if err := unmarshalEntry(raw, &e); err != nil {
			return nil, bad(err)
		}
		switch {
		case e.Name == "":
			return nil, bad(fmt.Errorf(`field "file_name" is missing`))
		case e.ID == nil:
			return nil, bad(fmt.Errorf(`field "id" is missing (image %q)`, e.Name))
		}
		if first, ok := at[*e.ID]; ok {
			return nil, bad(fmt.Errorf("id %d is that of entry %d already", *e.ID, first))
		}
		at[*e.ID] = i
		items[i] = File{Path: filepath.Join(imageRoot, written.Name(e.Name)), ID: *e.ID}
	}
	countTurned(opt.Account, written, file)
	for i, raw := range doc.Annotations {
		var e struct {
			Image   *int64  `json:"image_id"`
			Caption *string `json:"caption"`
		}
		bad := func(err error) error { return &RecordError{file, i, fmt.Errorf(`list "annotations": %w`, err)} }
		if err := unmarshalEntry(raw, &e); err != nil {
			return nil, bad(err)
		}
		switch {
		case e.Image == nil:
			return nil, bad(fmt.Errorf(`field "image_id" is missing`))
		case e.Caption == nil:
			return nil, bad(fmt.Errorf(`field "caption" is missing: take captions_*.json, not instances_*.json`))
		}
		k, ok := at[*e.Image]
		if !ok {
			return nil, bad(fmt.Errorf(`image_id %d is that of no entry of "images"`, *e.Image))
		}
		items[k].Captions = append(items[k].Captions, *e.Caption)
		opt.tell(i+1, len(doc.Annotations))
	}
	return NewFiles(items, opt), nil
}

// unmarshalEntry reads an entry of a list.
func unmarshalEntry(raw []byte, e any) error {
	if err := json.Unmarshal(raw, e); err != nil {
		return jsonError(err)
	}
	return strictjson.Check(raw)
}
