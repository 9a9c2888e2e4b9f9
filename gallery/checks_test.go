package gallery

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/search"
)

// writeSplit writes a gallery of a split with n images and texts as embed does.
func writeSplit(t testing.TB, dir string, n, c int) {
	t.Helper()
	x := make([]float32, n*c)
	for i := range x {
		x[i] = float32((i*7919)%101) - 50
	}
	meta := map[string]string{"model": "run/step-00000001", "step": "1", "split": "test", "score": "cosine",
		"product": "true"}
	for _, name := range []string{ImagesFile, TextsFile} {
		var b bytes.Buffer
		for i := range n {
			fmt.Fprintf(&b, "{\"row\":%d,\"name\":\"%d.png\"}\n", i, i)
		}
		path := filepath.Join(dir, name)
		check.OK(t, os.WriteFile(path, b.Bytes(), 0o666))
		meta[SumOf(name)] = sumOf(t, path)
	}
	f := check.Get(os.Create(filepath.Join(dir, FeaturesFile)))(t)
	tensors := []safetensors.Tensor{{Name: Image, Shape: []int{n, c}, Data: x}, {Name: Text, Shape: []int{n, c}, Data: x}}
	check.OK(t, errors.Join(safetensors.WriteSummed(f, tensors, meta), f.Close()))
}

// kept replaces a file by other bytes and sets its time back.
func kept(t testing.TB, path string, b []byte) {
	t.Helper()
	st := check.Get(os.Stat(path))(t)
	check.OK(t, errors.Join(os.WriteFile(path, b, 0o666), os.Chtimes(path, time.Time{}, st.ModTime())))
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	return check.Get(os.ReadFile(path))(t)
}

// TestDamageIsFound: a byte that changed anywhere in a gallery, with its time set back, is an error that names the file
// and what to do, or changes nothing.
func TestDamageIsFound(t *testing.T) {
	for kind, write := range map[string]func(dir string){
		"shards": func(dir string) { writeShards(t, dir, 3, 4, 0, 2) },
		"split":  func(dir string) { writeSplit(t, dir, 4, 3) },
	} {
		dir := t.TempDir()
		write(dir)
		g, err := Open(dir)
		if err != nil {
			t.Fatal(kind, err)
		}
		want := all(t, g)
		check.OK(t, g.Close())
		list := check.Get(os.ReadDir(dir))(t)
		for _, e := range list {
			path, found := filepath.Join(dir, e.Name()), 0
			whole := readFile(t, path)
			step := max(1, len(whole)/150)
			for i := 0; i < len(whole); i += step {
				b := slices.Clone(whole)
				b[i] ^= 1 << (i % 8)
				kept(t, path, b)
				g, err := Open(dir)
				if err != nil {
					if found++; !strings.Contains(err.Error(), e.Name()) && e.Name() != ManifestFile &&
						e.Name() != FeaturesFile {
						t.Errorf("%s: byte %d of %s: %v", kind, i, e.Name(), err)
					}
					continue
				}
				if got := all(t, g); got != want {
					t.Errorf("%s: byte %d of %s changed what is in the gallery", kind, i, e.Name())
				}
				check.OK(t, g.Close())
			}
			kept(t, path, whole)
			if want := len(whole) / step * 3 / 4; found < want {
				t.Errorf("%s: %d changes of %s were found, want %d", kind, found, e.Name(), want)
			}
		}
	}
}

// all is what a gallery holds, as a text.
func all(t testing.TB, g *Gallery) string {
	t.Helper()
	text := fmt.Sprint(g.Meta, g.Root, g.sides)
	for _, side := range g.sides {
		for i := range g.Rows(side) {
			row, err := g.Row(side, i)
			item, itemErr := g.Item(side, i)
			check.OK(t, errors.Join(err, itemErr))
			text += fmt.Sprintln(row, item)
		}
	}
	return text
}

