package examples

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/names"
)

// NLVRClasses are the classes of statements in the order of their numbers.
var NLVRClasses = []string{"false", "true"}

// statement is an object of any of the forms that LoadNLVR reads.
type statement struct {
	Sentence   *string         `json:"sentence"`
	Label      json.RawMessage `json:"label"`
	Identifier string          `json:"identifier"`
	Directory  json.RawMessage `json:"directory"`
	Images     []string        `json:"images"`
	Boxes      json.RawMessage `json:"structured_rep"`
}

// The forms of identifiers: split-set-pair-sentence of NLVR2, and presentation-place of NLVR.
var (
	nlvr2ID = regexp.MustCompile(`^([A-Za-z0-9]+)-(\d+)-(\d+)-(\d+)$`)
	nlvr1ID = regexp.MustCompile(`^(\d+)-(\d+)$`)
)

// nlvrOrders is the number of pictures of a statement of NLVR, which show its boxes in every order.
const nlvrOrders = 6

// LoadNLVR reads statements that are true or false of two pictures, each file a list of objects or an object on each
// line:
//
//   - NLVR2 (Suhr et al. 2019): {"sentence", "label", "identifier"} with the identifier SPLIT-SET-PAIR-SENTENCE. The
//     pictures are SPLIT-SET-PAIR-img0.png, the left one, and SPLIT-SET-PAIR-img1.png, in the folder SPLIT, and of
//     training in that of "directory" within it; or all below one folder, as the first picture that is there shows.
//   - ALBEF's lists: {"images": [left, right], "sentence", "label"}.
//   - NLVR (Suhr et al. 2017): {"sentence", "label", "identifier", "directory", "structured_rep"}. Its six pictures
//     DIRECTORY/SPLIT-IDENTIFIER-K.png, where SPLIT is the name of the file, show three boxes beside each
//     other in every order: six samples, whose first picture is the two left boxes and whose second is the right one.
//
// Labels are true and false in any case, as text or not. A statement without one is left out, and another label is an
// error. Files of different forms do not go together.
func LoadNLVR(paths []string, o Options) (*data.FileExamples, error) {
	f := &data.FileExamples{Classes: NLVRClasses, MaxPixels: o.MaxPixels}
	var c table.Counts
	form := ""
	for _, path := range paths {
		r := nlvrReader{f: f, o: o, file: path, form: &form}
		if err := table.Objects(path, c.Take(func(row table.Row) error { return r.take(row, &c) })); err != nil {
			return nil, err
		}
	}
	return f, finish(&c, f, paths[0], o)
}

// nlvrReader reads a file.
type nlvrReader struct {
	f      *data.FileExamples
	o      Options
	file   string
	form   *string // of all files: NLVR2, ALBEF or NLVR; empty before the first statement
	folder int     // the layout of pictures, as the first statement shows whose picture is there
	found  bool    // there was one
	looked int     // statements without one
}

// take reads a statement.
func (r *nlvrReader) take(row table.Row, c *table.Counts) error {
	wrong := row.Wrong
	var s statement
	if err := json.Unmarshal(row.Raw, &s); err != nil {
		c.Refuse(wrong(fmt.Errorf("it is not a statement: %w", err)))
		return nil
	}
	form, err := s.form()
	switch {
	case err != nil:
		c.Refuse(wrong(err))
		return nil
	case *r.form == "":
		*r.form = form
	case *r.form != form:
		return wrong(fmt.Errorf("it is a statement of %s among those of %s: name files of one of them", form, *r.form))
	}
	label, known, err := s.truth()
	switch {
	case err != nil:
		return wrong(err)
	case !known:
		c.Unlabelled++
		return nil
	}
	e := data.Example{ID: s.Identifier, Text: *s.Sentence, Label: label}
	switch form {
	case formALBEF:
		if e.ID == "" {
			e.ID = fmt.Sprint(r.f.Len())
		}
		r.f.Add(e, names.Under(r.o.ImageRoot, s.Images[0]), names.Under(r.o.ImageRoot, s.Images[1]))
	case formNLVR2:
		id := nlvr2ID.FindStringSubmatch(s.Identifier)
		name := strings.Join(id[1:4], "-") + "-img"
		folder := r.find(name+"0.png", []string{filepath.Join(id[1], s.directory()),
			filepath.Join("images", id[1], s.directory()), id[1], s.directory(), ""})
		r.f.Add(e, filepath.Join(folder, name+"0.png"), filepath.Join(folder, name+"1.png"))
	case formNLVR1:
		split := strings.TrimSuffix(filepath.Base(r.file), filepath.Ext(r.file))
		name := func(k int) string { return fmt.Sprintf("%s-%s-%d.png", split, s.Identifier, k) }
		folder := r.find(name(0), []string{s.directory(), filepath.Join("images", s.directory()),
			filepath.Join(split, "images", s.directory()), ""})
		r.f.Cut = cutBoxes
		for k := range nlvrOrders {
			e.ID = name(k)
			path := filepath.Join(folder, name(k))
			r.f.Add(e, path, path)
		}
	}
	return nil
}

