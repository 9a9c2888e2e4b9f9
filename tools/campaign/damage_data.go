package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run/verify"
)

// Sizes of the galleries that are damaged.
const (
	dataRows  = 600
	dataWidth = 16
	dataBatch = 200 // copies that lie on the disk at a time
	settling  = 2100 * time.Millisecond
	byBinary  = 20 // every so many is looked at by the program too
)

// dataKinds is what may happen to the bytes of a file of a gallery: what may happen to a checkpoint, and blocks in each
// other's places.
var dataKinds = append(slices.Clone(kinds), struct {
	name string
	do   func(c *campaign, b []byte) []byte
}{"two blocks swapped", func(c *campaign, b []byte) []byte {
	n := 1 + c.rand.IntN(max(1, min(512, len(b)/4)))
	i, j := c.rand.IntN(len(b)-n+1), c.rand.IntN(len(b)-n+1)
	out := slices.Clone(b)
	copy(out[i:i+n], b[j:j+n])
	copy(out[j:j+n], b[i:i+n])
	return out
}})

// targets are what is damaged. Each is a folder of files, of which one is searched, or the folder itself.
var targets = []struct {
	name  string
	write func(c *campaign, dir string, x []float32) error
	open  string // file that is searched; empty: the folder
	spoil func(name string) bool
	index bool // an index is used
	told  bool // rows may be others if an index that was of them says so: nothing else has a checksum of them
}{
	{"shards", (*campaign).writeShards, "", func(string) bool { return true }, false, false},
	{"split", (*campaign).writeSplit, "", func(string) bool { return true }, false, false},
	{"stored npz", func(c *campaign, dir string, x []float32) error { return writeNPZ(dir, x, zip.Store) }, "x.npz", func(string) bool { return true }, false, false},
	{"deflated npz", func(c *campaign, dir string, x []float32) error { return writeNPZ(dir, x, zip.Deflate) }, "x.npz", func(string) bool { return true }, false, false},
	{"index", (*campaign).writeShards, "", func(name string) bool { return filepath.Ext(name) == ".search" }, true, false},
	{"npy with an index", func(c *campaign, dir string, x []float32) error { return writeNPY(filepath.Join(dir, "x.npy"), x) }, "x.npy", func(name string) bool { return filepath.Ext(name) == ".npy" }, true, true},
}

// damageData changes files of galleries, archives and indices that were searched before, and sets their times back. A
// search must say so, or find what it found; inspect --verify must find what has a checksum.
func (c *campaign) damageData() error {
	// of the program that is started too
	if err := os.Setenv("XDG_CACHE_HOME", filepath.Join(c.dir, "cache")); err != nil {
		return err
	}
	e, err := compute.New(compute.Options{Threads: 1})
	if err != nil {
		return err
	}
	defer e.Close()
	x := make([]float32, dataRows*dataWidth)
	for i := range x {
		x[i] = float32(c.rand.NormFloat64())
	}
	wanted := map[string]string{} // by target
	for _, t := range targets {
		dir := filepath.Join(c.dir, "whole", t.name)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		if err := t.write(c, dir, x); err != nil {
			return err
		}
		if wanted[t.name], _, err = found(e, filepath.Join(dir, t.open), t.index); err != nil {
			return err
		}
	}
	var wrong failures
	counts := map[string]int{}
	for done := 0; done < c.n; done += dataBatch {
		if err := c.damageBatch(e, wanted, min(dataBatch, c.n-done), counts, &wrong); err != nil {
			return err
		}
	}
	var words []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s %d", k, counts[k]))
	}
	c.say("%d damages: %s: %d failures", c.n, strings.Join(words, ", "), wrong.n)
	return wrong.err()
}

