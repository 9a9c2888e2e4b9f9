package descriptor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/files"
)

// Files that Write makes in its folder.
const (
	ImageFile  = "image.npy"  // features of the images, a row for each
	TextFile   = "text.npy"   // features of the texts
	ImagesList = "images.txt" // names of the images, a line for each
	TextsList  = "texts.txt"  // the texts
	PairsFile  = "pairs.tsv"  // which text is of which image, where an image has several
)

// Written is what Write wrote.
type Written struct {
	Images  int  `json:"images"`
	Texts   int  `json:"texts"`
	LeftOut int  `json:"left_out"` // images without a text
	Index   bool `json:"index"`    // there is a PairsFile: rows are not in step
}

// Write writes the features of the images and texts of a data set to files in dir, which is there. progress is told
// how many images are done. It ends early with the error of ctx, and where an image cannot be read.
func Write(ctx context.Context, ds data.Dataset, dir string, progress func(done, of int)) (w Written, err error) {
	var names, texts, pairs strings.Builder
	pairs.WriteString("image_row\ttext_row\n")
	each := func(image, text func([]float32) error) error {
		for i := range ds.Len() {
			if err := ctx.Err(); err != nil {
				return err
			}
			captions := ds.Captions(i)
			if len(captions) == 0 {
				w.LeftOut++
				continue
			}
			m, err := ds.Image(i)
			if err != nil {
				return err
			}
			if err := image(Image(m)); err != nil {
				return err
			}
			fmt.Fprintln(&names, ds.Name(i))
			for _, c := range captions {
				if err := text(Text(c)); err != nil {
					return err
				}
				fmt.Fprintln(&texts, strings.Join(strings.Fields(c), " "))
				fmt.Fprintf(&pairs, "%d\t%d\n", w.Images, w.Texts)
				w.Texts++
			}
			w.Images++
			progress(i+1, ds.Len())
		}
		return nil
	}
	err = features.Write(filepath.Join(dir, ImageFile), func(image func([]float32) error) error {
		return features.Write(filepath.Join(dir, TextFile),
			func(text func([]float32) error) error { return each(image, text) })
	})
	if err != nil {
		return w, err
	}
	lists := map[string]string{ImagesList: names.String(), TextsList: texts.String()}
	if w.Index = w.Images != w.Texts; w.Index {
		lists[PairsFile] = pairs.String()
	}
	for name, content := range lists {
		if err := files.Replace(filepath.Join(dir, name), []byte(content)); err != nil {
			return w, err
		}
	}
	return w, nil
}
