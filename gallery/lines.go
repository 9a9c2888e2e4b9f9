package gallery

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/geoalign/geoalign/internal/files"
)

// lines are the lines of JSON files, found by their number. Memory holds the place of every
// lineStep-th, so names of millions of rows stay in their files.
type lines struct {
	parts []*linesFile
	ends  []int // lines up to the end of each part
}

type linesFile struct {
	*os.File
	size  int64
	marks []int64 // where lines 0, lineStep, ... begin
}

const (
	lineStep = 32
	maxLine  = 1 << 20 // bytes of a line
)

// add takes another file, which must have n lines.
func (l *lines) add(path string, n int) error {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return fmt.Errorf("gallery: %w", err)
	}
	p := &linesFile{File: f, size: size}
	got, err := p.mark()
	if err == nil && got != n {
		err = fmt.Errorf("it has %d lines for %d rows: embed again", got, n)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("gallery: %s: %w", path, err), f.Close())
	}
	l.parts, l.ends = append(l.parts, p), append(l.ends, l.len()+n)
	return nil
}

// mark reads the file once and returns its number of lines.
func (p *linesFile) mark() (n int, err error) {
	r := bufio.NewReaderSize(io.NewSectionReader(p, 0, p.size), 1<<18)
	at := int64(0)
	for start, fresh := at, true; ; {
		b, err := r.ReadSlice('\n')
		if fresh {
			start = at
		}
		at += int64(len(b))
		switch {
		case err == io.EOF && len(b) == 0 && fresh:
			return n, nil
		case err != nil && err != bufio.ErrBufferFull && err != io.EOF:
			return n, err
		case at-start > maxLine:
			return n, fmt.Errorf("line %d has more than %d bytes", n+1, maxLine)
		}
		if fresh = err != bufio.ErrBufferFull; fresh {
			if n%lineStep == 0 {
				p.marks = append(p.marks, start)
			}
			n++
		}
		if err == io.EOF {
			return n, nil
		}
	}
}

func (l *lines) len() int {
	if len(l.ends) == 0 {
		return 0
	}
	return l.ends[len(l.ends)-1]
}

// read decodes line i into v.
func (l *lines) read(i int, v any) error {
	if i < 0 || i >= l.len() {
		return fmt.Errorf("gallery: there is no row %d among %d: count from 0", i, l.len())
	}
	k := sort.SearchInts(l.ends, i+1)
	p := l.parts[k]
	if k > 0 {
		i -= l.ends[k-1]
	}
	from := p.marks[i/lineStep]
	r := bufio.NewReaderSize(io.NewSectionReader(p, from, p.size-from), 4<<10)
	for range i % lineStep {
		for {
			if _, err := r.ReadSlice('\n'); err == nil {
				break
			} else if err != bufio.ErrBufferFull {
				return fmt.Errorf("gallery: %s: %w", p.Name(), err)
			}
		}
	}
	b, err := r.ReadBytes('\n')
	if err == nil || err == io.EOF {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("gallery: %s: line %d: %w", p.Name(), i+1, err)
	}
	return nil
}

// chunkLines is how many lines of a file a goroutine of each reads at once, a multiple of lineStep.
const chunkLines = 64 * lineStep

// workers is how many goroutines each has.
func workers() int { return runtime.GOMAXPROCS(0) }

// each hands over all lines, from several goroutines, which have the numbers from 0 to workers()-1. The error is that of
// the first chunk of lines that has one; others may not be read then.
func (l *lines) each(f func(worker, i int, line []byte) error) error {
	type chunk struct {
		p          *linesFile
		from, to   int64
		first, row int // line of the file, and row, that it begins with
	}
	var chunks []chunk
	row := 0
	for k, p := range l.parts {
		for m := 0; m < len(p.marks); m += chunkLines / lineStep {
			c := chunk{p, p.marks[m], p.size, m * lineStep, row + m*lineStep}
			if next := m + chunkLines/lineStep; next < len(p.marks) {
				c.to = p.marks[next]
			}
			chunks = append(chunks, c)
		}
		row = l.ends[k]
	}
	errs := make([]error, len(chunks))
	var next atomic.Int64
	var failed atomic.Bool
	var all sync.WaitGroup
	for worker := range workers() {
		all.Go(func() {
			var b []byte
			for k := int(next.Add(1)) - 1; k < len(chunks) && !failed.Load(); k = int(next.Add(1)) - 1 {
				c := chunks[k]
				b = slices.Grow(b[:0], int(c.to-c.from))[:c.to-c.from]
				i := 0
				_, err := c.p.ReadAt(b, c.from)
				for line := range bytes.Lines(b) {
					if err != nil {
						break
					}
					if err = f(worker, c.row+i, line); err != nil {
						err = fmt.Errorf("line %d: %w", c.first+i+1, err)
					}
					i++
				}
				if err != nil {
					errs[k] = fmt.Errorf("gallery: %s: %w", c.p.Name(), err)
					failed.Store(true)
				}
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// Close gives the files back.
func (l *lines) Close() (err error) {
	for _, p := range l.parts {
		err = errors.Join(err, p.File.Close())
	}
	return err
}