// damageBatch damages so many copies, which are known to be whole when it does.
func (c *campaign) damageBatch(e *compute.Engine, wanted map[string]string, n int, counts map[string]int,
	wrong *failures) error {
	dir := filepath.Join(c.dir, "copies")
	place := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
	for i := range n {
		if err := os.CopyFS(place(i), os.DirFS(filepath.Join(c.dir, "whole",
			targets[i%len(targets)].name))); err != nil {
			return err
		}
	}
	time.Sleep(settling) // from now on the stamps of the copies prove something
	for i := range n {
		t := targets[i%len(targets)]
		got, said, err := found(e, filepath.Join(place(i), t.open), t.index)
		if err != nil || got != wanted[t.name] || said != "" {
			return fmt.Errorf("a copy of %s finds something else: %q, %w", t.name, said, err)
		}
	}
	for i := range n {
		t := targets[i%len(targets)]
		what, err := c.spoilData(place(i), t.spoil)
		if err != nil {
			return err
		}
		path := filepath.Join(place(i), t.open)
		r, err := verify.Path(context.Background(), path, true) // before a search, which builds a damaged index anew
		inspected := err != nil || r.Damaged > 0
		look := func(fails bool, args ...string) {
			if i%byBinary != 0 {
				return
			}
			if err := c.ends(fails, args...); err != nil {
				wrong.add("%s: %s: %v", t.name, what, err)
			}
		}
		look(inspected, "inspect", path, "--verify")
		got, said, err := found(e, path, t.index)
		look(err != nil, "search", path, "--row", "3", "--json")
		same := got == wanted[t.name]
		switch {
		case err != nil && (inspected || t.told):
			counts["found by both"]++
		case err != nil:
			wrong.add("%s: %s: inspect does not find it: %v", t.name, what, err)
		case t.told && strings.Contains(said, "is the index of other rows"):
			counts["other rows, told"]++
		case same && inspected && t.index && said == "":
			wrong.add("%s: %s: nothing is said of a damaged index", t.name, what)
		case same && inspected && t.index:
			counts["index built anew"]++
		case same && inspected:
			counts["same hits, found by inspect"]++
		case same:
			counts["same hits"]++
		default:
			wrong.add("%s: %s: other hits without a word (inspect finds it: %v)", t.name, what, inspected)
		}
	}
	return os.RemoveAll(dir)
}

// ends has the program run to its end, which must be that of a failure or not.
func (c *campaign) ends(fails bool, args ...string) error {
	code, out, err := c.trainer(c.dir, args...)
	if err != nil {
		return err
	}
	if want := map[bool]int{true: 1}[fails]; code != want {
		return fmt.Errorf("%q ends with %d, want %d:\n%s", args, code, want, tail(out))
	}
	return nil
}

// found returns what a few searches find, as a text, and what was said of an index.
func found(e *compute.Engine, path string, index bool) (text, said string, err error) {
	g, err := gallery.Open(path)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	ctx := context.Background()
	for _, side := range g.Sides() {
		v, err := g.View(side, side)
		if err != nil {
			return "", "", err
		}
		if index {
			say := func(format string, args ...any) { said += fmt.Sprintf(format+"\n", args...) }
			if err := v.UseIndex(ctx, e, gallery.IndexOptions{From: 2, Say: say}); err != nil {
				return "", said, err
			}
		}
		for row := 0; row < g.Rows(side); row += dataRows / 12 {
			query, err := g.Row(side, row)
			if err != nil {
				return "", said, err
			}
			hits, err := v.Search(ctx, e, query, gallery.Options{K: 20})
			if err != nil {
				return "", said, err
			}
			text += fmt.Sprintln(side, hits.Rows, hits.Scores)
			for _, i := range hits.Rows {
				item, err := g.Item(side, int(i))
				if err != nil {
					return "", said, err
				}
				text += fmt.Sprintln(item.Name, item.Caption)
			}
		}
	}
	return text, said, nil
}

// spoilData damages one file of a folder, sets its time back and says what it did.
func (c *campaign) spoilData(dir string, spoil func(name string) bool) (what string, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(e os.DirEntry) bool { return !spoil(e.Name()) })
	if len(list) == 0 {
		return "", fmt.Errorf("%s has nothing to damage", dir)
	}
	e := list[c.rand.IntN(len(list))]
	path := filepath.Join(dir, e.Name())
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	for {
		kind := dataKinds[c.rand.IntN(len(dataKinds))]
		changed := kind.do(c, slices.Clone(b))
		if bytes.Equal(changed, b) && changed != nil {
			continue // zeros over zeros
		}
		what = fmt.Sprintf("%s: %s", e.Name(), kind.name)
		if changed == nil {
			return what, os.Remove(path)
		}
		return what, errors.Join(os.WriteFile(path, changed, 0o666), os.Chtimes(path, time.Time{}, st.ModTime()))
	}
}

