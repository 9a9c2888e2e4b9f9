package gallery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// TestFilter: what filters choose among some rows, by hand.
func TestFilter(t *testing.T) {
	var rows []map[string]any
	for i, line := range []string{
		`{"row": 0, "name": "2019/a.jpg", "payload": {"split": "test", "year": 2019, "tags": ["dog", "Beach"], "of": {"camera": "X1"}}}`,
		`{"row": 1, "name": "2020/b.jpg", "payload": {"split": "val", "year": 2020, "url": null, "name": "other"}}`,
		`{"row": 2, "name": "2021/c.jpg", "payload": {"split": "test", "year": "2021", "good": true, "of.camera": "Y"}}`,
		`{"row": 3, "caption": "A Dog runs"}`,
	} {
		rows = append(rows, check.Get(fieldsOf(i, []byte(line)))(t))
	}
	for _, c := range []struct {
		filter string
		want   []int
	}{
		{`{"split": "test"}`, []int{0, 2}},
		{`{"split": "test", "year": 2019}`, []int{0}},
		{`{"split": {"in": ["val", "train"]}}`, []int{1}},
		{`{"year": {"gte": 2019, "lt": 2020}}`, []int{0}},
		{`{"year": {"gt": 2019}}`, []int{1}},
		{`{"year": {"lte": "2021"}}`, []int{2}},
		{`{"name": {"gte": "2020", "lt": "2022"}}`, []int{1, 2}},
		{`{"url": {"exists": true}}`, []int{1}},
		{`{"url": {"exists": false}}`, []int{0, 2, 3}},
		{`{"url": null}`, []int{1}},
		{`{"good": true}`, []int{2}},
		{`{"caption": {"contains": "dog"}}`, []int{3}},
		{`{"tags": "dog"}`, []int{0}},
		{`{"tags": {"contains": "BEACH"}}`, []int{0}},
		{`{"tags": {"in": ["cat", "dog"]}}`, []int{0}},
		{`{"of.camera": {"exists": true}}`, []int{0, 2}},
		{`{"of": {"exists": true}}`, []int{0}},
		{`{"row": {"gte": 2}}`, []int{2, 3}},
		{`{"not": {"split": "test"}}`, []int{1, 3}},
		{`{"or": [{"split": "val"}, {"caption": {"exists": true}}]}`, []int{1, 3}},
		{`{"and": [{"split": "test"}, {"not": {"year": {"lt": 2020}}}]}`, []int{2}},
		{`{"name": "other"}`, nil}, // what the gallery says itself wins
	} {
		f := check.Get(ParseFilter([]byte(c.filter)))(t)
		var got []int
		for i, r := range rows {
			if f.Match(r) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.filter, got, c.want)
		}
	}
	deep := strings.Repeat(`{"not": `, 40) + `{"a": 1}` + strings.Repeat("}", 40)
	many := `{"or": [{"k0.a": 1}`
	for i := range 64 - 1 { // with k0 and k0.a
		many += fmt.Sprintf(`, {"k%d": 1}`, i+1)
	}
	many += "]}"
	for _, c := range [][2]string{{"[]", "want an object"}, {"{}", "want an object"}, {"{", "not JSON"}, {deep, "nested more than"}, {many, "it has 65 keys: give at most 64"},
		{`{"a": [1]}`, `"a" is a list: write {"a": {"in": [...]}}`}, {`{"a": {}}`, "has no condition"}, {`{"a": {"is": 1}}`, `"is" of "a" is not a condition`},
		{`{"a": {"in": 1}}`, `"in" of "a" wants a list`}, {`{"a": {"gt": true}}`, "wants a number or a text"}, {`{"a": {"exists": 1}}`, "wants true or false"},
		{`{"a": {"contains": 1}}`, "wants a text"}, {`{"or": []}`, "or wants a list of filters"}, {`{"not": 1}`, "want an object"}, {`{"a": 1, "a": 2}`, "a"},
		{`{"a": "` + strings.Repeat("x", maxFilter) + `"}`, "give at most"}} {
		_, err := ParseFilter([]byte(c[0]))
		check.Error(t, err, "filter: ", c[1])
	}
}

// FuzzFilter: any filter is read or refused, and chooses rows without a fault.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{`{"a.b": {"in": [1, "x"]}}`, `{"or": [{"a": null}, {"not": {"b": {"lt": "z"}}}]}`, `{"a": {"contains": ""}}`} {
		f.Add(s, `{"a": {"b": [1]}, "payload": {"b": 2}}`)
	}
	f.Fuzz(func(t *testing.T, filter, line string) {
		x, err := ParseFilter([]byte(filter))
		if err != nil {
			return
		}
		if fields, err := fieldsOf(0, []byte(line)); err == nil {
			x.Match(fields)
		}
	})
}

