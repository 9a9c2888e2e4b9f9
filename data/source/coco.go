package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/names"
)

// COCO names the annotations of data.kind = "coco": captions_*.json with the lists images and annotations.
type COCO struct {
	// training annotations
	TrainFile string `toml:"train_file"`
	// validation annotations
	ValFile string `toml:"val_file"`
	// test annotations
	TestFile string `toml:"test_file"`
	// folder of the training images, below data.root unless absolute; empty: data.root
	TrainImages string `toml:"train_images"`
	// folder of the validation images
	ValImages string `toml:"val_images"`
	// folder of the test images
	TestImages string `toml:"test_images"`
}

// Check implements section.Checked.
func (f *COCO) Check(k *section.Checker) {
	if section.Of[Data](k).Kind != "coco" {
		return
	}
	k.Training("data.coco.train_file", f.TrainFile != "", `must name the captions_*.json for data.kind "coco"`)
	if k.Number("train.eval_every_steps") > 0 && (evaluated(k) == "val" || evaluated(k) == "test") {
		file, _ := f.Split(evaluated(k))
		k.Training("data.coco."+evaluated(k)+"_file", file != "", "must name a file",
			"or set eval.split or train.eval_every_steps = 0")
	}
}

// Split returns the annotations of a split, train, val or test, and the folder of its images.
func (f COCO) Split(name string) (file, images string) {
	return filesOf(name, f.TrainFile, f.ValFile, f.TestFile), filesOf(name, f.TrainImages, f.ValImages, f.TestImages)
}

// kind is data.kind = "coco".
func (*COCO) kind() Kind {
	return imageFiles(lists{
		load: func(_ context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
			file, images := cfg.Data.COCO.Split(split)
			if file == "" {
				return nil, unnamed("data.coco."+split+"_file", "a file")
			}
			return opened(LoadCOCO(Below(cfg.Data.Root, file), Below(cfg.Data.Root, images),
				options(cfg, o, "reading captions")))
		},
		splits: having(func(d Data, split string) bool { file, _ := d.COCO.Split(split); return file != "" }),
		inputs: func(cfg Setup, split string) []Input {
			file, images := cfg.Data.COCO.Split(split)
			if file == "" {
				return nil
			}
			return append(Under(cfg, "data.coco."+split+"_file", file, false),
				Under(cfg, "data.coco."+split+"_images", images, true)...)
		},
		mayLack: true,
	})
}

// LoadCOCO reads the captions_*.json of COCO: {"images": [{"id", "file_name"}], "annotations":
// [{"image_id", "caption"}]}. Images lie in imageRoot. The order is that of the images, their ids are
// those of the file; images without an annotation have no caption.
func LoadCOCO(file, imageRoot string, opt data.Options) (*data.Files, error) {
	return table.Parsed(file, "COCO file", func(file string, b []byte) (*data.Files, error) {
		return parseCOCO(file, b, imageRoot, opt)
	})
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

func parseCOCO(file string, b []byte, imageRoot string, opt data.Options) (*data.Files, error) {
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
	opt = opt.Counting()
	written := names.List{Root: imageRoot}
	items := make([]data.File, len(doc.Images))
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
		items[i] = data.File{Path: filepath.Join(imageRoot, written.Name(e.Name)), ID: *e.ID}
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
			opt.Tell(i+1, len(doc.Annotations))
			return nil
		})
	if err != nil {
		return nil, err
	}
	return data.NewFiles(items, opt), nil
}
