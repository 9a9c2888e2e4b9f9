package examples

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/names"
)

// EntailmentClasses are the classes of visual entailment in the order of their numbers (ALBEF's).
var EntailmentClasses = []string{"contradiction", "neutral", "entailment"}

// entailmentFields are the names of the fields in both forms of the files: picture, hypothesis, label, and the id of a
// row, which may lack.
var entailmentFields = [...][4]string{
	{"Flickr30K_ID", "sentence2", "gold_label", "pairID"}, // SNLI-VE
	{"image", "sentence", "label", ""},                    // ALBEF
}

// LoadEntailment reads visual entailment: the lines of SNLI-VE (snli_ve_train.jsonl, Xie et al. 2019) with the picture
// NAME.jpg of Flickr30K_ID, or ALBEF's list of {"image", "sentence", "label"}. A row whose annotators did not agree has
// the label "-" and is left out; another label than those of EntailmentClasses is an error, since the file is then of
// another task.
func LoadEntailment(paths []string, o Options) (*data.FileExamples, error) {
	f := &data.FileExamples{Classes: EntailmentClasses, MaxPixels: o.MaxPixels}
	var c table.Counts
	for _, path := range paths {
		fields, snli := entailmentFields[1], false
		pick := func(columns []string) (table.Columns, error) {
			for i, x := range entailmentFields {
				if slices.Contains(columns, x[1]) {
					fields, snli = x, i == 0
				}
			}
			at := make([]int, 0, len(fields))
			for _, n := range fields {
				k := slices.Index(columns, n)
				switch {
				case k >= 0:
					at = append(at, k)
				case n != "" && n != "pairID":
					return table.Columns{}, table.Whole(path, fmt.Errorf("field %q is missing: want those of SNLI-VE "+
						"(Flickr30K_ID, sentence2, gold_label) or image, sentence, label", n))
				}
			}
			return table.Columns{At: at}, nil
		}
		err := table.Read(path, pick, c.Take(func(r table.Row) error {
			at := r.Wrong
			picture, text, label := strings.TrimSpace(r.Cells[0]), r.Cells[1], strings.TrimSpace(r.Cells[2])
			class := slices.Index(EntailmentClasses, label)
			switch {
			case label == "-" || label == "":
				c.Unlabelled++
				return nil
			case class < 0:
				return at(fmt.Errorf("label %.40q is none of %s: name files of visual entailment", label,
					strings.Join(EntailmentClasses, ", ")))
			case picture == "":
				c.Refuse(at(fmt.Errorf("field %q is empty", fields[0])))
				return nil
			case strings.TrimSpace(text) == "":
				c.Refuse(at(fmt.Errorf("field %q is empty", fields[1])))
				return nil
			}
			if snli && filepath.Ext(picture) == "" {
				picture += ".jpg"
			}
			e := data.Example{ID: fmt.Sprint(f.Len()), Text: text, Label: int32(class)}
			if len(r.Cells) > 3 {
				e.ID = r.Cells[3]
			}
			f.Add(e, names.Under(o.ImageRoot, picture))
			return nil
		}))
		if err != nil {
			return nil, err
		}
	}
	return f, finish(&c, f, paths[0], o)
}
