package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// Point is a logged number.
type Point struct {
	Step  float64
	Value float64
}

// MaxPoints bounds the points of a curve.
const MaxPoints = 1000

// Curves are the numbers of a metrics.jsonl by name, each over steps in ascending order
// with at most MaxPoints points.
type Curves struct {
	Values map[string][]Point
	Last   int // last step of which there is a row
	Rows   int // that were read, those that a resumed run replaced included
	Bad    int // lines that are no row: half a last line, text of something else
}

// longestLine bounds a row in bytes; a longer line is counted as bad and passed over.
const longestLine = 1 << 20

// ReadCurves reads the rows of a metrics.jsonl one by one. Rows whose steps go back come
// from a run that was resumed: they replace what was read of these steps and of those
// after them. Values that are null, no finite number or of another type are left out,
// and lines that are no row are passed over. Only an error of r is one.
//
// A curve that grows beyond twice MaxPoints is thinned as it is read, four points to the
// smallest and the largest of them, so that peaks stay; its first and last point stay too.
func ReadCurves(r io.Reader) (*Curves, error) {
	c := &Curves{Values: map[string][]Point{}}
	in := bufio.NewReader(r)
	for {
		line, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("report: reading metrics: %w", err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			c.add(line)
		}
		if err != nil {
			break
		}
	}
	for k, p := range c.Values {
		if len(p) == 0 {
			delete(c.Values, k)
			continue
		}
		c.Values[k] = thin(p, MaxPoints)
	}
	return c, nil
}

// readLine returns the next line, of one that is too long only the beginning, which is
// no row then.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line) <= longestLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if len(line) > longestLine {
				line = line[:longestLine]
			}
			return line, err
		}
	}
}

func (c *Curves) add(line []byte) {
	var row map[string]json.RawMessage
	var step float64
	if json.Unmarshal(line, &row) != nil || json.Unmarshal(row["step"], &step) != nil || !(step >= 0 && step < 1<<53) {
		c.Bad++
		return
	}
	if c.Rows > 0 && step < float64(c.Last) {
		c.cut(step)
	}
	c.Rows++
	c.Last = int(step)
	for k, text := range row {
		if k == "step" {
			continue
		}
		var v *float64
		if json.Unmarshal(text, &v) != nil || v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
			continue
		}
		p := c.Values[k]
		if n := len(p); n > 0 && p[n-1].Step == step {
			p[n-1].Value = *v
			continue
		}
		if p = append(p, Point{step, *v}); len(p) > 2*MaxPoints {
			p = thin(p, MaxPoints)
		}
		c.Values[k] = p
	}
}

// cut forgets the points from a step on.
func (c *Curves) cut(step float64) {
	for k, p := range c.Values {
		at, _ := slices.BinarySearchFunc(p, step, func(p Point, s float64) int {
			switch {
			case p.Step < s:
				return -1
			case p.Step > s:
				return 1
			}
			return 0
		})
		c.Values[k] = p[:at]
	}
}

// thin returns at most most >= 4 points of p: its first, its last, and of equal shares of
// the others the smallest and the largest.
func thin(p []Point, most int) []Point {
	if len(p) <= most {
		return p
	}
	inner := p[1 : len(p)-1]
	shares := (most - 2) / 2
	out := make([]Point, 0, most)
	out = append(out, p[0])
	for i := range shares {
		lo, hi := i*len(inner)/shares, (i+1)*len(inner)/shares
		a, b := lo, lo
		for j := lo; j < hi; j++ {
			if inner[j].Value < inner[a].Value {
				a = j
			}
			if inner[j].Value > inner[b].Value {
				b = j
			}
		}
		if a > b {
			a, b = b, a
		}
		if out = append(out, inner[a]); a != b {
			out = append(out, inner[b])
		}
	}
	return append(out, p[len(p)-1])
}

// Names lists the curves that begin with a prefix, sorted, numbers at their ends by their size.
func (c *Curves) Names(prefix string) (list []string) {
	if c == nil {
		return nil
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.Values), words.Natural) {
		if strings.HasPrefix(k, prefix) {
			list = append(list, k)
		}
	}
	return list
}

// get returns a curve, nil where there is none.
func (c *Curves) get(name string) []Point {
	if c == nil {
		return nil
	}
	return c.Values[name]
}

// Smooth returns p with every value replaced by the mean of its neighbourhood, weighted
// by a Gaussian over steps whose standard deviation is the share width of the whole
// range. With fewer than 8 points p itself is returned.
func Smooth(p []Point, width float64) []Point {
	if len(p) < 8 || width <= 0 {
		return p
	}
	sd := width * (p[len(p)-1].Step - p[0].Step)
	out := make([]Point, len(p))
	lo := 0
	for i, at := range p {
		for p[lo].Step < at.Step-3*sd {
			lo++
		}
		sum, weight := 0.0, 0.0
		for _, q := range p[lo:] {
			d := (q.Step - at.Step) / sd
			if d > 3 {
				break
			}
			w := math.Exp(-d * d / 2)
			sum, weight = sum+w*q.Value, weight+w
		}
		out[i] = Point{at.Step, sum / weight}
	}
	return out
}
