package regions

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/names"
)

// CaptionsOfImage is how often old files repeat the row of an image: once for each of its captions.
const CaptionsOfImage = 5

// Values of Config.Repeated.
const (
	RepeatedAuto = "auto"
	RepeatedYes  = "yes"
	RepeatedNo   = "no"
)

// Config names the files of a split.
type Config struct {
	Features string // see OpenFeatures
	Tensor   string // in them; empty: the only one
	Boxes    string // file of boxes; empty: none, or those in Features
	// text file of captions: as many as there are images, or a whole multiple, those of an image together
	Captions string
	Words    bool   // a line of Captions is words with commas or blanks between them
	IDs      string // text file of ids, one for each image or each caption; empty, or not there: none
	Mapping  string // JSON of names of files by id; empty: none
	Pictures string // folder of the files of the images; empty: none

	// Repeated says whether, where there are as many captions as images, every image is there five times, once for
	// each of its captions: RepeatedYes, RepeatedNo, or RepeatedAuto to look.
	Repeated    string
	Most        int // regions of an image that are read, the first ones; 0: all
	MaxCaptions int // captions that are used, the first ones; 0: all

	data.Options
}

// Set is images as regions, with captions. Its names are those of the files of the images where they are known,
// else places in the file of the features.
type Set struct {
	cfg      Config
	features Features
	captions []string
	ends     []int32 // of the captions of each image
	rows     []int32 // of the images in features; -1: it has no regions there
	ids      []int64
	keys     []string // names of the images in the source; nil: none
	mapping  map[string]string
	most     int
	empty    int
	account  *account.Account
}

var (
	_ data.Columned = (*Set)(nil)
	_ data.Dataset  = (*Set)(nil)
)

// Load opens a split. Close it after use.
func Load(cfg Config) (_ *Set, err error) {
	s := &Set{cfg: cfg, account: account.New()}
	if s.features, err = OpenFeatures(cfg.Features, cfg.Tensor, cfg.Boxes); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.features.Close())
	}
	return s, nil
}

func (s *Set) load() (err error) {
	captions, err := readCaptions(s.cfg.Captions, s.cfg.Words)
	if err != nil {
		return err
	}
	if s.cfg.Mapping != "" {
		if s.mapping, err = readMapping(s.cfg.Mapping); err != nil {
			return err
		}
	}
	var ids []string
	if s.cfg.IDs != "" {
		ids, err = readLines(s.cfg.IDs)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for i := range ids {
			ids[i] = strings.TrimSpace(ids[i])
		}
	}
	s.most = cmp.Or(s.cfg.Most, s.features.Most())
	return s.join(captions, ids)
}

// join finds the images, their captions and their ids.
func (s *Set) join(captions, ids []string) error {
	l, err := s.layout(captions, ids)
	if err != nil {
		return err
	}
	n := l.images
	if m := s.cfg.MaxCaptions; m > 0 && m < len(captions) {
		if m%l.captions != 0 {
			return fmt.Errorf("regions: the first %d captions of %s are not whole images, which have %d each: choose "+
				"a multiple", m, s.cfg.Captions, l.captions)
		}
		n = m / l.captions
	}
	s.rows, s.ids = make([]int32, n), make([]int64, n)
	if ids != nil {
		s.keys = make([]string, n)
	}
	for i := range n {
		s.rows[i], s.ids[i] = int32(i*l.rows), int64(i)
		if ids != nil {
			mine := slices.Compact(slices.Clone(ids[i*l.ids : (i+1)*l.ids]))
			if len(mine) > 1 {
				return &table.LineError{File: s.cfg.IDs, Line: i*l.ids + 1,
					Err: fmt.Errorf("the captions of one image have the ids %q: they must agree", mine)}
			}
			s.keys[i] = mine[0]
		}
		for _, c := range captions[i*l.captions : (i+1)*l.captions] {
			if strings.TrimSpace(data.Clean(s.cfg.Clean, c, 0)) == "" {
				s.empty++
				continue
			}
			s.captions = append(s.captions, c)
		}
		s.ends = append(s.ends, int32(len(s.captions)))
	}
	if keys := s.features.Keys(); keys != nil {
		s.place(keys)
	}
	if s.keys != nil {
		s.ids = numberIDs(s.keys)
	}
	s.count(n)
	return nil
}