// writeShards writes a gallery of images as embed writes it.
func (c *campaign) writeShards(dir string, x []float32) error {
	m := gallery.Manifest{Version: 1, Side: gallery.Image, Source: "images", Dim: dataWidth, ShardRows: dataRows / 3,
		Complete: true, Root: "/none", Meta: gallery.Meta{Score: "cosine", Product: true, Space: "sphere"}}
	for k := range 3 {
		n := m.ShardRows
		s := gallery.Shard{Features: fmt.Sprintf("images-%05d.safetensors", k),
			Names: fmt.Sprintf("images-%05d.jsonl", k), Rows: n, Inputs: n}
		part := x[k*n*dataWidth : (k+1)*n*dataWidth]
		if err := writeTo(filepath.Join(dir, s.Features), func(w io.Writer) error {
			return safetensors.Write(w, []safetensors.Tensor{{Name: gallery.Image, Shape: []int{n, dataWidth},
				Data: part}}, nil)
		}); err != nil {
			return err
		}
		if err := writeTo(filepath.Join(dir, s.Names),
			func(w io.Writer) error { return writeNames(w, n, k*n) }); err != nil {
			return err
		}
		var err1, err2 error
		s.FeaturesBytes, s.FeaturesSum, err1 = gallery.SumFile(context.Background(), filepath.Join(dir, s.Features))
		s.NamesBytes, s.NamesSum, err2 = gallery.SumFile(context.Background(), filepath.Join(dir, s.Names))
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		m.Shards, m.Rows = append(m.Shards, s), m.Rows+n
	}
	return m.Write(dir)
}

// writeSplit writes a gallery of images and texts as embed writes that of a split.
func (c *campaign) writeSplit(dir string, x []float32) error {
	const n = dataRows / 2
	meta := map[string]string{"model": "/none", "step": "1", "split": "test", "score": "cosine", "product": "true",
		"space": "sphere"}
	for _, name := range []string{gallery.ImagesFile, gallery.TextsFile} {
		path := filepath.Join(dir, name)
		if err := writeTo(path, func(w io.Writer) error { return writeNames(w, n, 0) }); err != nil {
			return err
		}
		_, sum, err := gallery.SumFile(context.Background(), path)
		if err != nil {
			return err
		}
		meta[gallery.SumOf(name)] = sum
	}
	return writeTo(filepath.Join(dir, gallery.FeaturesFile), func(w io.Writer) error {
		return safetensors.WriteSummed(w,
			[]safetensors.Tensor{{Name: gallery.Image, Shape: []int{n, dataWidth}, Data: x[:n*dataWidth]},
				{Name: gallery.Text, Shape: []int{n, dataWidth}, Data: x[n*dataWidth:]}}, meta)
	})
}

// writeNames writes the names of n rows.
func writeNames(w io.Writer, n, first int) error {
	e := json.NewEncoder(w)
	for i := range n {
		if err := e.Encode(map[string]any{"row": i, "name": fmt.Sprintf("%d.png", first+i),
			"caption": fmt.Sprintf("number %d", first+i)}); err != nil {
			return err
		}
	}
	return nil
}

// writeNPY writes rows as numpy.save does.
func writeNPY(path string, x []float32) error {
	return features.Write(path, func(emit func([]float32) error) error {
		for row := range slices.Chunk(x, dataWidth) {
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeNPZ writes rows as numpy.savez does, or numpy.savez_compressed.
func writeNPZ(dir string, x []float32, method uint16) error {
	npy := filepath.Join(dir, "x.npy")
	if err := writeNPY(npy, x); err != nil {
		return err
	}
	b, err := os.ReadFile(npy)
	if err != nil {
		return err
	}
	if err := os.Remove(npy); err != nil {
		return err
	}
	return writeTo(filepath.Join(dir, "x.npz"), func(w io.Writer) error {
		z := zip.NewWriter(w)
		m, err := z.CreateHeader(&zip.FileHeader{Name: "x.npy", Method: method})
		if err != nil {
			return err
		}
		if _, err := m.Write(b); err != nil {
			return err
		}
		return z.Close()
	})
}

// writeTo writes a file.
func writeTo(path string, fill func(w io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o666)
}