// The forms of a statement, as messages name them.
const (
	formNLVR2 = "NLVR2"
	formALBEF = "ALBEF's lists"
	formNLVR1 = "NLVR"
)

// form returns the form of a statement, or what it lacks.
func (s statement) form() (string, error) {
	switch {
	case s.Sentence == nil || strings.TrimSpace(*s.Sentence) == "":
		return "", errors.New(`field "sentence" is missing or empty`)
	case s.Images != nil && len(s.Images) != 2:
		return "", fmt.Errorf(`field "images" must name two pictures, the left one and the right one (got %d)`,
			len(s.Images))
	case s.Images != nil && slices.Contains(s.Images, ""):
		return "", errors.New(`field "images" has an empty name: a statement is about two pictures`)
	case s.Images != nil:
		return formALBEF, nil
	case nlvr2ID.MatchString(s.Identifier) && s.Boxes == nil:
		return formNLVR2, nil
	case nlvr1ID.MatchString(s.Identifier) && s.Boxes != nil:
		return formNLVR1, nil
	}
	return "", fmt.Errorf(
		`field "identifier" %.40q is none of NLVR2, such as dev-850-0-0, and there is no field "images" with two `+
			`pictures`, s.Identifier)
}

// truth returns the class of the label, known = false for a statement without one.
func (s statement) truth() (label int32, known bool, err error) {
	text := strings.Trim(string(s.Label), `"`)
	if text == "" || text == "null" || text == "-" {
		return data.UnknownLabel, false, nil
	}
	class := slices.Index(NLVRClasses, strings.ToLower(text))
	if class < 0 {
		return 0, false, fmt.Errorf("label %.40s is neither true nor false: name files of statements", s.Label)
	}
	return int32(class), true, nil
}

// directory is the folder of the pictures of a statement, which may lack; it is a text or a number.
func (s statement) directory() string {
	name := strings.Trim(string(s.Directory), `"`)
	if name == "null" || !filepath.IsLocal(name) {
		return ""
	}
	return name
}

// mostLooked is the number of statements of a file by which the layout of its pictures is looked for, so that a few
// missing ones do not hide it.
const mostLooked = 100

// find returns the folder, of those below the root of pictures, that has a picture. It looks until it finds one: the
// others of a file lie alike.
func (r *nlvrReader) find(name string, folders []string) string {
	for i, folder := range folders {
		if r.found || r.looked == mostLooked {
			break
		}
		if _, err := os.Stat(filepath.Join(r.o.ImageRoot, folder, name)); err == nil {
			r.folder, r.found = i, true
		}
	}
	if !r.found {
		r.looked = min(r.looked+1, mostLooked)
	}
	return filepath.Join(r.o.ImageRoot, folders[r.folder])
}

// Boxes of a picture of NLVR, 400 x 100 pixels: three of 100 x 100 with bars between them.
const (
	nlvrWidth = 400
	nlvrBoxes = 250 // the width of two boxes and the bar between them
	nlvrLast  = 300 // where the last box begins
)

// cutBoxes returns the two left boxes of a picture of NLVR, or the right one.
func cutBoxes(m *transform.Image, k int) *transform.Image {
	from, to := 0, nlvrBoxes*m.W/nlvrWidth
	if k == 1 {
		from, to = nlvrLast*m.W/nlvrWidth, m.W
	}
	part := transform.NewImage(max(1, to-from), m.H)
	for y := range m.H {
		copy(part.Pix[3*y*part.W:3*(y+1)*part.W], m.Pix[3*(y*m.W+from):])
	}
	return part
}

// NLVRGroup returns what statements have in common whose answers are consistent when all of them are right: of NLVR2
// set and sentence, of NLVR the presentation (as their metrics.py have it), else the text.
func NLVRGroup(e data.Example) string {
	if x := nlvr2ID.FindStringSubmatch(e.ID); x != nil {
		return x[1] + "-" + x[2] + "--" + x[4]
	}
	if x := nlvr1Picture.FindStringSubmatch(e.ID); x != nil {
		return x[1]
	}
	return e.Text
}

var nlvr1Picture = regexp.MustCompile(`^([A-Za-z0-9]+-\d+)-\d+-\d\.png$`)