// count counts images and captions.
func (s *Set) count(images int) {
	a := s.account
	a.Used(data.CaptionUnit, len(s.captions))
	a.LeftOut(data.CaptionUnit, s.empty, "nothing is left of it after cleaning")
	for i := range images {
		if s.rows[i] < 0 {
			a.LeftOut(data.ImageUnit, 1, "without regions in "+filepath.Base(s.cfg.Features), s.keys[i])
		} else {
			a.Used(data.ImageUnit, 1)
		}
	}
	if keys := s.features.Keys(); keys != nil {
		used := map[int32]bool{}
		for _, row := range s.rows {
			used[row] = true
		}
		for i, key := range keys {
			if !used[int32(i)] {
				a.LeftOut("row of regions", 1, "no caption is of its image", key)
			} else {
				a.Used("row of regions", 1)
			}
		}
	}
}

// Account implements account.Accounted.
func (s *Set) Account() *account.Account { return s.account }

// layout says how many images there are, and how many captions, rows of features and ids each has.
type layout struct{ images, captions, rows, ids int }

// layout compares how many there are of each.
func (s *Set) layout(captions, ids []string) (l layout, err error) {
	images, of := s.features.Len(), s.cfg.Features
	if s.features.Keys() != nil && ids != nil { // which the ids choose
		images, of = len(ids), s.cfg.IDs
	}
	if len(captions)%images != 0 {
		return l, fmt.Errorf("regions: %s has %d captions and %s %d images: give each image one caption or the same "+
			"number of captions, each on a line of its own", s.cfg.Captions, len(captions), of, images)
	}
	if ids != nil && len(ids) != images && len(ids) != len(captions) {
		return l, fmt.Errorf(
			"regions: %s has %d ids, %s %d images and %s %d captions: give an id for each image or each caption, "+
				"or none (data.regions.ids = \"\")", s.cfg.IDs, len(ids), of, images, s.cfg.Captions, len(captions))
	}
	l = layout{images, len(captions) / images, 1, len(ids) / images}
	if l.captions > 1 {
		return l, nil
	}
	repeated, err := s.repeated(images, ids)
	if repeated {
		l = layout{images / CaptionsOfImage, CaptionsOfImage, CaptionsOfImage, l.ids * CaptionsOfImage}
	}
	return l, err
}

// place finds the rows of images whose file names them.
func (s *Set) place(keys []string) {
	if s.keys == nil {
		s.keys = make([]string, len(s.rows))
		for i, row := range s.rows {
			s.keys[i] = keys[row]
		}
		return
	}
	rows := names.NewIndex[int32]()
	for i, k := range keys {
		rows.Set(k, int32(i))
	}
	for i, k := range s.keys {
		row, how := rows.Find(k)
		switch how {
		case names.Missing, names.Ambiguous:
			row = -1
		case names.Folded:
			s.account.Changed(
				data.ImageUnit, 1, "regions found by a name that differs only in Unicode normalisation (NFC, NFD)", k)
		}
		s.rows[i] = row
	}
}

// repeated says whether each image is there once for each of its captions.
func (s *Set) repeated(images int, ids []string) (bool, error) {
	switch {
	case s.cfg.Repeated == RepeatedNo:
		return false, nil
	case s.cfg.Repeated == RepeatedYes && images%CaptionsOfImage != 0:
		return false, fmt.Errorf("regions: %s has %d images, which are not a multiple of %d: they cannot be repeated, "+
			"so set data.regions.repeated = %q", s.cfg.Features, images, CaptionsOfImage, RepeatedNo)
	case s.cfg.Repeated == RepeatedYes:
		return true, nil
	case images%CaptionsOfImage != 0:
		return false, nil
	case len(ids) == images:
		for i, id := range ids {
			if id != ids[i-i%CaptionsOfImage] {
				return false, nil
			}
		}
		return true, nil
	}
	a, ok := s.features.(*array)
	if !ok {
		return false, nil
	}
	const looked = 4 // images
	for i := range min(images, looked*CaptionsOfImage) {
		if same, err := a.same(i, i-i%CaptionsOfImage); err != nil || !same {
			return false, nil // a row that cannot be read is told when it is used
		}
	}
	return true, nil
}

