package gallery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/search"
)

// oracle is what a gallery should have: rows by their ids.
type oracle struct {
	x map[string][]float32
	k map[string]int // of the payload; -1: none
}

// nearest returns the ids of the k rows with the largest products with q, among those that chosen chooses.
func (o *oracle) nearest(q []float32, k int, chosen func(k int) bool) []string {
	type scored struct {
		id string
		s  float64
	}
	var list []scored
	for id, x := range o.x {
		if !chosen(o.k[id]) {
			continue
		}
		s := 0.0
		for i, v := range x {
			s += float64(v) * float64(q[i])
		}
		list = append(list, scored{id, s})
	}
	slices.SortFunc(list, func(a, b scored) int { return cmp.Compare(b.s, a.s) })
	var out []string
	for _, s := range list[:min(k, len(list))] {
		out = append(out, s.id)
	}
	return out
}

// idsOf returns those of the hits of a query.
func idsOf(t *testing.T, g *Gallery, h *search.Hits, query int) (list []string) {
	t.Helper()
	rows, _ := h.Of(query)
	for _, row := range rows {
		list = append(list, check.Get(g.Item(Image, int(row)))(t).ID)
	}
	return list
}

func random(r *rand.Rand, c int) []float32 {
	x := make([]float32, c)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// TestChanges: after any puts, deletions, merges and openings, searches of all rows, by filters and beside an index find
// what a plain comparison of the rows that should be there finds.
func TestChanges(t *testing.T) {
	const c, n = 8, 400
	for _, indexed := range []bool{false, true} {
		dir := t.TempDir()
		all := writeShards(t, dir, c, 150, 250)
		e := check.Get(compute.New(compute.Options{Threads: 1}))(t)
		defer e.Close()
		r := rand.New(rand.NewPCG(5, 6))
		o := &oracle{map[string][]float32{}, map[string]int{}}
		w := check.Get(OpenWriter(dir, nil))(t)
		for i := range n {
			id := check.Get(w.Gallery().Item(Image, i))(t).ID
			o.x[id], o.k[id] = all[i*c:(i+1)*c], -1
		}
		ready := func(g *Gallery) error {
			v, err := g.View(Image, Text)
			if err == nil && indexed {
				err = v.UseIndex(t.Context(), e, IndexOptions{From: 2, Recall: 1})
			}
			return err
		}
		check.OK(t, ready(w.Gallery()))
		put := func() {
			var rows []Put
			for range 1 + r.IntN(30) {
				id := fmt.Sprintf("new %d", r.IntN(200))
				if r.IntN(3) == 0 {
					id = check.Get(w.Gallery().Item(Image, r.IntN(n/2)))(t).ID
				}
				p := Put{ID: id, Features: random(r, c), Payload: fmt.Appendf(nil, `{"k": %d}`, r.IntN(10))}
				if len(id) > maxID || slices.ContainsFunc(rows, func(p Put) bool { return p.ID == id }) {
					continue
				}
				rows = append(rows, p)
			}
			want := 0
			for _, p := range rows {
				if o.x[p.ID] != nil {
					want++
				}
				var of struct{ K int }
				check.OK(t, json.Unmarshal(p.Payload, &of))
				o.x[p.ID], o.k[p.ID] = p.Features, of.K
			}
			if got := check.Get(w.Put(rows))(t); got != want {
				t.Fatalf("%d rows replaced, want %d", got, want)
			}
		}
		remove := func() {
			var list []string
			for id := range o.x {
				if list = append(list, id); len(list) > 10 {
					break
				}
			}
			for _, id := range list {
				delete(o.x, id)
			}
			if got := check.Get(w.Delete(append(list, list[0], "none")))(t); got != len(list) {
				t.Fatalf("%d rows deleted, want %d", got, len(list))
			}
		}
		found, asked := 0, 0
		for step := range 60 {
			switch r.IntN(6) {
			case 0, 1:
				put()
			case 2:
				remove()
			case 3:
				k, gone := r.IntN(10), 0
				for id, of := range o.k {
					if of == k && o.x[id] != nil {
						delete(o.x, id)
						gone++
					}
				}
				f := check.Get(ParseFilter(fmt.Appendf(nil, `{"k": %d}`, k)))(t)
				if got := check.Get(w.DeleteWhere(f))(t); got != gone {
					t.Fatalf("%d rows of k = %d deleted, want %d", got, k, gone)
				}
			case 4: // with changes meanwhile
				old := w.Gallery()
				check.OK(t, w.Merge(t.Context(), func(next *Gallery) error {
					put()
					remove()
					put()
					return ready(next)
				}, func(*Gallery) { check.OK(t, old.Close()) }))
			case 5:
				check.OK(t, errors.Join(w.Close(), w.Gallery().Close()))
				w = check.Get(OpenWriter(dir, nil))(t)
				check.OK(t, ready(w.Gallery()))
			}
			g := w.Gallery()
			v := check.Get(g.View(Image, Text))(t)
			if g.Alive(Image) != len(o.x) || v.Rows() != len(o.x) {
				t.Fatalf("step %d: %d rows, want %d", step, g.Alive(Image), len(o.x))
			}
			q := append(random(r, c), random(r, c)...)
			hits := check.Get(v.Search(context.Background(), e, q, Options{K: 20}))(t)
			for i := range 2 {
				got, want := idsOf(t, g, hits, i), o.nearest(q[i*c:(i+1)*c], 20, func(int) bool { return true })
				if !indexed && !slices.Equal(got, want) || len(got) != len(want) {
					t.Fatalf("step %d: %.999v, want %.999v", step, got, want)
				}
				for _, id := range got {
					if o.x[id] == nil {
						t.Fatalf("step %d: a dead row is found", step)
					}
				}
				for _, id := range want {
					asked++
					if slices.Contains(got, id) {
						found++
					} else if check.Get(g.ByID(Image, id))(t) >= g.baseRows(Image) {
						t.Fatalf("step %d: a row that was put since the index was built is not found", step)
					}
				}
			}
			rows := check.Get(g.Select(Image, check.Get(ParseFilter([]byte(`{"k": {"gte": 5}}`)))(t)))(t)
			hits = check.Get(v.Search(context.Background(), e, q[:c], Options{K: 20, Rows: rows}))(t)
			if got, want := idsOf(t, g, hits, 0), o.nearest(q[:c], 20, func(k int) bool { return k >= 5 }); !slices.Equal(got, want) {
				t.Fatalf("step %d: by a filter %v, want %v", step, got, want)
			}
			for id, x := range o.x {
				row := check.Get(g.ByID(Image, id))(t)
				if got := check.Get(g.Row(Image, row))(t); !slices.Equal(got, x) || !g.Has(Image, row) {
					t.Fatalf("step %d: %s is another row", step, id)
				}
				skip := check.Get(v.Search(context.Background(), e, x, Options{K: 1, Skip: []int32{int32(row)}}))(t)
				if skip.Rows[0] == int32(row) {
					t.Fatalf("step %d: the row that is skipped is found", step)
				}
				break
			}
		}
		check.OK(t, errors.Join(w.Close(), w.Gallery().Close()))
		if float64(found) < 0.97*float64(asked) {
			t.Errorf("%d of %d of the nearest rows are found", found, asked)
		}
		g := check.Get(Open(dir))(t) // without a writer
		if g.Alive(Image) != len(o.x) {
			t.Errorf("%d rows, want %d", g.Alive(Image), len(o.x))
		}
		check.OK(t, g.Close())
	}
}

// TestTwoForms: images that the score changes before it compares them with texts have both forms, also after a merge.
func TestTwoForms(t *testing.T) {
	dir := t.TempDir()
	x, own := []float32{1, 0, 0, 1}, []float32{0, 1, 1, 0}
	m := Manifest{Version: 1, Side: Image, Dim: 2, Rows: 2, Complete: true, Meta: Meta{Score: "cosine", Product: true, Space: "sphere"}}
	s := check.Get(WriteShard(dir, "images-00000", []safetensors.Tensor{{Name: Image, Shape: []int{2, 2}, Data: x}, {Name: imageFeatures, Shape: []int{2, 2}, Data: own}},
		m.Meta, 2, func(i int) any { return Item{Row: i, Name: fmt.Sprint("n", i)} }))(t)
	m.Shards = []Shard{s}
	check.OK(t, m.Write(dir))
	w := check.Get(OpenWriter(dir, nil))(t)
	_, err := w.Put([]Put{{ID: "a", Features: []float32{1, 1}}})
	check.Error(t, err, "item 0: it has 2 numbers, the rows of the gallery have 4")
	check.Get(w.Put([]Put{{ID: "a", Features: []float32{3, 4}, Own: []float32{5, 6}}}))(t)
	for range 2 {
		g := w.Gallery()
		row := check.Get(g.ByID(Image, "a"))(t)
		if got := check.Get(g.Row(Image, row))(t); !slices.Equal(got, []float32{5, 6}) {
			t.Errorf("%v", got)
		}
		e := check.Get(compute.New(compute.Options{Threads: 1}))(t)
		for from, want := range map[string]float32{Text: 11, Image: 2 / float32(1.4142135) * 11 / 2 / float32(7.8102497)} {
			h := check.Get(check.Get(g.View(Image, from))(t).Search(t.Context(), e, []float32{1, 2}[:2], Options{K: 1}))(t)
			if from == Text && (h.Rows[0] != int32(row) || h.Scores[0] != want) {
				t.Errorf("%s: %+v", from, h)
			}
		}
		e.Close()
		check.OK(t, w.Merge(t.Context(), func(*Gallery) error { return nil }, func(*Gallery) { check.OK(t, g.Close()) }))
	}
	check.OK(t, errors.Join(w.Close(), w.Gallery().Close()))
}

// TestLog: of a log that is cut at any byte the changes before it are read, and a writer goes on with them; one that is
// damaged before its end is refused.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	writeShards(t, dir, 2, 3)
	w := check.Get(OpenWriter(dir, nil))(t)
	path := filepath.Join(dir, logFile(1))
	if m := check.Get(ReadManifest(dir))(t); m.Version != 1 || m.Generation != 0 {
		t.Errorf("a writer that has changed nothing leaves %+v", m)
	}
	var ends []int64
	for i := range 3 {
		check.Get(w.Put([]Put{{ID: fmt.Sprint("p", i), Features: []float32{1, float32(i)}}}))(t)
		ends = append(ends, check.Get(os.Stat(path))(t).Size())
	}
	check.OK(t, errors.Join(w.Close(), w.Gallery().Close()))
	whole := check.Get(os.ReadFile(path))(t)
	for size := len(logMagic); size <= len(whole); size++ {
		check.OK(t, os.WriteFile(path, whole[:size], 0o666))
		want := 3
		for _, end := range ends {
			if int64(size) >= end {
				want++
			}
		}
		g := check.Get(Open(dir))(t)
		if got := g.Alive(Image); got != want {
			t.Fatalf("%d rows of a log of %d bytes, want %d", got, size, want)
		}
		check.OK(t, g.Close())
		w := check.Get(OpenWriter(dir, nil))(t)
		check.Get(w.Put([]Put{{ID: "more", Features: []float32{2, 2}}}))(t)
		check.OK(t, errors.Join(w.Close(), w.Gallery().Close()))
		g = check.Get(Open(dir))(t)
		if got := g.Alive(Image); got != want+1 {
			t.Fatalf("%d rows after one more, want %d", got, want+1)
		}
		check.OK(t, g.Close())
	}
	bad := slices.Clone(whole)
	bad[len(logMagic)+20] ^= 1
	check.OK(t, os.WriteFile(path, bad, 0o666))
	check.Fails(Open(dir))(t, "was damaged at byte 19: its checksum is another one")
	check.OK(t, os.WriteFile(path, append(slices.Clone(whole), make([]byte, 4096)...), 0o666)) // what a power cut may leave
	g := check.Get(Open(dir))(t)
	if got := g.Alive(Image); got != 6 {
		t.Errorf("%d rows before zeros", got)
	}
	check.OK(t, g.Close())
	check.OK(t, os.WriteFile(path, []byte("something else"), 0o666))
	check.Fails(Open(dir))(t, "is not a log of changes")
	check.OK(t, os.Remove(path))
	check.Fails(Open(dir))(t, "changes-00001.log")
}

