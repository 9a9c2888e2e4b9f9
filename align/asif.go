package align

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// ASIF compares an image and a text by the pairs that they are near to (Norelli et al. 2023).
// A row becomes a code over the anchors, which are the pairs of the fit, in this order:
//
//  1. unit length
//  2. products with the anchors of its own side
//  3. the K largest stay, the others and negative ones become 0
//  4. to the power P, element by element
//  5. unit length
//
// and codes of both sides are compared by their product. The published code leaves out
// step 5 for images, which orders the texts of an image alike and the images of a
// text otherwise. Rows are not centred.
type ASIF struct {
	// most similar training pairs of a row that count; 0: 800, or all where there are fewer
	K int `toml:"k" fixed:"run" max:"16777216"`
	// power of the similarities
	P     float64 `toml:"p" fixed:"run" max:"1024"`
	Chunk int     `toml:"-"` // anchors that are compared at a time, 0: 100,000; it changes no code
}

// The settings of GeRA's comparison.
const (
	asifK     = 800
	asifP     = 8
	asifChunk = 100_000
)

// Defaults implements section.Defaulter.
func (o *ASIF) Defaults() { *o = ASIF{P: asifP} }

// Check implements section.Checked.
func (o *ASIF) Check(k *section.Checker) {
	k.NotNegative("k")
	k.Positive("p")
}

var _ Method = ASIF{}

// Fit implements Method: it stores the pairs in memory. The map is an *ASIFMap.
func (a ASIF) Fit(e *compute.Engine, p Pairs) (Map, error) {
	if err := p.check("ASIF", 1); err != nil {
		return nil, err
	}
	n := p.Len()
	switch {
	case a.K < 0 || a.K > n:
		return nil, fmt.Errorf("align: ASIF.K must be at most the number of anchors, %d (got %d): lower it, add pairs, or 0 for what there is", n, a.K)
	case !(a.P >= 0) || math.IsInf(a.P, 0):
		return nil, fmt.Errorf("align: ASIF.P must be a number > 0, or 0 for %d (got %v)", asifP, a.P)
	case a.Chunk < 0:
		return nil, fmt.Errorf("align: ASIF.Chunk must be > 0, or 0 for %d (got %d)", asifChunk, a.Chunk)
	}
	m := &ASIFMap{shape: asifShape{Anchors: n, K: a.K, P: a.P}, chunk: a.Chunk}
	if m.shape.K == 0 {
		m.shape.K = min(asifK, n)
	}
	if m.shape.P == 0 {
		m.shape.P = asifP
	}
	for _, s := range []Side{Image, Text} {
		rows, err := readAll(e, s, p.Of(s))
		if err != nil {
			return nil, err
		}
		d := p.Of(s).Width()
		if i := unitRows(rows, d); i >= 0 {
			return nil, fmt.Errorf("align: row %d of the %ss is zero, which has no cosine with any other: leave the pair out", i, s)
		}
		m.shape.Widths[s], m.anchors[s] = d, rows
	}
	return m, nil
}

// unitRows scales rows to unit length and returns the first that is zero, or -1.
func unitRows(rows []float32, d int) int {
	zero := -1
	for i := range len(rows) / d {
		row := rows[i*d:][:d]
		if vector.SumSq(row) == 0 && zero < 0 {
			zero = i
		}
		unit(row)
	}
	return zero
}

// ASIFMap is the fitted map of ASIF, whose space has a channel for each anchor.
type ASIFMap struct {
	shape   asifShape
	chunk   int
	anchors [2][]float32 // (A, D) and (A, E), unit rows
}

var _ Map = (*ASIFMap)(nil)

// Code is the code of a row: at most K anchors and their values. Values of anchors that it
// does not name are 0.
type Code struct {
	Anchors []int32 // rising
	Values  []float32
}

// Width returns A.
func (m *ASIFMap) Width() int { return m.shape.Anchors }

// RowWidth implements Map.
func (m *ASIFMap) RowWidth(s Side) int { return m.shape.Widths[s] }

// Codes returns the codes of rows (n, D) of a side. It holds n x chunk products for up to 256
// rows at a time.
func (m *ASIFMap) Codes(e *compute.Engine, s Side, rows []float32) ([]Code, error) {
	d := m.shape.Widths[s]
	if err := checkQueries(s, rows, d); err != nil {
		return nil, err
	}
	const queries = 256
	chunk := m.chunk
	if chunk == 0 {
		chunk = asifChunk
	}
	chunk = min(chunk, m.shape.Anchors)
	products := make([]float32, min(queries, len(rows)/d)*chunk)
	out := make([]Code, 0, len(rows)/d)
	for ; len(rows) > 0; rows = rows[min(queries*d, len(rows)):] {
		block := append([]float32(nil), rows[:min(queries*d, len(rows))]...)
		unitRows(block, d)
		best := newLargest(len(block)/d, m.shape.K)
		for first := 0; first < m.shape.Anchors; first += chunk {
			c := min(chunk, m.shape.Anchors-first)
			e.Gemm(false, true, len(best), c, d, 1, block, d, m.anchors[s][first*d:], d, 0, products, c)
			e.For(len(best), 1, func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					for j, v := range products[i*c:][:c] {
						best[i].offer(int32(first+j), v)
					}
				}
			})
		}
		for i := range best {
			out = append(out, best[i].code(m.shape.P))
		}
	}
	return out, nil
}

// Score returns the products (n, t) of codes of images and codes of texts.
func (m *ASIFMap) Score(e *compute.Engine, images, texts []Code) []float32 {
	out := make([]float32, len(images)*len(texts))
	wide := make([][]float32, e.Threads())
	e.For(len(images), 1, func(worker, lo, hi int) {
		if wide[worker] == nil {
			wide[worker] = make([]float32, m.shape.Anchors)
		}
		w := wide[worker]
		for i := lo; i < hi; i++ {
			images[i].spread(w)
			for j, t := range texts {
				var sum float32
				for k, a := range t.Anchors {
					sum += w[a] * t.Values[k]
				}
				out[i*len(texts)+j] = sum
			}
			for _, a := range images[i].Anchors {
				w[a] = 0
			}
		}
	})
	return out
}

// spread sets the values of the code in zeros (A).
func (c Code) spread(dst []float32) {
	for k, a := range c.Anchors {
		dst[a] = c.Values[k]
	}
}

// Apply implements Map. A row has A channels, of which at most K are not 0: for many anchors
// use Codes and Score.
func (m *ASIFMap) Apply(e *compute.Engine, s Side, rows []float32) ([]float32, error) {
	codes, err := m.Codes(e, s, rows)
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(codes)*m.shape.Anchors)
	for i, c := range codes {
		c.spread(out[i*m.shape.Anchors:])
	}
	return out, nil
}
