package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bar is a progress bar on one line of a terminal, as wide as the terminal is at each redraw.
type bar struct {
	out     io.Writer
	total   int
	columns func() int // width of the terminal now; 0 where it is not known
	lib     *progressbar.ProgressBar
	drawn   int // columns of what stands on the terminal; 0: nothing
}

// leastBar is the width of the bar proper that fields behind it leave, and the width where
// that of the terminal is not known.
const leastBar = 12

// newBar returns a bar of total steps, a spinner where total is 0. Nothing is drawn yet.
func newBar(out io.Writer, total int) *bar {
	b := &bar{out: out, total: total, columns: func() int { return columnsOf(out) }}
	if total == 0 {
		total = -1 // a spinner
	}
	width := progressbar.OptionFullWidth()
	if b.columns() == 0 {
		width = progressbar.OptionSetWidth(leastBar)
	}
	// The library's own estimate counts the steps of earlier sessions as made in no time, so
	// the description holds ours.
	b.lib = progressbar.NewOptions(total, width,
		progressbar.OptionSetWriter(out), progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionUseANSICodes(true),
		progressbar.OptionShowDescriptionAtLineEnd())
	return b
}

// show draws the bar at done with as many of the fields behind it as have room. A terminal
// that cannot be written to is no reason to stop.
func (b *bar) show(done int, fields ...string) {
	b.unwrap()
	b.lib.Describe(fit(fields, b.room(done)))
	b.lib.Set(done)
	line := strings.TrimSuffix(strings.TrimPrefix(b.lib.String(), "\r"), "\033[0K")
	b.drawn = utf8.RuneCountInString(strings.TrimRight(line, " "))
}

// clear empties the line of the bar.
func (b *bar) clear() {
	b.unwrap()
	b.lib.Clear()
	b.drawn = 0
}

// unwrap empties the lines over which the terminal has spread the bar because it was made
// narrower since, and goes back to the first of them.
func (b *bar) unwrap() {
	if now := b.columns(); now > 0 && b.drawn > now {
		fmt.Fprintf(b.out, "\r\033[%dA\033[J", (b.drawn-1)/now)
	}
}

// room returns the columns that the shortest bar leaves for fields, 0 if the width of the
// terminal is not known.
func (b *bar) room(done int) int {
	width := b.columns()
	if width == 0 {
		return 0
	}
	// " 12% |bar| (step/total) " and a free column, so that the line never wraps.
	used := 5 + 2 + leastBar + 2 + len(fmt.Sprintf("(%d/%d)", done, b.total)) + 3
	return max(width-used, 1)
}

// fit joins as many fields as have room in so many columns; 0 is no limit.
func fit(fields []string, room int) string {
	line := ""
	for i, f := range fields {
		if i > 0 {
			f = " " + f
		}
		if room > 0 && len(line)+len(f) > room {
			break
		}
		line += f
	}
	return line
}

// columnsOf returns the width of the terminal that out is, 0 where it is not known.
func columnsOf(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
