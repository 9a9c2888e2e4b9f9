package runlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
)

// Metrics appends to a metrics.jsonl, one JSON object a line.
type Metrics struct {
	path string
	f    *os.File
	line []byte
}

var (
	_ Logger   = (*Metrics)(nil)
	_ Rewinder = (*Metrics)(nil)
)

// OpenMetrics opens the file at path to append to. Lines of steps after resumed
// are removed first, so a resumed run writes each step once; so is a line that
// was cut short by a kill. resumed < 0 starts an empty file.
func OpenMetrics(path string, resumed int) (*Metrics, error) {
	m := &Metrics{path: path}
	return m, m.Rewind(resumed)
}

// Rewind removes the lines of steps after step.
func (m *Metrics) Rewind(step int) error {
	if err := m.Close(); err != nil {
		return err
	}
	if err := keepLines(m.path, step); err != nil {
		return fmt.Errorf("runlog: %w", err)
	}
	f, err := os.OpenFile(m.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("runlog: %w", err)
	}
	m.f = f
	return nil
}

// keepLines rewrites the file at path with the lines that are rows of steps up to last.
func keepLines(path string, last int) error {
	in, _, err := files.Open(path, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	return files.ReplaceFrom(path, func(w io.Writer) error {
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadBytes('\n')
			if row, perr := parseRow(line); perr == nil && row.Step <= last {
				if line[len(line)-1] != '\n' {
					line = append(line, '\n')
				}
				if _, err := w.Write(line); err != nil {
					return err
				}
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
}

// Log appends the line of step. NaN and infinities, which JSON lacks, become null.
func (m *Metrics) Log(step int, values map[string]float64) error {
	b := append(m.line[:0], `{"step":`...)
	b = strconv.AppendInt(b, int64(step), 10)
	for _, k := range Keys(values) {
		b = append(b, ',')
		key, err := json.Marshal(k)
		if err != nil {
			return fmt.Errorf("runlog: %w", err)
		}
		b = append(append(b, key...), ':')
		b = appendNumber(b, values[k])
	}
	b = append(b, '}', '\n')
	m.line = b
	if _, err := m.f.Write(b); err != nil {
		return fmt.Errorf("runlog: %w: free space there or choose another folder with --out", err)
	}
	return nil
}

// appendNumber writes v with all its digits, without an exponent where that is
// easy to read (the range that JavaScript uses).
func appendNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}

// Close closes the file.
func (m *Metrics) Close() error {
	if m.f == nil {
		return nil
	}
	f := m.f
	m.f = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("runlog: %w", err)
	}
	return nil
}

// Timed reports whether a number of a row says what a clock said: no two runs have the same.
func Timed(key string) bool {
	return key == "time" || key == "samples_per_second" || key == "data_wait" || strings.HasSuffix(key, "/seconds")
}

// Row is one line of a metrics.jsonl; null reads as NaN.
type Row struct {
	Step   int
	Values map[string]float64 // without step
}

// ReadMetrics reads a metrics.jsonl. A last line that was cut short is left out;
// any other defect is an error with its line.
func ReadMetrics(path string) ([]Row, error) {
	f, _, err := files.Open(path, 0)
	if err != nil {
		return nil, fmt.Errorf("runlog: %w", err)
	}
	defer f.Close()
	var rows []Row
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("runlog: %w", err)
		}
		last := err == io.EOF
		if len(line) > 0 {
			row, perr := parseRow(line)
			switch {
			case perr == nil:
				rows = append(rows, row)
			case !last:
				return nil, fmt.Errorf("runlog: %s:%d: not a line of metrics: %w", path, n, perr)
			}
		}
		if last {
			return rows, nil
		}
	}
}

func parseRow(line []byte) (Row, error) {
	var values map[string]*float64
	if err := json.Unmarshal(line, &values); err != nil {
		return Row{}, err
	}
	step := values["step"]
	if step == nil || *step != math.Trunc(*step) || math.Abs(*step) > 1<<53 {
		return Row{}, errors.New("no step")
	}
	row := Row{Step: int(*step), Values: make(map[string]float64, len(values))}
	for k, v := range values {
		if k == "step" {
			continue
		}
		row.Values[k] = math.NaN()
		if v != nil {
			row.Values[k] = *v
		}
	}
	return row, nil
}
