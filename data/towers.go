package data

import (
	"fmt"
	"path/filepath"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
)

// TowerInputs are what a tower reads of a training set, each once: its images, or its captions. A row of a
// TowerCache belongs to each.
type TowerInputs struct {
	Rows int
	// Item says which one row i is, and in which state: what a tower makes of it changes with that.
	Item func(i int) (name, state string)
	// Stream is the endless stream of some of the rows, in turn, with the columns of training samples. They
	// are as in training, where nothing is drawn. bad is told of rows that cannot be made, instead of
	// which there is something else; several goroutines call it.
	Stream func(rows []int32, bad func(row int, err error)) Stream
}

// Towered is implemented by streams of a training set that has the same images and captions every epoch.
type Towered interface {
	Stream
	// ImageInputs are the images; false where their files cannot be told.
	ImageInputs() (TowerInputs, bool)
	// TextInputs are the captions.
	TextInputs() TowerInputs
	// UseTowers gives the columns batch.ImageTower and batch.TextTower from pools with a row for each of the
	// inputs; nil: the column is not there. It must be called before the stream is in use.
	UseTowers(images, texts batch.Pool)
}

var _ Towered = (*Train)(nil)

// placed is a Dataset whose images are files, or parts of files that have a name.
type placed interface {
	place(i int) (path, part string)
}

// towerColumns are the pools of UseTowers.
type towerColumns struct{ image, text batch.Pool }

func (t towerColumns) columns() (list []Column) {
	for _, x := range []struct {
		name string
		pool batch.Pool
	}{{batch.ImageTower, t.image}, {batch.TextTower, t.text}} {
		if x.pool != nil {
			list = append(list, Column{Name: x.name, Shape: []int{x.pool.Width()}})
		}
	}
	return list
}

// UseTowers implements Towered.
func (t *Train) UseTowers(images, texts batch.Pool) {
	t.towers = towerColumns{images, texts}
	if texts != nil {
		t.TextInputs()
	}
}

// towered writes the columns of towers for caption j of image i that row has.
func (t *Train) towered(i, j int, row batch.Row) error {
	if dst := row.Floats(batch.ImageTower); dst != nil {
		if err := t.towers.image.Row(i, dst); err != nil {
			return fmt.Errorf("data: %s: %w", t.ds.Name(i), err)
		}
	}
	if dst := row.Floats(batch.TextTower); dst != nil {
		if err := t.towers.text.Row(int(t.firsts[i])+j, dst); err != nil {
			return fmt.Errorf("data: %s: caption %d: %w", t.ds.Name(i), j, err)
		}
	}
	return nil
}

// ImageInputs implements Towered. The state of an image is the stamp of its file.
func (t *Train) ImageInputs() (TowerInputs, bool) {
	p, ok := t.ds.(placed)
	if !ok {
		return TowerInputs{}, false
	}
	states := map[string]string{} // of files with many images
	return TowerInputs{
		Rows: t.ds.Len(),
		Item: func(i int) (string, string) {
			path, part := p.place(i)
			if abs, err := filepath.Abs(path); err == nil {
				path = abs
			}
			state, known := states[path]
			if !known {
				if stamp, err := identity.StampOf(path); err == nil {
					state = stamp.Shared()
				}
				if part != "" {
					states[path] = state
				}
			}
			return path + "\x00" + part, state
		},
		Stream: func(rows []int32, bad func(int, error)) Stream {
			return &inputStream{t, rows, bad, func(k int, row batch.Row) error {
				img, err := t.ds.Image(k)
				if err != nil {
					return err
				}
				return t.cfg.applyViews(img, 0, row, nil)
			}}
		},
	}, true
}

// TextInputs implements Towered. The state of a caption is its words.
func (t *Train) TextInputs() TowerInputs {
	if t.firsts == nil {
		t.firsts = make([]int32, t.ds.Len()+1)
		for i := range t.ds.Len() {
			t.firsts[i+1] = t.firsts[i] + int32(numCaptions(t.ds, i))
		}
	}
	caption := func(k int) (string, error) {
		i := t.imageOfCaption(k)
		list, err := t.captions(i)
		if err != nil {
			return "", err
		}
		return t.cleaned(i, k-int(t.firsts[i]), list)
	}
	return TowerInputs{
		Rows: int(t.firsts[t.ds.Len()]),
		Item: func(k int) (string, string) {
			text, _ := caption(k) // an empty one is a bad sample
			return "", text
		},
		Stream: func(rows []int32, bad func(int, error)) Stream {
			return &inputStream{t, rows, bad, func(k int, row batch.Row) error {
				text, err := caption(k)
				t.cfg.Text.Fill(text, row)
				return err
			}}
		},
	}
}

// imageOfCaption is the image that caption row k belongs to: the last that begins at or before it.
func (t *Train) imageOfCaption(k int) int {
	low, high := 0, t.ds.Len()
	for low+1 < high {
		if mid := (low + high) / 2; int(t.firsts[mid]) <= k {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// inputStream is the stream of TowerInputs.
type inputStream struct {
	*Train
	rows []int32
	bad  func(row int, err error)
	fill func(k int, row batch.Row) error
}

// Sample fills row c of the rows, which begin again after the last.
func (s *inputStream) Sample(c uint64, row batch.Row) error {
	k := int(s.rows[c%uint64(len(s.rows))])
	err := s.fill(k, row)
	if files.Exhausted(err) { // which says nothing of the row
		return err
	}
	if err != nil {
		s.bad(k, err)
	}
	return nil
}

// EpochSamples is the number of rows.
func (s *inputStream) EpochSamples() int { return len(s.rows) }
