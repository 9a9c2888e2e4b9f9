package data

import (
	"fmt"
	"sort"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/identity"
)

// fileRows is what data sets of rows share whose pictures lie in the files of the rows: their texts, which are in
// memory, and the files, which are opened when a picture is wanted.
type fileRows struct {
	files     handles
	texts     []*packed // of each file a list for each row, the captions behind what else is said of it
	before    int       // texts of a row before its captions
	first     []int     // row of each file, and the end
	empty     int       // captions that were dropped
	maxPixels int
	keeper
	tally
}

func newFileRows(paths []string, before int, opt Options) fileRows {
	return fileRows{
		files: handles{paths: paths, files: make([]identity.Stamp, len(paths))}, before: before, first: []int{0},
		maxPixels: opt.MaxPixels, tally: tally{opt.Account},
	}
}

// add adds the rows of the next file.
func (r *fileRows) add(texts *packed, empty int) {
	r.texts, r.first = append(r.texts, texts), append(r.first, r.Len()+texts.len())
	r.empty += empty
}

// at returns the file of row i and the number of the row in it.
func (r *fileRows) at(i int) (file, in int) {
	file = sort.SearchInts(r.first, i+1) - 1
	return file, i - r.first[file]
}

// text is text k of row i.
func (r *fileRows) text(i, k int) string {
	file, in := r.at(i)
	first, _ := r.texts[file].span(in)
	return r.texts[file].at(first + uint64(k))
}

// container is the path of the file of row i.
func (r *fileRows) container(i int) string {
	file, _ := r.at(i)
	return r.files.paths[file]
}

// Len is the number of rows.
func (r *fileRows) Len() int { return r.first[len(r.first)-1] }

// Captions of row i.
func (r *fileRows) Captions(i int) []string {
	file, in := r.at(i)
	return r.texts[file].list(in, r.before)
}

// NumCaptions is the number of captions of row i.
func (r *fileRows) NumCaptions(i int) int {
	file, in := r.at(i)
	first, end := r.texts[file].span(in)
	return int(end-first) - r.before
}

// EmptyCaptions is the number of captions that were dropped because nothing of them is left after cleaning.
func (r *fileRows) EmptyCaptions() int { return r.empty }

// ImageID of row i is i.
func (r *fileRows) ImageID(i int) int64 { return int64(i) }

// decoded is the picture of the row of a name, of which the bytes were read, or not with err.
func (r *fileRows) decoded(name string, b []byte, err error, w *images.Stopwatch) (m *transform.Image, _ error) {
	w.Lap(images.StageRead)
	if err == nil {
		m, err = images.DecodeTimed(b, r.maxPixels, w)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// packed is lists of strings in one piece of memory, for data sets of millions of captions.
type packed struct {
	Text []byte
	Ends []uint64 // of the strings in Text
	Last []uint64 // of each list, the number of strings up to its end
}

// add appends a list.
func (p *packed) add(list ...string) {
	for _, s := range list {
		p.Text = append(p.Text, s...)
		p.Ends = append(p.Ends, uint64(len(p.Text)))
	}
	p.Last = append(p.Last, uint64(len(p.Ends)))
}

// len is the number of lists.
func (p *packed) len() int { return len(p.Last) }

// span returns the first string of list i and the first of the next list.
func (p *packed) span(i int) (first, end uint64) {
	if i > 0 {
		first = p.Last[i-1]
	}
	return first, p.Last[i]
}

// at returns string k of all.
func (p *packed) at(k uint64) string {
	var start uint64
	if k > 0 {
		start = p.Ends[k-1]
	}
	return string(p.Text[start:p.Ends[k]])
}

// list returns list i from its string number from on.
func (p *packed) list(i, from int) []string {
	first, end := p.span(i)
	list := make([]string, 0, end-first-uint64(from))
	for k := first + uint64(from); k < end; k++ {
		list = append(list, p.at(k))
	}
	return list
}

// valid says whether no call can fail, for what was read from a file, and each list has at least so
// many strings.
func (p *packed) valid(least int) bool {
	end := uint64(0)
	for _, e := range p.Ends {
		if e < end || e > uint64(len(p.Text)) {
			return false
		}
		end = e
	}
	last := uint64(0)
	for _, l := range p.Last {
		if l < last || l-last < uint64(least) || l > uint64(len(p.Ends)) {
			return false
		}
		last = l
	}
	return true
}