// TestSelected: a search among chosen rows finds what a search of all finds when the others are taken away, also by
// blocks that are cut by gaps, and fewer hits where there are fewer rows.
func TestSelected(t *testing.T) {
	const n, dim = 3000, 8
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, n*dim)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "{\"row\": %d, \"image_id\": %d, \"name\": \"%d\", \"payload\": {\"k\": %d}}\n", i, i, i, r.IntN(100))
	}
	f := check.Get(os.Create(filepath.Join(dir, FeaturesFile)))(t)
	check.OK(t, safetensors.Write(f, []safetensors.Tensor{{Name: Image, Shape: []int{n, dim}, Data: x}}, nil))
	check.OK(t, f.Close())
	check.OK(t, os.WriteFile(filepath.Join(dir, ImagesFile), []byte(lines.String()), 0o666))
	g := check.Get(Open(dir))(t)
	defer g.Close()
	e := check.Get(compute.New(compute.Options{}))(t)
	defer e.Close()
	v := check.Get(g.View(Image, Image))(t)
	for _, below := range []int{1, 10, 50, 100, 0} {
		filter := check.Get(ParseFilter(fmt.Appendf(nil, `{"k": {"lt": %d}}`, below)))(t)
		rows := check.Get(g.Select(Image, filter))(t)
		again := check.Get(g.Select(Image, filter))(t)
		if !slices.Equal(rows, again) {
			t.Error("a second selection is another one")
		}
		query := 7
		all := check.Get(v.Search(context.Background(), e, x[query*dim:(query+1)*dim], Options{K: n, Exact: true}))(t)
		var want []int32
		for _, row := range all.Rows {
			var payload struct{ K int }
			item := check.Get(g.Item(Image, int(row)))(t)
			check.OK(t, json.Unmarshal(item.Payload, &payload))
			if payload.K < below && row != int32(query) {
				want = append(want, row)
			}
		}
		got := check.Get(v.Search(context.Background(), e, x[query*dim:(query+1)*dim], Options{K: 50, Rows: rows, Skip: []int32{int32(query)}}))(t)
		if !slices.Equal(got.Rows, want[:min(50, len(want))]) {
			t.Errorf("k < %d: %d rows found, %d are there", below, len(got.Rows), len(want))
		}
		if !sort.SliceIsSorted(rows, func(i, j int) bool { return rows[i] < rows[j] }) {
			t.Error("rows are not in their order")
		}
	}
	check.OK(t, os.Remove(filepath.Join(dir, ImagesFile)))
	bare := check.Get(Open(filepath.Join(dir, FeaturesFile)))(t) // rows without names
	defer bare.Close()
	if rows := check.Get(bare.Select(Image, check.Get(ParseFilter([]byte(`{"row": {"lt": 2}}`)))(t)))(t); !slices.Equal(rows, []int32{0, 1}) {
		t.Errorf("%v", rows)
	}
	if got := check.Get(bare.Fields(Image, 5, []string{"row", "name"}))(t); len(got) != 1 || got["row"] != 5.0 {
		t.Errorf("%v", got)
	}
	if got := check.Get(g.Fields(Image, 5, []string{"k", "name", "none"}))(t); got["name"] != "5" || len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// TestSelectByColumns: filters choose the rows that they match line by line, whatever was asked before: keys with dots,