// TestWriterRefuses: what is no change is refused as a whole, and says which item and why.
func TestWriterRefuses(t *testing.T) {
	dir := t.TempDir()
	writeShards(t, dir, 2, 3)
	w := check.Get(OpenWriter(dir, nil))(t)
	defer func() { check.OK(t, errors.Join(w.Close(), w.Gallery().Close())) }()
	_, err := OpenWriter(dir, nil)
	if _, held := errors.AsType[*files.HeldError](err); !held {
		t.Errorf("a second writer: %v", err)
	}
	good := Put{ID: "good", Features: []float32{1, 2}}
	for want, p := range map[string]Put{
		"its id has 0 bytes": {Features: good.Features}, "its id has 4097 bytes": {ID: strings.Repeat("x", 4097), Features: good.Features},
		"not UTF-8": {ID: "\xff", Features: good.Features}, "it is a text, and the gallery has images": {ID: "a", Caption: "b", Features: good.Features},
		"has 3 numbers, the rows of the gallery have 2": {ID: "a", Features: []float32{1, 2, 3}}, "has 0 numbers": {ID: "a"},
		"its features are not finite": {ID: "a", Features: []float32{1, float32(inf())}},
		"its payload is not JSON":     {ID: "a", Features: good.Features, Payload: []byte("{")}, "its payload: ": {ID: "a", Features: good.Features, Payload: []byte(`{"a":1,"a":2}`)},
		"of an earlier one: put each id once": {ID: "good", Features: good.Features}, "at most 1048576 are kept": {ID: "a", Features: good.Features, Payload: fmt.Appendf(nil, "%q", strings.Repeat("x", maxLine))},
	} {
		_, err := w.Put([]Put{good, p})
		check.Error(t, err, "item 1", want)
	}
	if w.Gallery().Alive(Image) != 3 {
		t.Error("a change that was refused was made")
	}
	for _, payload := range []string{`null`, `1`, `"text"`, `[1, {"a": null}]`, `true`, `{}`, `{"id": "other"}`, `{"id": 7, "row": -1, "payload": {"payload": 1}}`} {
		check.Get(w.Put([]Put{{ID: "any", Features: good.Features, Payload: []byte(payload)}}))(t)
		row := check.Get(w.Gallery().ByID(Image, "any"))(t)
		if item := check.Get(w.Gallery().Item(Image, row))(t); item.ID != "any" || payload != "null" && string(item.Payload) != strings.ReplaceAll(strings.ReplaceAll(payload, ": ", ":"), ", ", ",") {
			t.Errorf("%s: %+v", payload, item)
		}
		f := check.Get(ParseFilter([]byte(`{"missing": {"gt": 1}}`)))(t)
		if rows := check.Get(w.Gallery().Select(Image, f))(t); len(rows) != 0 {
			t.Errorf("%s: %v", payload, rows)
		}
	}
	if n := check.Get(w.DeleteWhere(check.Get(ParseFilter([]byte(`{"row": {"gte": 0}}`)))(t)))(t); n != 4 {
		t.Errorf("%d rows deleted", n)
	}
	v := check.Get(w.Gallery().View(Image, Text))(t)
	e := check.Get(compute.New(compute.Options{Threads: 1}))(t)
	defer e.Close()
	if h := check.Get(v.Search(t.Context(), e, []float32{1, 2}, Options{K: 5}))(t); len(h.Rows) != 0 || v.Rows() != 0 {
		t.Errorf("%+v in a gallery without rows", h)
	}
	if w.Due() {
		t.Error("there is nothing to merge")
	}
	double := t.TempDir()
	writeShards(t, double, 2, 3)
	m := check.Get(ReadManifest(double))(t)
	m.Shards[0].NamesSum, m.Shards[0].NamesBytes = "", 0
	check.OK(t, m.Write(double))
	check.OK(t, os.WriteFile(filepath.Join(double, m.Shards[0].Names), []byte("{\"name\":\"a\"}\n{\"name\":\"b\"}\n{\"payload\":{\"id\":\"a\"}}\n"), 0o666))
	check.Fails(OpenWriter(double, nil))(t, "rows 0 and 2 of", `both have the id "a"`)
	g := check.Get(Open(double))(t)
	defer g.Close()
	if row := check.Get(g.ByID(Image, "a"))(t); row != 0 {
		t.Errorf("row %d", row)
	}
	if _, err := g.ByID(Image, "1"); !errors.Is(err, ErrNoRow) {
		t.Errorf("%v", err)
	}
	file := filepath.Join(double, m.Shards[0].Features)
	check.Fails(OpenWriter(file, nil))(t)
	check.Fails(OpenWriter(t.TempDir(), nil))(t, "cannot be changed")
}

func inf() float64 { x := 0.0; return 1 / x }
