package examples

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/names"
)

// labelledColumns are the names of the columns of texts with pictures and a class: the first picture, the second, the
// text, the class and the id of a row, which may lack.
var labelledColumns = [...][]string{{"image", "img"}, {"second_image", "image2"}, {"text", "sentence"}, {"label"},
	{"id"}}

// LoadLabelled reads texts with one picture or two and a class of any name: tables with the columns image (or img),
// second_image where there are two pictures, text (or sentence), label and, if there is one, id (Hateful Memes, Kiela
// et al. 2020, has such lines). A row without a label is left out. The classes are the names of the labels in their
// order.
func LoadLabelled(paths []string, pictures int, o Options) (*data.FileExamples, error) {
	f := &data.FileExamples{MaxPixels: o.MaxPixels}
	var c table.Counts
	var labels []string
	for _, path := range paths {
		id := false
		pick := func(columns []string) (table.Columns, error) {
			at := make([]int, 0, len(labelledColumns))
			for k, names := range labelledColumns {
				i := slices.IndexFunc(columns, func(name string) bool { return slices.Contains(names, name) })
				switch last := k == len(labelledColumns)-1; {
				case k == 1 && pictures == 1:
				case i >= 0:
					at, id = append(at, i), last
				case !last:
					return table.Columns{},
						table.Whole(path,
							fmt.Errorf("column %q is missing: want image, text and label, and second_image with two pictures of a text", names[0]))
				}
			}
			return table.Columns{At: at}, nil
		}
		err := table.Read(path, pick, c.Take(func(r table.Row) error {
			cells := r.Cells
			text, label := cells[pictures], strings.TrimSpace(cells[pictures+1])
			switch {
			case label == "":
				c.Unlabelled++
				return nil
			case slices.Contains(cells[:pictures], ""):
				c.Refuse(r.Wrong(errors.New("a picture has no name")))
				return nil
			case strings.TrimSpace(text) == "":
				c.Refuse(r.Wrong(errors.New("the text is empty")))
				return nil
			}
			e := data.Example{ID: fmt.Sprint(f.Len()), Text: text}
			if id {
				e.ID = cells[pictures+2]
			}
			var files []string
			for _, name := range cells[:pictures] {
				files = append(files, names.Under(o.ImageRoot, name))
			}
			f.Add(e, files...)
			labels = append(labels, label)
			return nil
		}))
		if err != nil {
			return nil, err
		}
	}
	f.Classes = slices.Compact(slices.Sorted(slices.Values(labels)))
	for i, label := range labels {
		k, _ := slices.BinarySearch(f.Classes, label)
		f.List[i].Label = int32(k)
	}
	return f, finish(&c, f, paths[0], o)
}
