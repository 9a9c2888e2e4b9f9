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

	series map[string]*series // of each of Values, what was read of it
}

// longestLine bounds a row in bytes; a longer line is counted as bad and passed over.
const longestLine = 1 << 20

// ReadCurves reads the rows of a metrics.jsonl one by one. Rows whose steps go back come
// from a run that was resumed: they replace what was read of these steps and of those
// after them. Values that are null, no finite number or of another type are left out,
// and lines that are no row are passed over. Only an error of r is one.
//
// Of a curve of more than MaxPoints rows there are the smallest and the largest value of equal
// shares of them, so that peaks stay, and its first and its last point.
func ReadCurves(r io.Reader) (*Curves, error) {
	c := &Curves{Values: map[string][]Point{}, series: map[string]*series{}}
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
	for k, s := range c.series {
		s.settle()
		if p := s.points(); len(p) > 0 {
			c.Values[k] = thin(p, MaxPoints)
		}
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
	var at *float64
	if json.Unmarshal(line, &row) != nil || json.Unmarshal(row["step"], &at) != nil || at == nil ||
		!(*at >= 0 && *at < 1<<53 && *at == math.Trunc(*at)) {
		c.Bad++
		return
	}
	step := *at
	if c.Rows > 0 && step < float64(c.Last) {
		for _, s := range c.series {
			s.cut(step)
		}
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
		if c.series[k] == nil {
			c.series[k] = &series{}
		}
		c.series[k].add(Point{step, *v})
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

// local returns the local mean of a curve, by all rows that were read of it.
func (c *Curves) local(name string) []Point {
	if p := c.get(name); len(p) == 0 || c.series[name] == nil || c.series[name].rows == 1 {
		return Smooth(p, smoothing)
	}
	return c.series[name].local(smoothing)
}

// Smooth returns p with every value replaced by the mean of its neighbourhood, weighted
// by a Gaussian over steps whose standard deviation is the share width of the whole
// range. With fewer than 8 points p itself is returned.
func Smooth(p []Point, width float64) []Point { return smooth(p, nil, width) }

// smooth is Smooth of points that count n times each; nil: once.
func smooth(p []Point, n []float64, width float64) []Point {
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
		for j, q := range p[lo:] {
			d := (q.Step - at.Step) / sd
			if d > 3 {
				break
			}
			w := math.Exp(-d * d / 2)
			if n != nil {
				w *= n[lo+j]
			}
			sum, weight = sum+w*q.Value, weight+w
		}
		out[i] = Point{at.Step, sum / weight}
	}
	return out
}