// Len is the number of images.
func (s *Set) Len() int { return len(s.rows) }

// NumCaptions is the number of captions of image i.
func (s *Set) NumCaptions(i int) int { return len(s.Captions(i)) }

// Captions of image i.
func (s *Set) Captions(i int) []string {
	begin := int32(0)
	if i > 0 {
		begin = s.ends[i-1]
	}
	return s.captions[begin:s.ends[i]:s.ends[i]]
}

// EmptyCaptions is the number of captions that were dropped because nothing of them is left after cleaning.
func (s *Set) EmptyCaptions() int { return s.empty }

// ImageID of image i.
func (s *Set) ImageID(i int) int64 { return s.ids[i] }

// Name says which image i is.
func (s *Set) Name(i int) string {
	if s.keys != nil {
		if name := s.mapping[s.keys[i]]; name != "" {
			return name
		}
		if s.features.Keys() != nil {
			return s.keys[i]
		}
	}
	return fmt.Sprintf("%s row %d", filepath.Base(s.cfg.Features), s.rows[i])
}

// Pixels says whether the files of the images are known.
func (s *Set) Pixels() bool { return s.cfg.Pictures != "" }

// Image decodes the file of image i.
func (s *Set) Image(i int) (*transform.Image, error) {
	switch {
	case s.cfg.Pictures == "":
		return nil, errors.New(
			"regions: there are no pictures of the images: name their folder in data.regions.pictures")
	case s.keys == nil:
		return nil, errors.New("regions: the images have no names: give data.regions.ids, and data.regions.mapping")
	}
	name := s.mapping[s.keys[i]]
	if name == "" {
		name = s.keys[i]
	}
	if filepath.Ext(name) == "" {
		name += ".jpg"
	}
	return images.DecodeFile(filepath.Join(s.cfg.Pictures, filepath.FromSlash(name)), s.cfg.MaxPixels)
}

// Features are the regions.
func (s *Set) Features() Features { return s.features }

// Row is the row of image i in Features, -1 where it is not there.
func (s *Set) Row(i int) int { return int(s.rows[i]) }

// ImageColumns are the regions of an image and their number, and boxes where there are some.
func (s *Set) ImageColumns() []data.Column {
	return columns(s.most, s.features.Width(), s.features.Boxed())
}

// columns of images of up to r regions with d features.
func columns(r, d int, boxed bool) []data.Column {
	list := []data.Column{{Name: batch.Regions, Shape: []int{r, d}}, {Name: batch.RegionLengths, Type: batch.Int32}}
	if boxed {
		list = append(list, data.Column{Name: batch.RegionBoxes, Shape: []int{r, 4}})
	}
	return list
}

// FillImage reads image i. One without a region is an error.
func (s *Set) FillImage(i int, row batch.Row) error {
	features, boxes, lengths := row.Floats(batch.Regions), row.Floats(batch.RegionBoxes), row.Ints(batch.RegionLengths)
	if features == nil && boxes == nil && lengths == nil {
		return nil
	}
	if s.rows[i] < 0 {
		return fmt.Errorf("regions: %s has no image %q, which %s names", s.cfg.Features, s.keys[i], s.cfg.IDs)
	}
	if features == nil {
		features = make([]float32, s.most*s.features.Width())
	}
	n, err := s.features.Read(int(s.rows[i]), features, boxes)
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("regions: %s: row %d, image %s, has no region: remove it and its captions", s.cfg.Features,
			s.rows[i], s.Name(i))
	}
	row.Set(batch.RegionLengths, int32(n))
	return nil
}

// Close closes the files.
func (s *Set) Close() error { return s.features.Close() }
