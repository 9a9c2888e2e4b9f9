package table

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/filetest"
)

// read returns the rows of a file of a text, as "line: cells".
func read(t *testing.T, name, text string, pick Picker) (rows []string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	filetest.Write(t, path, text)
	err = Read(path, pick, func(r Row) error {
		if r.Err != nil {
			rows = append(rows, fmt.Sprintf("%d: %v", r.Line, r.Err))
		} else {
			rows = append(rows, fmt.Sprintf("%d: %s", r.Line, strings.Join(r.Cells, "|")))
		}
		return nil
	})
	return rows, err
}

// columns picks columns by name.
func columns(names ...string) Picker {
	return Named(names, func(k int, all []string) error { return fmt.Errorf("no %q in %q", names[k], all) })
}

// TestRead: cells in the order that was asked for, with their lines.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a.tsv", "\xef\xbb\xbfa\tb\tc\r\n1\t\"2\t3\r\n\r\n4\t5\n6\t\xff\t7", []string{"2: 3|1", "4: it has 2 columns, not 3", "5: 7|6"}},
		{"a.txt", "c\ta\n1\t2\n", []string{"2: 1|2"}},
		{"a.csv", "a,b,c\n\"x, \"\"y\"\"\",\"two\nlines\",3\n4,5,6,7\n", []string{`2: 3|x, "y"`, "4: it has 4 columns, not 3"}},
		{"a.CSV", "a\tc\n\"1,5\t2\n", []string{`2: 2|"1,5`}},
		{"a.json", `[{"a": 1.50, "c": "x"}, {"a": null, "c": true}, {"a": 1}, {"a": [1], "c": 2}]`, []string{"1: x|1.50", "2: true|", `3: field "c" is missing`, `4: field "a" must be a text or a number (got [1])`}},
		{"a.json", `{"0": {"c": "x", "a": "y"}}`, []string{"1: x|y"}},
		{"a.jsonl", "\xef\xbb\xbf{\"a\": \"\\u00fc\", \"c\": 2}\n\n{\"c\": 4, \"a\": 3, \"b\": 1}", []string{"1: 2|\u00fc", "2: 4|3"}},
	} {
		got, err := read(t, c.name, c.text, columns("c", "a"))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	headless := func([]string) (Columns, error) { return Columns{At: []int{2}, Headless: true}, nil }
	if got, err := read(t, "a.tsv", "1\t2\t3\n4\t5\t6\t7\n8\n", headless); err != nil || !slices.Equal(got, []string{"1: 3", "2: 6", "3: it has 1 columns, not 3"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestWrong: an error of a row has its line, or of JSON its entry.
func TestWrong(t *testing.T) {
	for name, text := range map[string]string{"a.tsv": "a\n\n1\n", "a.csv": "a\n\n1\n", "a.json": `[{"a": 1}]`, "a.jsonl": "\n\n{\"a\": 1}\n"} {
		path := filepath.Join(t.TempDir(), name)
		filetest.Write(t, path, text)
		want := "data: " + path + ": line 3: x"
		if strings.Contains(name, "json") {
			want = (&RecordError{File: path, Index: 0, Err: errors.New("x")}).Error()
		}
		if err := Read(path, columns("a"), func(r Row) error { return r.Wrong(errors.New("x")) }); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestReadErrors: a file that cannot be read is named with the place in it.
func TestReadErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.tsv", "", "it is empty"}, {"a.tsv", "\n\n", "it is empty"}, {"a.csv", "", "it is empty"}, {"a.tsv", "a\tb\n", `line 1: no "c" in ["a" "b"]`},
		{"a.tsv", "a\tc\n" + strings.Repeat("x", maxRow+1), "line 2: it has more than 16 MiB"}, {"a.csv", "a,c\n\"1,2\n", "line 2: it is not a row"},
		{"a.json", "{", "neither an object"}, {"a.json", `{"0": {"a": 1, "a": 2, "c": 1}}`, "neither an object"}, {"a.json", "[]", "it has no row"}, {"a.json", "[3]", "entry 0: want an object"}, {"a.json", "[null]", "entry 0: want an object"},
		{"a.json", `[{"a": 1, "c": 2, "a": 3}]`, `key "a" is there twice`}, {"a.jsonl", "{\"a\": 1, \"c\": 2}\n{\"a\": 1, \"c\": 2, \"a\": 3}\n", `line 2: key "a" is there twice`},
		{"a.jsonl", "{\"a\": 1, \"c\": 2}\nx\n", "line 2: it is not a JSON object"}, {"a.jsonl", "", "it has no row"}, {"a.jsonl", "[1]", "want an object"},
		{"a.jsonl", "{\"a\": 1, \"c\": 2}\n" + strings.Repeat("x", maxRow+1), "line 2: it has more than 16 MiB"},
		{"a.tsv", "\xff\xfea\x00\t\x00c\x00\n\x00", "line 1: it is UTF-16 or not text"}, {"a.csv", "\x1f\x8b\x08a,c", "line 1: it is compressed"}, {"a.jsonl", "\x1f\x8b\x08a", "line 1: it is compressed"},
		{"a.parquet", "PAR1", "not a .parquet file"}, {"a.xls", "", `not from ".xls"`},
		{"a.arrow", "", "it is an Arrow file, which is not read: write it as .parquet"},
		{"a.feather", "", "Arrow file"}, {"b.parquet", "ARROW1\x00\x00" + strings.Repeat("x", 20), "Arrow file"},
	} {
		_, err := read(t, c.name, c.text, columns("c", "a"))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s of %.20q: %v, want %q", c.name, c.text, err, c.want)
		}
	}
	for _, ext := range Formats {
		if err := Read("/nowhere/a"+ext, nil, nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/nowhere/a"+ext) {
			t.Error(ext, err)
		}
	}
	stop := &RecordError{File: "x", Index: -1, Err: errors.New("stop")}
	path := filepath.Join(t.TempDir(), "a.tsv")
	filetest.Write(t, path, "a\n1\n2\n")
	rows := 0
	if err := Read(path, columns("a"), func(Row) error { rows++; return stop }); err != error(stop) || rows != 1 {
		t.Errorf("%v after %d rows", err, rows)
	}
}