// TestEditedManifest: an index.json that somebody changed is refused, and read without its checksum, as the message
// says.
func TestEditedManifest(t *testing.T) {
	dir := t.TempDir()
	writeShards(t, dir, 3, 5)
	path := filepath.Join(dir, ManifestFile)
	edited := bytes.Replace(readFile(t, path), []byte(`"space": "sphere"`), []byte(`"space": "euclid"`), 1)
	check.OK(t, os.WriteFile(path, edited, 0o666))
	if _, err := Open(dir); err == nil ||
		!strings.Contains(err.Error(), `if you changed it on purpose, remove the line "checksum"`) {
		t.Error(err)
	}
	var lines []string
	for _, line := range strings.Split(string(edited), "\n") {
		if !strings.Contains(line, `"checksum"`) {
			lines = append(lines, line)
		}
	}
	check.OK(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o666))
	g := check.Get(Open(dir))(t)
	if g.Meta.Space != "euclid" {
		t.Error(g.Meta)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestSwappedShards: rows that lie in each other's places are found, with files of equal sizes.
func TestSwappedShards(t *testing.T) {
	dir := t.TempDir()
	writeShards(t, dir, 3, 5, 5)
	a, b := filepath.Join(dir, "images-00000.safetensors"), filepath.Join(dir, "images-00001.safetensors")
	x, y := readFile(t, a), readFile(t, b)
	kept(t, a, y)
	kept(t, b, x)
	if _, err := Open(dir); err == nil ||
		!strings.Contains(err.Error(), "images-00000.safetensors was damaged or changed: its checksum is ") ||
		!strings.Contains(err.Error(), "run the same embed again") {
		t.Error(err)
	}
}

// TestDamageBehind: a large gallery is compared while the caller goes on, and no search gives hits of a damaged one.
func TestDamageBehind(t *testing.T) {
	defer func(b int64) { background = b }(background)
	background = 0
	dir := t.TempDir()
	rows := writeShards(t, dir, 3, 5, 5)
	e := check.Get(compute.New(compute.Options{Backend: "plain", Threads: 1}))(t)
	defer e.Close()
	look := func() error {
		g, v := viewed(t, dir)
		defer g.Close()
		_, err := v.Search(t.Context(), e, rows[:3], Options{K: 2})
		if built := v.UseIndex(t.Context(), e, IndexOptions{From: 2}); err != nil &&
			(built == nil || built.Error() != err.Error()) {
			t.Errorf("an index of damaged rows is built: %v", built)
		}
		if wait := g.Wait(t.Context()); fmt.Sprint(wait) != fmt.Sprint(err) {
			t.Errorf("Wait gives %v, a search %v", wait, err)
		}
		return err
	}
	check.OK(t, look())
	if err := os.Remove(filepath.Join(dir, "gallery.image.inner.search")); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "images-00001.safetensors")
	b := readFile(t, path)
	b[len(b)-2] ^= 1
	kept(t, path, b)
	check.Error(t, look(), path+" was damaged or changed")
}

// TestKnownGallery: what was read once is known by its stamps, to another process too, and a copy elsewhere is read.
func TestKnownGallery(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until a stamp proves something")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	defer func(b int64) { background = b }(background)
	background = 0 // so that what is not known is compared behind
	dir := t.TempDir()
	writeShards(t, dir, 3, 5, 5)
	known := func(dir string) bool {
		g := check.Get(Open(dir))(t)
		defer g.Close()
		check.OK(t, g.Wait(t.Context()))
		return g.checked == nil
	}
	for range 2 {
		if known(dir) {
			t.Error("files that were just written are known")
		}
	}
	time.Sleep(2100 * time.Millisecond)
	if known(dir) {
		t.Error("files are known that nobody has read since they settled")
	}
	if !known(dir) {
		t.Error("files that were read are not known")
	}
	saved := identity.OpenBook(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "geoalign", "sums"))
	list, err := Checks(dir)
	if err != nil || len(list) != 4 {
		t.Fatal(list, err)
	}
	for _, c := range list {
		s, err := c.stamp()
		if _, ok := saved.Known(c.name(), s); !ok || err != nil {
			t.Errorf("%s is not known to the next process: %v", c.Path, err)
		}
	}
	other := filepath.Join(t.TempDir(), "copy")
	check.OK(t, os.CopyFS(other, os.DirFS(dir)))
	if known(other) {
		t.Error("a copy is known")
	}
}

