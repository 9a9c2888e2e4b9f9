package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/geoalign/geoalign/internal/check"
)

// openTerminal returns a pseudo-terminal: what is written to tty is read from screen.
func openTerminal(t *testing.T) (tty, screen *os.File) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Skipf("no pseudo-terminal here: %v", err)
		}
	}
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	fail(err)
	t.Cleanup(func() { screen.Close() })
	fail(unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	fail(err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	fail(err)
	t.Cleanup(func() { tty.Close() })
	return tty, screen
}

// written returns what was written to a terminal since the last call.
func written(t *testing.T, tty, screen *os.File) string {
	t.Helper()
	check.Get(tty.WriteString("\x00"))(t)
	var text strings.Builder
	for one := make([]byte, 1); ; {
		check.Get(screen.Read(one))(t)
		if one[0] == 0 {
			return text.String()
		}
		text.Write(one)
	}
}

// TestMessagesAboveBars: a message has a line of its own, whatever bar stands there.
func TestMessagesAboveBars(t *testing.T) {
	tty, screen := openTerminal(t)
	check.OK(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 60}))
	messages := &output{file: tty}
	for name, say := range map[string]func(){
		"of a command": func() {
			b := newPhaseBar(messages, false)
			defer b.done()
			newPhaseBar(messages, false).done() // of a part of the command, as that of copies that are made first
			b.show("encoding images", 1, 2)
			fmt.Fprintln(messages, "left out: a.png")
		},
		"of a run": func() {
			r := newReporter(messages, false)
			defer r.PhasesDone()
			r.Phase("encoding images", 1, 2)
			r.Say("left out: a.png")
		},
	} {
		say()
		bar, after, ok := strings.Cut(written(t, tty, screen), "left out: a.png\r\n")
		if !ok || !strings.Contains(bar, "encoding images") || !strings.HasSuffix(bar, "\033[2K\r") {
			t.Errorf("%s: the message stands behind %q, and %q behind it", name, bar, after)
		}
	}
}

// TestBarFillsTheLine: the bar takes the width that the fields leave, never more than the
// terminal has, and a terminal that was made narrower gets back the lines that it wrapped.
func TestBarFillsTheLine(t *testing.T) {
	tty, screen := openTerminal(t)
	resize := func(columns int) {
		check.OK(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}))
	}
	read := func() string { return written(t, tty, screen) }
	resize(120)
	fields := []string{"ETA 3s", "loss 1.234", "lr 1.0e-03", "samples/s 12"}
	b := newBar(tty, 12)
	for step, columns := range []int{120, 80, 60, 40, 30, 200, 60} {
		resize(columns)
		before := b.drawn
		b.show(step+1, fields...)
		text := read()
		up := ""
		if before > columns {
			up = fmt.Sprintf("\r\033[%dA\033[J", (before-1)/columns)
		}
		if !strings.HasPrefix(text, up) || up == "" && strings.Contains(text, "\033[J") {
			t.Errorf("%d columns after a line of %d: begins with %q, want %q", columns, before, text, up)
		}
		lines := strings.Split(text, "\r")
		line := strings.TrimSuffix(lines[len(lines)-1], "\033[0K")
		if n := utf8.RuneCountInString(line); n != columns-1 {
			t.Errorf("%d columns: the line takes %d, want all but one: %q", columns, n, line)
		}
		if !strings.Contains(line, fmt.Sprintf("(%d/12)", step+1)) || columns >= 80 && !strings.Contains(line, fields[3]) {
			t.Errorf("%d columns: %q lacks the count or a field that has room", columns, line)
		}
	}
	b.clear()
	if text := read(); !strings.Contains(text, "\033[2K") {
		t.Errorf("the line is not emptied: %q", text)
	}
	resize(20)
	b.show(8, fields...)
	if text := read(); strings.Contains(text, "\033[J") {
		t.Errorf("lines above an empty one are erased: %q", text)
	}
}
