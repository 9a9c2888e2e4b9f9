package features

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"github.com/geoalign/geoalign/data"
)

// Stats describes a split.
type Stats struct {
	Pairs int       `json:"pairs"`
	Image SideStats `json:"image"`
	Text  SideStats `json:"text"`
}

// Unpaired counts the rows of a side that training may see and that are in none of its pairs.
type Unpaired struct {
	Main int `json:"main"` // of the file of the pairs
	Pool int `json:"pool"` // of the further file
}

// Unpaired counts those of the images and of the texts.
func (p *Pairs) Unpaired() (images, texts Unpaired) {
	train, held := p.splits["train"], p.held()
	images.Main = p.images.Rows() - len(imageRows(train)) - len(imageRows(held))
	texts.Main = p.texts.Rows() - len(train) - len(held)
	for i, u := range []*Unpaired{&images, &texts} {
		if p.more[i] != nil {
			u.Pool = p.more[i].Rows()
		}
	}
	return images, texts
}

// SideStats describes the rows of one side of a split.
type SideStats struct {
	File  string `json:"file"`
	Rows  int    `json:"rows"`  // of the split
	Type  string `json:"type"`  // of the numbers in the file
	Width int    `json:"width"` // numbers of a row
	Bad   int    `json:"bad_rows"`
	Zero  int    `json:"zero_rows"`
	Norms Norms  `json:"norms"` // of the rows that are finite
}

// Norms are Euclidean lengths of rows.
type Norms struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	Mean   float64 `json:"mean"`
}

// Stats reads every row of a split. It ends early with the error of ctx.
func (p *Pairs) Stats(ctx context.Context, split string) (Stats, error) {
	list, err := p.Split(split)
	if err != nil {
		return Stats{}, err
	}
	s := Stats{Pairs: len(list)}
	for _, side := range []struct {
		m    *Matrix
		rows []int32
		s    *SideStats
	}{{p.images, imageRows(list), &s.Image}, {p.texts, textRows(list), &s.Text}} {
		*side.s = SideStats{File: side.m.Path(), Rows: len(side.rows), Type: side.m.Type(), Width: side.m.Width()}
		var norms []float64
		err := side.m.visit(ctx, side.rows, func(_ int32, row []float32, bad error) {
			if bad != nil {
				side.s.Bad++
				return
			}
			n := norm(row)
			if n == 0 {
				side.s.Zero++
			}
			norms = append(norms, n)
		})
		if err != nil {
			return s, err
		}
		side.s.Norms = summary(norms)
	}
	return s, nil
}

// summary sorts norms.
func summary(norms []float64) Norms {
	if len(norms) == 0 {
		return Norms{}
	}
	slices.Sort(norms)
	sum := 0.0
	for _, n := range norms {
		sum += n
	}
	return Norms{Min: norms[0], Median: norms[(len(norms)-1)/2], Max: norms[len(norms)-1],
		Mean: sum / float64(len(norms))}
}

func norm(row []float32) float64 {
	sum := 0.0
	for _, v := range row {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

// CheckConfig says what to check.
type CheckConfig struct {
	Others   []string           // other splits, searched for the image rows of this one
	Examples int                // examples kept of each kind; 0: 5
	Progress func(done, of int) // called now and then; may be nil
}

// Check reads every row of a split and returns what it found, grave things first: rows
// that are not finite, rows of zeros, and image rows that another split has too, as where
// an image was written once for each of its captions. With the train split go the rows that are
// unpaired: one that is held back as well is a leak. It fails where a file cannot be
// read and when ctx ends.
func (p *Pairs) Check(ctx context.Context, split string, cfg CheckConfig) ([]data.Finding, error) {
	list, err := p.Split(split)
	if err != nil {
		return nil, err
	}
	parts, err := p.checked(split, list)
	if err != nil {
		return nil, err
	}
	if cfg.Examples <= 0 {
		cfg.Examples = 5
	}
	bad, zero, leak := data.NewFinding(data.BadRow), data.NewFinding(data.ZeroRow), data.NewFinding(data.Leak)
	add := func(f *data.Finding, format string, args ...any) {
		if f.Count++; len(f.Examples) < cfg.Examples {
			f.Examples = append(f.Examples, fmt.Sprintf(format, args...))
		}
	}
	seed := maphash.MakeSeed()
	sums := map[uint64]part{} // image rows by their hash
	done, total := 0, 0
	for _, x := range parts {
		total += len(x.rows)
	}
	for _, other := range cfg.Others {
		total += len(imageRows(p.splits[other]))
	}
	step := func() {
		if done++; cfg.Progress != nil && (done%1024 == 0 || done == total) {
			cfg.Progress(done, total)
		}
	}
	for _, x := range parts {
		err := x.m.visit(ctx, x.rows, func(i int32, row []float32, err error) {
			step()
			switch {
			case err != nil:
				add(&bad, "%v", err)
			case norm(row) == 0:
				add(&zero, "%s: row %d", x.m.Path(), i)
			case x.m == p.images || x.m == p.more[0]:
				sums[sum(seed, row)] = part{x.m, []int32{i}}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for _, other := range cfg.Others {
		err := p.images.visit(ctx, imageRows(p.splits[other]), func(i int32, row []float32, err error) {
			step()
			mine, ok := sums[sum(seed, row)]
			switch {
			case !ok || err != nil:
			case mine.m == p.images:
				add(&leak, "row %d equals row %d of %s", mine.rows[0], i, other)
			default:
				add(&leak, "%s row %d equals row %d of %s", mine.m.Path(), mine.rows[0], i, other)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc([]data.Finding{bad, leak, zero}, func(f data.Finding) bool { return f.Count == 0 }), nil
}

// part is rows of a file.
type part struct {
	m    *Matrix
	rows []int32
}

// checked lists what belongs to a split: the rows of its pairs, and with the train split those that
// are unpaired.
func (p *Pairs) checked(split string, list []Pair) ([]part, error) {
	if split != "train" {
		return []part{{p.images, imageRows(list)}, {p.texts, textRows(list)}}, nil
	}
	images, err := p.ImagePool()
	if err != nil {
		return nil, err
	}
	texts, err := p.TextPool()
	if err != nil {
		return nil, err
	}
	parts := []part{{p.images, images.rows}, {p.texts, texts.rows}}
	for _, m := range p.more {
		if m != nil {
			rows := make([]int32, m.Rows())
			for i := range rows {
				rows[i] = int32(i)
			}
			parts = append(parts, part{m, rows})
		}
	}
	return parts, nil
}

// sum hashes a row.
func sum(seed maphash.Seed, row []float32) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var b [4]byte
	for _, v := range row {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
		h.Write(b[:])
	}
	return h.Sum64()
}

// visit calls f with every row; err is a *NonFiniteError or nil. It fails where the file
// cannot be read.
func (m *Matrix) visit(ctx context.Context, rows []int32, f func(i int32, row []float32, err error)) error {
	row := make([]float32, m.width)
	for _, i := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := m.Row(int(i), row)
		if _, bad := errors.AsType[*NonFiniteError](err); err != nil && !bad {
			return err
		}
		f(i, row, err)
	}
	return nil
}