// TestCopiedIndex: the index of a copy of a gallery serves it, and nothing is written there.
func TestCopiedIndex(t *testing.T) {
	dir := t.TempDir()
	writeShards(t, dir, 8, 300, 300)
	e := check.Get(compute.New(compute.Options{Backend: "plain", Threads: 1}))(t)
	defer e.Close()
	stages := map[string]bool{}
	use := func(dir string) {
		g, v := viewed(t, dir)
		defer g.Close()
		clear(stages)
		check.OK(t, v.UseIndex(t.Context(), e,
			IndexOptions{From: 600, Progress: func(stage string, _, _ int) { stages[stage] = true }}))
	}
	use(dir)
	if !stages["assign"] {
		t.Fatal("no index is built: ", stages)
	}
	other := filepath.Join(t.TempDir(), "copy")
	check.OK(t, os.CopyFS(other, os.DirFS(dir)))
	before := listing(t, other)
	if use(other); stages["assign"] || !stages["compare rows"] {
		t.Errorf("a copy: %v", stages)
	}
	if after := listing(t, other); after != before {
		t.Errorf("the folder had %s and has %s", before, after)
	}
}

// listing is names, sizes and times of the files in a folder.
func listing(t testing.TB, dir string) (text string) {
	t.Helper()
	list := check.Get(os.ReadDir(dir))(t)
	for _, e := range list {
		st := check.Get(e.Info())(t)
		text += fmt.Sprintln(e.Name(), st.Size(), st.ModTime())
	}
	return text
}

// TestEarlierGalleries: galleries and indices of version 1 are read: a split has no sums, and an index is built anew.
func TestEarlierGalleries(t *testing.T) {
	e := check.Get(compute.New(compute.Options{Backend: "plain", Threads: 1}))(t)
	defer e.Close()
	for _, c := range []struct {
		name, side string
		row        int
		want       []int32 // by the program that wrote it
		sums       int
	}{{"split", Image, 1, []int32{19, 0, 7}, 0}, {"texts", Text, 1, []int32{0, 2, 3}, 4}} {
		dir := filepath.Join(t.TempDir(), c.name)
		check.OK(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "v1", c.name))))
		g := check.Get(Open(dir))(t)
		sums := 0
		for _, f := range g.checks {
			if f.Sum != "" {
				sums++
			}
		}
		v := check.Get(g.View(c.side, c.side))(t)
		said := ""
		say := func(format string, args ...any) { said += fmt.Sprintf(format, args...) }
		check.OK(t, v.UseIndex(t.Context(), e, IndexOptions{From: 2, Say: say}))
		row := check.Get(g.Row(c.side, c.row))(t)
		hits, err := v.Search(t.Context(), e, row, Options{K: 3, Skip: []int32{int32(c.row)}})
		if err != nil || !slices.Equal(hits.Rows, c.want) || sums != c.sums ||
			!strings.Contains(said, "it has version 1 of the format") {
			t.Errorf("%s: rows %v, want %v; %d sums, said %q: %v", c.name, hits.Rows, c.want, sums, said, err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if _, err := search.Check(v.indexFile()); err != nil {
			t.Error(err)
		}
	}
}

// TestReplacedRows: three rows of a large gallery that are replaced in place, with the time of the file as it was, are
// found in the index of a file that has no checksum, and named.
func TestReplacedRows(t *testing.T) {
	const n, c = 120_000, 4
	if testing.Short() {
		t.Skip("builds an index of 120,000 rows")
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	x := make([]float32, n*c)
	for i := range x {
		x[i] = float32((i*7919)%10007) - 5000
	}
	var b bytes.Buffer
	check.OK(t, safetensors.Write(&b, []safetensors.Tensor{{Name: "x", Shape: []int{n, c}, Data: x}}, nil))
	check.OK(t, os.WriteFile(path, b.Bytes(), 0o666))
	e := check.Get(compute.New(compute.Options{}))(t)
	defer e.Close()
	use := func() string {
		g := check.Get(Open(path))(t)
		defer g.Close()
		v := check.Get(g.View(Image, Image))(t)
		said := ""
		check.OK(t, v.UseIndex(t.Context(), e,
			IndexOptions{Say: func(format string, args ...any) { said += fmt.Sprintf(format, args...) }}))
		return said
	}
	if said := use(); said != "" {
		t.Error(said)
	}
	if said := use(); said != "" {
		t.Error(said)
	}
	whole := b.Bytes()
	start := len(whole) - 4*n*c
	for _, row := range []int{300, 50_000, 50_001} {
		copy(whole[start+row*4*c:][:4*c], bytes.Repeat([]byte{0, 0, 128, 63}, c))
	}
	kept(t, path, whole)
	if said, want := use(), "rows differ among 256 to 511, 49920 to 50175 (2 of 469 blocks of rows)"; !strings.Contains(
		said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}
