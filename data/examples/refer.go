package examples

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/names"
	"github.com/geoalign/geoalign/internal/strictjson"
	"github.com/geoalign/geoalign/internal/torch"
)

// ref is an object that expressions are about, in refs(unc).p of refer.
type ref struct {
	id, ann, image int64
	split          string
	sentences      []string
}

// kind is the split of an object where it is another than the one that is read, such as testA.
func (r ref) kind(split string) string {
	if r.split == split {
		return ""
	}
	return r.split
}

// of says whether an object is of a split: those of testA, testB and testC are of test.
func (r ref) of(split string) bool {
	return r.split == split || split == "test" && strings.HasPrefix(r.split, "test")
}

func loadRefs(path string) ([]ref, error) {
	return table.Parsed(path, "expressions of refer", parseRefs)
}

// parseRefs reads refs(unc).p: a pickle of a list of {"ref_id", "ann_id", "image_id", "split", "sentences":
// [{"sent"}]}.
func parseRefs(path string, b []byte) ([]ref, error) {
	bad := func(i int, err error) error { return &table.RecordError{File: path, Index: i, Err: err} }
	v, err := torch.Plain(b)
	if err != nil {
		return nil, bad(-1, fmt.Errorf("it is not a pickle of refer: %w", err))
	}
	rows, ok := v.([]any)
	if !ok {
		return nil, bad(-1, fmt.Errorf("it is not a list of objects with expressions"))
	}
	list := make([]ref, len(rows))
	for i, row := range rows {
		if list[i], err = newRef(row); err != nil {
			return nil, bad(i, err)
		}
	}
	return list, nil
}

// newRef is an entry of the list.
func newRef(v any) (r ref, err error) {
	row, ok := v.(map[string]any)
	if !ok {
		return r, fmt.Errorf("it is not a dictionary")
	}
	for key, to := range map[string]*int64{"ref_id": &r.id, "ann_id": &r.ann, "image_id": &r.image} {
		if *to, ok = row[key].(int64); !ok {
			return r, fmt.Errorf("%q is not a whole number (got %.40s)", key, fmt.Sprint(row[key]))
		}
	}
	if r.split, ok = row["split"].(string); !ok {
		return r, fmt.Errorf(`"split" is not text (got %.40s)`, fmt.Sprint(row["split"]))
	}
	said, ok := row["sentences"].([]any)
	if !ok {
		return r, fmt.Errorf(`"sentences" is not a list`)
	}
	for _, s := range said {
		fields, _ := s.(map[string]any)
		text, ok := fields["sent"].(string)
		if !ok {
			return r, fmt.Errorf(`a sentence has no text "sent"`)
		}
		r.sentences = append(r.sentences, text)
	}
	return r, nil
}

// readRefs reads the expressions of the split.
func (g *grounding) readRefs(path string) error {
	if g.instances.pictures == nil {
		return table.Whole(
			path, errors.New("the pickle names no pictures and no boxes: name instances.json beside it with "+
				"data.grounding.instances"))
	}
	list, err := loadRefs(path)
	if err != nil {
		return err
	}
	g.addRefs(path, list)
	return nil
}

// addRefs adds the expressions of the split.
func (g *grounding) addRefs(path string, list []ref) {
	for i, r := range list {
		if !r.of(g.split) {
			continue
		}
		bad := func(err error) { g.counts.Refuse(&table.RecordError{File: path, Index: i, Err: err}) }
		size, ok := g.instances.pictures[r.image]
		for _, text := range r.sentences {
			g.counts.Rows++
			switch {
			case !ok:
				bad(fmt.Errorf("image_id %d is that of no picture of instances.json", r.image))
				continue
			case strings.TrimSpace(text) == "":
				bad(fmt.Errorf("an expression is empty"))
				continue
			}
			e := data.Example{ID: strconv.FormatInt(r.id, 10), Text: text, Kind: r.kind(g.split),
				Label: data.UnknownLabel}
			e.Proposals, _ = g.detections.find(strconv.FormatInt(r.image, 10))
			if err := g.add(e, g.instances.boxes[r.ann], size, names.Under(g.o.ImageRoot, size.name)); err != nil {
				bad(err)
			}
		}
	}
}

// instances are pictures and boxes of objects by their ids.
type instances struct {
	pictures map[int64]picture
	boxes    map[int64][]float64
}

// picture is a picture with its size in pixels.
type picture struct {
	name string
	w, h float64
}

// parseInstances reads instances.json: {"images": [{"id", "file_name", "width", "height"}], "annotations": [{"id",
// "bbox"}]}.
func parseInstances(path string, b []byte) (instances, error) {
	x := instances{map[int64]picture{}, map[int64][]float64{}}
	var doc struct {
		Images []struct {
			ID            *int64
			Name          string `json:"file_name"`
			Width, Height float64
		}
		Annotations []struct {
			ID   *int64
			BBox strictjson.Numbers
		}
	}
	if err := table.ParseJSON(
		path, b, `it is not a file of COCO's instances (an object with the lists "images" and `+
			`"annotations")`, &doc); err != nil {
		return x, err
	}
	for i, p := range doc.Images {
		if p.ID == nil || p.Name == "" || p.Width < 0 || p.Height < 0 {
			return x, table.Entries{File: path, List: "images"}.Wrong(i,
				errors.New(`want "id", "file_name", "width" and "height"`))
		}
		x.pictures[*p.ID] = picture{p.Name, p.Width, p.Height}
	}
	for i, a := range doc.Annotations {
		if a.ID == nil || a.BBox == nil {
			return x, table.Entries{File: path, List: "annotations"}.Wrong(i, errors.New(`want "id" and "bbox"`))
		}
		x.boxes[*a.ID] = a.BBox
	}
	if len(x.pictures) == 0 {
		return x, table.Whole(path, errors.New(`list "images" is missing or empty`))
	}
	return x, nil
}

// detections are boxes to look in by the id or the name of their picture.
type detections struct {
	boxes   *names.Index[[]data.Rect] // nil: there are none
	dropped int                       // boxes without an area
}

// find returns the boxes of a picture.
func (d detections) find(name string) ([]data.Rect, names.How) {
	if d.boxes == nil {
		return nil, names.Missing
	}
	return d.boxes.Find(name)
}

// parseDetections reads {"image": [[x, y, width, height, ...], ...]} and counts boxes that cannot be.
func parseDetections(path string, b []byte) (out detections, err error) {
	var doc map[string][][]any
	if err := table.ParseJSON(path, b, `it is not an object {"image id or name": [[x, y, width, height, ...], ...]}`,
		&doc); err != nil {
		return out, err
	}
	out.boxes = names.NewIndex[[]data.Rect]()
	for image, boxes := range doc {
		var list []data.Rect
		for _, box := range boxes {
			var v []float64
			for _, x := range box[:min(len(box), 4)] {
				if n, ok := x.(float64); ok {
					v = append(v, n)
				}
			}
			r, err := rect(v)
			if err != nil {
				out.dropped++
				continue
			}
			list = append(list, r)
		}
		out.boxes.Set(image, list)
	}
	return out, nil
}
