package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/eval"
)

// dataset is pairs to draw from and held-out galleries.
type dataset struct {
	images, texts align.Rows
	train         [][2]int32 // rows of image and text
	gallery       [2][]int32 // rows of the held-out images, each once, and texts
	owner         []int      // place of the image of each held-out text
}

// holdOut takes the last rows for the galleries.
func (d *dataset) holdOut(last int) error {
	n := d.images.Rows()
	if d.texts.Rows() != n || last < 1 || last >= n {
		return fmt.Errorf("%d images, %d texts and -last %d: want as many texts as images, and fewer held out", n, d.texts.Rows(), last)
	}
	for i := range int32(n) {
		if int(i) < n-last {
			d.train = append(d.train, [2]int32{i, i})
			continue
		}
		d.gallery[align.Image] = append(d.gallery[align.Image], i)
		d.gallery[align.Text] = append(d.gallery[align.Text], i)
		d.owner = append(d.owner, len(d.owner))
	}
	return nil
}

// readTable reads the splits of a table.
func (d *dataset) readTable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.FieldsPerRecord = '\t', 3
	lines, err := r.ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(lines) == 0 {
		return fmt.Errorf("%s is empty: want the columns split, image_row and text_row", path)
	}
	seen := map[int32]int{} // image row -> its place in the gallery
	for i, line := range lines[1:] {
		var rows [2]int32
		for k, field := range line[1:] {
			v, err := strconv.Atoi(field)
			if err != nil || v < 0 || v >= d.tables()[k].Rows() {
				return fmt.Errorf("%s: line %d: %q is no row of the features", path, i+2, field)
			}
			rows[k] = int32(v)
		}
		switch line[0] {
		case "train":
			d.train = append(d.train, rows)
		case "test":
			i, known := seen[rows[0]]
			if !known {
				i = len(seen)
				seen[rows[0]] = i
				d.gallery[align.Image] = append(d.gallery[align.Image], rows[0])
			}
			d.gallery[align.Text] = append(d.gallery[align.Text], rows[1])
			d.owner = append(d.owner, i)
		}
	}
	if len(d.train) == 0 || len(d.owner) == 0 {
		return fmt.Errorf("%s has %d pairs of the split train and %d of test: want some of each", path, len(d.train), len(d.owner))
	}
	return nil
}

func (d *dataset) tables() [2]align.Rows { return [2]align.Rows{d.images, d.texts} }

// draw returns the pairs at index of the training split.
func (d *dataset) draw(index []int) align.Pairs {
	var rows [2][]int32
	for _, i := range index {
		for k := range rows {
			rows[k] = append(rows[k], d.train[i][k])
		}
	}
	return align.Pairs{Image: align.Select(d.images, rows[0]), Text: align.Select(d.texts, rows[1])}
}

// correspondence says which held-out text belongs to which image.
func (d *dataset) correspondence() (*eval.Correspondence, error) {
	return eval.NewCorrespondence(d.gallery[align.Image], d.owner)
}

// rows reads the held-out rows of a side.
func (d *dataset) rows(s align.Side) ([]float32, error) {
	table := d.tables()[s]
	w := table.Width()
	out := make([]float32, len(d.gallery[s])*w)
	for i, r := range d.gallery[s] {
		if err := table.Row(int(r), out[i*w:][:w]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
