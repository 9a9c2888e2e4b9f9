package examples

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/names"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// GroundingFiles hold what lists of expressions leave out. Any may be empty.
type GroundingFiles struct {
	Refs      string // refs(unc).p of refer, a pickle: which object an expression with a ref_id is about
	Instances string // instances.json of refer or COCO: pictures with their sizes, and boxes of objects
	// {"image id or name": [[x, y, width, height, ...], ...]}, ALBEF's dets.json: boxes to look for objects in
	Detections string
}

// grounding is a split being read.
type grounding struct {
	o          Options
	split      string
	refs       map[int64]ref
	instances  instances
	detections detections
	out        *data.FileExamples
	counts     table.Counts
	clipped    int // targets that reach out of their picture
	dropped    int // boxes of detections or proposals without an area
	without    int // expressions without proposals
	folded     int // names of pictures found by another Unicode normal form
}

// LoadGrounding reads expressions about objects of pictures, for a split (train, val, test). A path is a list in JSON
// of
//
//	{"image": "a/b.jpg", "text": "the cup on the left", "bbox": [x, y, width, height],
//	 "proposals": [[x, y, width, height], ...], "kind": "..."}
//
// of which the last three may lack; instead of "bbox" there may be a "ref_id" of f.Refs (ALBEF's refcoco+_val.json). Or
// it is f.Refs itself, whose expressions of the split are read then, for test those of testA and testB, which are the
// kinds. Boxes are in pixels. Of val and test, expressions without a target are left out. A target that reaches out of
// a picture of known size is clipped, one that lies outside of it is a bad row.
func LoadGrounding(paths []string, split string, f GroundingFiles, o Options) (*data.FileExamples, error) {
	g := &grounding{o: o, split: split, out: &data.FileExamples{MaxPixels: o.MaxPixels}}
	var err error
	if f.Instances != "" {
		if g.instances, err = table.Parsed(f.Instances, "instances", parseInstances); err != nil {
			return nil, err
		}
	}
	if f.Detections != "" {
		if g.detections, err = table.Parsed(f.Detections, "detections", parseDetections); err != nil {
			return nil, err
		}
		g.dropped = g.detections.dropped
	}
	if f.Refs != "" {
		list, err := loadRefs(f.Refs)
		if err != nil {
			return nil, err
		}
		g.refs = make(map[int64]ref, len(list))
		for _, r := range list {
			g.refs[r.id] = r
		}
	}
	for _, path := range paths {
		if filepath.Ext(path) == ".p" {
			err = g.readRefs(path)
		} else {
			err = g.readList(path)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := finish(&g.counts, g.out, paths[0], o); err != nil {
		return nil, err
	}
	g.out.Met.Changed(rowUnit, g.clipped, "the target reaches out of its picture and is clipped")
	g.out.Met.LeftOut("proposal", g.dropped, "a box without an area")
	if split != "train" {
		g.out.Met.Changed(rowUnit, g.without, "without boxes to look in: it is looked for in sliding ones")
	}
	g.out.Met.Changed(rowUnit, g.folded, "boxes found by a name that differs only in Unicode normalisation (NFC, NFD)")
	return g.out, nil
}

// groundingRow is a row of a list.
type groundingRow struct {
	Image     *string               `json:"image"`
	Text      *string               `json:"text"`
	Ref       *int64                `json:"ref_id"`
	Box       strictjson.Numbers    `json:"bbox"`
	Proposals *[]strictjson.Numbers `json:"proposals"`
	Kind      string                `json:"kind"`
}

// readList reads a list in JSON.
func (g *grounding) readList(path string) error {
	b, err := table.ReadFile(path, "list of expressions")
	if err != nil {
		return err
	}
	return g.addList(path, b)
}

// addList adds the expressions of a list.
func (g *grounding) addList(path string, b []byte) error {
	l := table.Entries{File: path}
	if err := table.ParseJSON(path, b, `it is not a JSON list of {"image", "text", ...}`, &l.Raw); err != nil {
		return err
	}
	for i, raw := range l.Raw {
		g.counts.Rows++
		if err := g.row(raw); err != nil {
			g.counts.Refuse(l.Wrong(i, err))
		}
	}
	return nil
}

// row reads a row of a list. An error says that it cannot be used.
func (g *grounding) row(raw json.RawMessage) error {
	var r groundingRow
	if err := table.Decode(raw, &r); err != nil {
		return err
	}
	switch {
	case r.Image == nil || *r.Image == "":
		return fmt.Errorf(`field "image" is missing: want the path of the picture`)
	case r.Text == nil || strings.TrimSpace(*r.Text) == "":
		return fmt.Errorf(`field "text" is missing: want the expression`)
	}
	e := data.Example{ID: strconv.Itoa(g.out.Len()), Text: *r.Text, Kind: r.Kind, Label: data.UnknownLabel}
	image, known := imageID(*r.Image)
	if r.Ref != nil {
		e.ID = strconv.FormatInt(*r.Ref, 10)
		if of, ok := g.refs[*r.Ref]; ok {
			image, known = of.image, true
			if e.Kind == "" {
				e.Kind = of.kind(g.split)
			}
			if box, ok := g.instances.boxes[of.ann]; ok && r.Box == nil {
				r.Box = box
			}
		}
	}
	if r.Proposals != nil {
		for _, p := range *r.Proposals {
			if b, err := rect(p); err == nil {
				e.Proposals = append(e.Proposals, b)
			} else {
				g.dropped++
			}
		}
	} else if boxes, how := g.detections.find(*r.Image); boxes != nil {
		e.Proposals = boxes
		if how == names.Folded {
			g.folded++
		}
	} else if known {
		e.Proposals, _ = g.detections.find(strconv.FormatInt(image, 10))
	}
	size := picture{}
	if known {
		size = g.instances.pictures[image]
	}
	return g.add(e, r.Box, size, names.Under(g.o.ImageRoot, *r.Image))
}

// add adds an expression with its target, nil for none, in a picture, whose size may be unknown.
func (g *grounding) add(e data.Example, box []float64, size picture, path string) error {
	switch {
	case box != nil:
		b, err := rect(box)
		if err != nil {
			return fmt.Errorf(`"bbox": %w`, err)
		}
		if size.w > 0 {
			if inside, cut := b.Clip(size.w, size.h); cut {
				if inside.W < 1 || inside.H < 1 {
					return fmt.Errorf(`"bbox": the box %v lies outside of the picture of %g x %g pixels`, box, size.w,
						size.h)
				}
				b = inside
				g.clipped++
			}
		}
		e.Target = &b
	case g.split != "train":
		g.counts.Unlabelled++
		return nil
	}
	if e.Proposals == nil {
		g.without++
	}
	g.out.Add(e, path)
	return nil
}

// mostPixels is the largest coordinate of a box.
const mostPixels = 1 << 24

// rect is a box of [x, y, width, height, ...].
func rect(v []float64) (data.Rect, error) {
	if len(v) < 4 {
		return data.Rect{}, fmt.Errorf("want [x, y, width, height] (got %d numbers)", len(v))
	}
	for _, x := range v[:4] {
		if !(math.Abs(x) <= mostPixels) {
			return data.Rect{}, fmt.Errorf("want a box in pixels (got %v)", v[:4])
		}
	}
	if v[2] <= 0 || v[3] <= 0 {
		return data.Rect{}, fmt.Errorf("want a width and a height above 0 (got %v)", v[:4])
	}
	return data.Rect{X: v[0], Y: v[1], W: v[2], H: v[3]}, nil
}

// imageID is the number at the end of the name of a picture of COCO, COCO_train2014_000000581857.jpg.
func imageID(name string) (int64, bool) {
	base := filepath.Base(name)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	digits := base[len(strings.TrimRight(base, "0123456789")):]
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}
