package gallery

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// Lines are found by their number, also behind one that no buffer holds, as a long caption of characters that JSON
// escapes is, behind the last that has no end, and in the second of two files; one that is too long is refused.
func TestLines(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, captions []string, end string) string {
		var b bytes.Buffer
		for i, s := range captions {
			x := check.Get(json.Marshal(Item{Row: i, Caption: s}))(t)
			b.Write(append(x, '\n'))
		}
		path := filepath.Join(dir, name)
		check.OK(t, os.WriteFile(path, append(bytes.TrimSuffix(b.Bytes(), []byte("\n")), end...), 0o666))
		return path
	}
	long := strings.Repeat("\x01", 60_000) // 360,000 bytes of JSON
	var first, second []string
	for i := range 2*lineStep + 3 {
		first = append(first, strings.Repeat("a", i))
		second = append(second, strings.Repeat("b", i))
	}
	first[0], first[5], first[lineStep], second[lineStep-1], second[len(second)-1] = long, long, long, long, long
	var l lines
	defer l.Close()
	check.OK(t, l.add(write("first.jsonl", first, "\n"), len(first)))
	check.OK(t, l.add(write("second.jsonl", second, ""), len(second)))
	for i, want := range append(first, second...) {
		var got Item
		if err := l.read(i, &got); err != nil || got.Caption != want {
			t.Fatalf("line %d has %d bytes, want %d (%v)", i, len(got.Caption), len(want), err)
		}
	}
	for _, i := range []int{-1, l.len()} {
		if err := l.read(i, &Item{}); err == nil || !strings.Contains(err.Error(), "there is no row") {
			t.Errorf("line %d: %v", i, err)
		}
	}
	if err := l.add(write("long.jsonl", []string{"a", strings.Repeat("c", maxLine)}, "\n"), 2); err == nil ||
		!strings.Contains(err.Error(), "line 2 has more than") {
		t.Errorf("a line of more than %d bytes: %v", maxLine, err)
	}
}