// of lists, of the gallery itself and missing ones.
func TestSelectByColumns(t *testing.T) {
	dir := t.TempDir()
	writeShards(t, dir, 2, 6)
	m := check.Get(ReadManifest(dir))(t)
	m.Shards[0].NamesSum, m.Shards[0].NamesBytes = "", 0
	check.OK(t, m.Write(dir))
	lines := []string{`{"name":"a","payload":{"of":{"camera":"X","lens.mm":35}}}`, `{"name":"b","payload":{"of.camera":"X"}}`,
		`{"name":"c","payload":{"of":{"camera":["Y","X"]},"id":7}}`, `{"id":"d","payload":null}`, `{"caption":"e","payload":[1]}`, `{"payload":{"of":null,"row":"own"}}`}
	check.OK(t, os.WriteFile(filepath.Join(dir, m.Shards[0].Names), []byte(strings.Join(lines, "\n")), 0o666))
	g := check.Get(Open(dir))(t)
	defer g.Close()
	chosen := 0
	for _, text := range []string{`{"of.camera": "X"}`, `{"of.lens.mm": {"gt": 30}}`, `{"not": {"of": {"exists": true}}}`, `{"or": [{"id": "d"}, {"row": {"lt": 1}}]}`,
		`{"and": [{"id": {"exists": true}}, {"name": {"in": ["a", "c"]}}]}`, `{"id": 7}`, `{"of": null}`, `{"missing": {"lt": 3}}`, `{"row": {"gte": 4}}`, `{"caption": {"contains": "E"}}`} {
		f := check.Get(ParseFilter([]byte(text)))(t)
		var want []int32
		for i, line := range lines {
			if f.Match(check.Get(fieldsOf(i, []byte(line)))(t)) {
				want = append(want, int32(i))
			}
		}
		chosen += len(want)
		if got := check.Get(g.Select(Image, f))(t); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if chosen < 12 {
		t.Errorf("%d rows are chosen: the filters say nothing", chosen)
	}
}

// scanLines are lines that the scanner and fieldsOf are compared with.
var scanLines = []string{
	`{"row": 3, "id": "a", "name": "b.png", "payload": {"k": 1, "of": {"camera": "x"}, "list": [1, {"a": "}"}]}}`,
	`{"payload":{"id":7,"name":"p"},"name":"top"}`, `{"payload":{"id":null}}`, `{"id":5,"payload":{"id":"x"}}`, `{}`,
	`{"name": 4}`, `{"name": "q\"uo\\te", "k" :	-1.5e3 , "payload" : [ ] }`, `{"payload":{"k":1,"k":2},"payload":{"k":3,"k":"4"}}`,
	`{"k":1,"k":null,"payload":{"k":2}}`, `{"\u006b":true,"payload":{"l\u0069st":[[],[[]]]}}`, "{\"k\":\"\xff\",\"\xff\":1}",
	`{"payload":{"payload":{"k":1},"row":9}}`, `{"k":{"a":"\\"},"list":"{"}`, `null`, `[1]`, `5`, ``, `{"k":1`, `{"k":1e999}`,
	`  {"k":false}  `, `{"k":01}`, `{"k":-}`, `{"k":1.}`, `{"k":1e+}`, `{"k":-0.0E-2}`, `{"k":tru}`, `{"k":"\x"}`, `{"k":"\u12g4"}`,
	`{"k":"\u12"}`, "{\"k\":\"\n\"}", `{"k":1,}`, `{"k" 1}`, `{k:1}`, `{"k":[1,]}`, `{"k":[1 2]}`, `{"k":{}}x`, `{"k":"\u00e9\ud83d\ude00"}`,
}

// compareScan compares what a scanner says of a line with fieldsOf.
func compareScan(t *testing.T, s *scanner, keys []string, i int, line []byte) {
	got := map[string]any{}
	err := s.scan(i, line, func(k int, v any) { got[keys[k]] = v })
	fields, bad := fieldsOf(i, line)
	if bad != nil { // of a number that nobody asks for the scanner knows nothing
		if err == nil && !strings.Contains(bad.Error(), "number") {
			t.Errorf("%q: no error, want %v", line, bad)
		}
		return
	}
	want := map[string]any{}
	for _, key := range keys {
		if v, there := fields[key]; there {
			want[key] = v
		}
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q: %v, want %v: %v", line, got, want, err)
	}
}

// TestScan: a scanner reads some keys as they are in all that a line says.
func TestScan(t *testing.T) {
	for _, keys := range [][]string{{"k", "of", "list", "row", "id", "name", "payload", "none", "\ufffd"}, {"id"}, {"k"}} {
		s := newScanner(keys)
		for i, line := range scanLines {
			compareScan(t, s, keys, i, []byte(line))
		}
	}
}

// FuzzScan: as TestScan, of any line.
func FuzzScan(f *testing.F) {
	for _, line := range scanLines {
		f.Add([]byte(line))
	}
	keys := []string{"k", "of", "list", "row", "id", "name", "payload"}
	f.Fuzz(func(t *testing.T, line []byte) { compareScan(t, newScanner(keys), keys, 7, line) })
}

// TestEach: all lines are handed over once with their numbers, those of several files and of many chunks, and an error
// names the file and the line.
func TestEach(t *testing.T) {
	dir := t.TempDir()
	var l lines
	defer l.Close()
	n := 0
	for k, count := range []int{chunkLines*3 + 5, 1, chunkLines} {
		var b strings.Builder
		for range count {
			fmt.Fprintf(&b, "%d\n", n)
			n++
		}
		path := filepath.Join(dir, fmt.Sprint(k))
		check.OK(t, os.WriteFile(path, []byte(b.String()), 0o666))
		check.OK(t, l.add(path, count))
	}
	seen := make([]atomic.Int32, n)
	check.OK(t, l.each(func(worker, i int, line []byte) error {
		if seen[i].Add(1); string(line) != fmt.Sprintln(i) || worker < 0 || worker >= workers() {
			t.Errorf("line %d is %q of %d", i, line, worker)
		}
		return nil
	}))
	for i := range seen {
		if seen[i].Load() != 1 {
			t.Fatalf("line %d was handed over %d times", i, seen[i].Load())
		}
	}
	err := l.each(func(_, i int, _ []byte) error {
		if i == chunkLines*3+6 {
			return errors.New("bad")
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "2: line 1: bad") {
		t.Error(err)
	}
}
