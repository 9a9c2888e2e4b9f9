package photos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/convert"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/weights/weightstest"
)

// picture writes a picture that differs from those of other numbers.
func picture(t testing.TB, path string, n int) {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, 13, 12))
	for i := range 13 * 12 {
		m.Set(i%13, i/13, color.NRGBA{byte(n * 37), byte(n*91 + i), byte(i * (n + 3)), 255})
	}
	check.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
	f := check.Get(os.Create(path))(t)
	check.OK(t, errors.Join(png.Encode(f, m), f.Close()))
}

// settle makes all files of now so old that their times prove what they hold, until the test ends.
func settle(t testing.TB) {
	t.Helper()
	now = func() time.Time { return time.Now().Add(time.Hour) }
	t.Cleanup(func() { now = time.Now })
}

// album is a folder of pictures with what keeps its gallery.
type album struct {
	dir string
	o   Options
	log strings.Builder
}

func newAlbum(t testing.TB, n int) *album {
	t.Helper()
	a := &album{dir: t.TempDir()}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for i := range n {
		picture(t, a.at(fmt.Sprintf("p%02d.png", i)), i)
	}
	a.o = Options{Dir: filepath.Join(t.TempDir(), "gallery"), Model: weightstest.Stored(t, "clip"),
		Open: run.OpenOptions{Log: &a.log, Set: []string{"eval.batch_size=2", "data.tokens=6"}}}
	return a
}

func (a *album) at(name string) string { return filepath.Join(a.dir, filepath.FromSlash(name)) }

// update updates the gallery and looks whether each row is what the encoder gives of its picture.
func (a *album) update(t testing.TB) *Updated {
	t.Helper()
	u := check.Get(Update(t.Context(), a.dir, a.o))(t)
	t.Cleanup(func() { u.Close() })
	a.verify(t, u.names)
	return u
}

// verify compares the gallery with the pictures that it should have.
func (a *album) verify(t testing.TB, want []string) {
	t.Helper()
	g := check.Get(gallery.Open(a.o.Dir))(t)
	defer g.Close()
	model := check.Get(convert.Open(g.Meta.Model, a.o.Open))(t)
	defer model.Close()
	enc := check.Get(embed.NewEncoder(model))(t)
	var got []string
	for i := range g.Rows(gallery.Image) {
		item := check.Get(g.Item(gallery.Image, i))(t)
		got = append(got, item.Name)
		path := check.Get(g.ImageFile(i))(t)
		x := check.Get(enc.Images(t.Context(), 1, func(int) (*transform.Image, error) { return images.DecodeFile(path, 0) }))(t)
		row := check.Get(g.Row(gallery.Image, i))(t)
		for c, v := range x {
			if math.Abs(float64(v-row[c])) > 1e-6 {
				t.Fatalf("row %d is not that of %s: %v, want %v", i, item.Name, row, x)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the gallery has %v, want %v", got, want)
	}
}

// has compares the names of an update in any order, and what it did.
func (a *album) has(t testing.TB, u *Updated, did string, names ...string) {
	t.Helper()
	got := slices.Sorted(slices.Values(u.names))
	slices.Sort(names)
	if s := fmt.Sprintf("%d encoded, %d moved, %d touched, %d removed", u.Encoded, u.Moved, u.Touched, u.Removed); !slices.Equal(got, names) || s != did || u.Images != len(names) {
		t.Fatalf("%v, %s, %d images, want %v, %s", got, s, u.Images, names, did)
	}
}

// TestUpdate: what is new or changed is encoded, and nothing else.
func TestUpdate(t *testing.T) {
	a := newAlbum(t, 5)
	settle(t)
	all := []string{"p00.png", "p01.png", "p02.png", "p03.png", "p04.png"}
	a.has(t, a.update(t), "5 encoded, 0 moved, 0 touched, 0 removed", all...)
	if list := check.Get(os.ReadDir(a.dir))(t); len(list) != 5 {
		t.Errorf("the folder has %v", list)
	}
	a.has(t, a.update(t), "0 encoded, 0 moved, 0 touched, 0 removed", all...)

	now = time.Now // files are too new for their times to prove anything
	later := time.Now().Add(-time.Minute)
	check.OK(t, os.Chtimes(a.at("p00.png"), later, later)) // touched
	check.OK(t, os.MkdirAll(a.at("below"), 0o777))
	check.OK(t, os.Rename(a.at("p01.png"), a.at("below/moved.png")))
	check.OK(t, os.Remove(a.at("p02.png")))
	filetest.Write(t, a.at("copy.png"), filetest.Read(t, a.at("p03.png")))
	picture(t, a.at("p04.png"), 44) // another picture under the same name
	picture(t, a.at("new.png"), 45)
	u := a.update(t)
	names := []string{"p00.png", "below/moved.png", "p03.png", "copy.png", "p04.png", "new.png"}
	a.has(t, u, "2 encoded, 2 moved, 1 touched, 2 removed", names...)
	settle(t)
	u = a.update(t) // which reads what was too new, and does not encode it
	a.has(t, u, "0 encoded, 0 moved, 5 touched, 0 removed", names...)
	a.has(t, a.update(t), "0 encoded, 0 moved, 0 touched, 0 removed", names...)
}

// TestSameTimes: a file with other bytes under the size and times of before is another picture.
func TestSameTimes(t *testing.T) {
	a := newAlbum(t, 2)
	settle(t)
	a.update(t)
	st := check.Get(os.Stat(a.at("p00.png")))(t)
	b := filetest.Read(t, a.at("p00.png"))
	other := slices.Clone(filetest.Read(t, a.at("p01.png")))
	filetest.Write(t, a.at("p00.png"), append(other[:min(len(other), len(b))], make([]byte, max(0, len(b)-len(other)))...))
	check.OK(t, os.Chtimes(a.at("p00.png"), st.ModTime(), st.ModTime()))
	u := check.Get(Update(t.Context(), a.dir, a.o))(t)
	defer u.Close()
	if u.Encoded+u.Moved+len(readUnreadable(a.o.Dir)) == 0 {
		t.Errorf("%+v: nothing was seen", u.Result)
	}
}

// TestUnreadable: what cannot be read is counted, and not tried again before it changes.
func TestUnreadable(t *testing.T) {
	a := newAlbum(t, 2)
	filetest.Write(t, a.at("bad.png"), "no picture at all")
	filetest.Write(t, a.at("notes.txt"), "text")
	settle(t)
	u := a.update(t)
	a.has(t, u, "2 encoded, 0 moved, 0 touched, 0 removed", "p00.png", "p01.png")
	if s := u.Account.String(); !strings.Contains(s, "it cannot be read: 1 (bad.png: ") || !strings.Contains(s, "no image by its name: 1 (notes.txt)") {
		t.Error(s)
	}
	if m := check.Get(gallery.ReadManifest(a.o.Dir))(t); m.LeftOut != 1 || !m.Complete {
		t.Errorf("%+v", m)
	}
	u = a.update(t)
	if s := u.Account.String(); u.Encoded != 0 || !strings.Contains(s, "it cannot be read: 1") {
		t.Errorf("%+v, %s", u.Result, s)
	}
	picture(t, a.at("bad.png"), 7)
	a.has(t, a.update(t), "1 encoded, 0 moved, 0 touched, 0 removed", "p00.png", "p01.png", "bad.png")
	picture(t, a.at("p01.png"), 8)
	filetest.Write(t, a.at("p00.png"), "broken")
	a.has(t, a.update(t), "1 encoded, 0 moved, 0 touched, 2 removed", "p01.png", "bad.png")
}

// TestLinks: linked folders are read once, whatever loops there are, and a folder that cannot be read keeps its rows.
func TestLinks(t *testing.T) {
	a := newAlbum(t, 1)
	far := t.TempDir()
	picture(t, filepath.Join(far, "far.png"), 9)
	check.OK(t, os.Symlink(far, a.at("link")))
	check.OK(t, os.Symlink(a.dir, filepath.Join(far, "loop")))
	picture(t, a.at("sub/s.png"), 10)
	settle(t)
	u := a.update(t)
	a.has(t, u, "3 encoded, 0 moved, 0 touched, 0 removed", "p00.png", "sub/s.png", "link/far.png")
	if l := u.Linked(); len(l) != 1 || filepath.Base(l[0]) != filepath.Base(far) {
		t.Errorf("linked: %v", l)
	}
	check.OK(t, os.Chmod(a.at("sub"), 0))
	defer os.Chmod(a.at("sub"), 0o777)
	if _, err := os.ReadDir(a.at("sub")); err == nil {
		t.Skip("this user reads everything")
	}
	u = check.Get(Update(t.Context(), a.dir, a.o))(t)
	defer u.Close()
	if u.Images != 3 || u.Removed != 0 || !strings.Contains(u.Account.String(), "a folder that cannot be read: 1 (sub)") {
		t.Errorf("%+v, %v", u.Result, u.Account)
	}
}

// TestOtherModel: rows of another model, or of another score, are encoded anew, with a note.
func TestOtherModel(t *testing.T) {
	a := newAlbum(t, 3)
	settle(t)
	a.update(t)
	was := a.o.Model
	a.o.Model = weightstest.Stored(t, "vit")
	u := a.update(t)
	a.has(t, u, "3 encoded, 0 moved, 0 touched, 0 removed", "p00.png", "p01.png", "p02.png")
	if s := a.log.String(); !strings.Contains(s, "the gallery was made with "+was) || strings.Count(s, "encoded anew") != 1 {
		t.Error(s)
	}
	a.o.Model = "" // that of the gallery
	a.has(t, a.update(t), "0 encoded, 0 moved, 0 touched, 0 removed", "p00.png", "p01.png", "p02.png")
	a.o.Model = filepath.Join(t.TempDir(), "moved")
	check.OK(t, os.CopyFS(a.o.Model, os.DirFS(u.Model)))
	check.OK(t, os.RemoveAll(u.Model))
	a.has(t, a.update(t), "0 encoded, 0 moved, 0 touched, 0 removed", "p00.png", "p01.png", "p02.png")
	if m := check.Get(gallery.ReadManifest(a.o.Dir))(t); m.Model != a.o.Model || !m.Complete {
		t.Errorf("the gallery names %s", m.Model)
	}
	check.OK(t, os.RemoveAll(a.o.Model))
	a.o.Model = ""
	_, err := Update(t.Context(), a.dir, a.o)
	check.Error(t, err, "which is not there: name a model with --model")
}

// TestRefused: what cannot be done is one clear line.
func TestRefused(t *testing.T) {
	a := newAlbum(t, 2)
	settle(t)
	with := func(change func(o *Options)) error {
		o := a.o
		change(&o)
		u, err := Update(t.Context(), a.dir, o)
		if err == nil {
			u.Close()
		}
		return err
	}
	check.Error(t, with(func(o *Options) { o.Model = "" }), "name a model with --model")
	check.Error(t, with(func(o *Options) { o.Model = "nowhere" }), "nowhere")
	check.Error(t, with(func(o *Options) { o.Model = weightstest.Stored(t, "bert") }), `"text_encoder" has no images`)
	taken := t.TempDir()
	filetest.Write(t, filepath.Join(taken, "file"), "")
	check.Error(t, with(func(o *Options) { o.Dir = filepath.Join(taken, "file", "below") }), "name another folder with --gallery")

	check.OK(t, with(func(*Options) {}))
	l := check.Get(files.Lock(a.o.Dir, nil))(t)
	check.OK(t, with(func(*Options) {})) // there is nothing to write
	picture(t, a.at("new.png"), 20)
	check.Error(t, with(func(*Options) {}), "are being encoded by another command", "wait for it, or stop it")
	check.OK(t, l.Release())

	gone := a.dir + "-elsewhere"
	check.OK(t, os.Rename(a.dir, gone))
	check.Error(t, with(func(*Options) {}), "the folder of pictures: ", "no such file")
	check.OK(t, os.Mkdir(a.dir, 0o777)) // as of a drive that is not there
	check.Error(t, with(func(*Options) {}), "has no pictures now", "it stays as it is")
	if m := check.Get(gallery.ReadManifest(a.o.Dir))(t); m.Rows != 2 {
		t.Errorf("%d rows are left", m.Rows)
	}
	fresh := newAlbum(t, 0)
	_, err := Update(t.Context(), fresh.dir, fresh.o)
	check.Error(t, err, "has no pictures (")
	filetest.Write(t, fresh.at("bad.png"), "none")
	_, err = Update(t.Context(), fresh.dir, fresh.o)
	check.Error(t, err, "none of the pictures of", "bad.png")
	fresh.o.Dir = a.o.Dir
	_, err = Update(t.Context(), fresh.dir, fresh.o)
	check.Error(t, err, "holds the gallery of another folder")
}

// TestDamage: a shard that was cut is encoded anew.
func TestDamage(t *testing.T) {
	a := newAlbum(t, 3)
	settle(t)
	a.update(t)
	m := check.Get(gallery.ReadManifest(a.o.Dir))(t)
	path := filepath.Join(a.o.Dir, m.Shards[0].Features)
	b := filetest.Read(t, path)
	check.OK(t, os.WriteFile(path, b[:len(b)-3], 0o666))
	a.has(t, a.update(t), "3 encoded, 0 moved, 0 touched, 0 removed", "p00.png", "p01.png", "p02.png")
	if s := a.log.String(); !strings.Contains(s, "its pictures are encoded anew") {
		t.Error(s)
	}
}

// TestInterrupted: what is encoded when ctx ends is kept.
func TestInterrupted(t *testing.T) {
	a := newAlbum(t, 9)
	settle(t)
	ctx, stop := context.WithCancel(t.Context())
	a.o.Progress = func(phase string, done, _ int) {
		if phase == "encoding images" && done >= 4 {
			stop()
		}
	}
	if _, err := Update(ctx, a.dir, a.o); !errors.Is(err, train.ErrInterrupted) {
		t.Fatal(err)
	}
	check.Fails(gallery.Open(a.o.Dir))(t, "is not complete")
	m := check.Get(gallery.ReadManifest(a.o.Dir))(t)
	if m.Rows < 4 || m.Rows > 8 {
		t.Fatalf("%d rows are kept", m.Rows)
	}
	a.o.Progress = nil
	if u := a.update(t); u.Encoded != 9-m.Rows || u.Images != 9 {
		t.Errorf("%+v after %d rows", u.Result, m.Rows)
	}
}

// TestMerge: however many updates there were, there are few shards, and no file is left over.
func TestMerge(t *testing.T) {
	a := newAlbum(t, 1)
	settle(t)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("p%02d.png", i))
		picture(t, a.at(names[i]), i)
		u := check.Get(Update(t.Context(), a.dir, a.o))(t)
		check.OK(t, u.Close())
	}
	a.verify(t, names)
	if m := check.Get(gallery.ReadManifest(a.o.Dir))(t); len(m.Shards) > 5 {
		t.Errorf("%d shards", len(m.Shards))
	} else if l := check.Get(filepath.Glob(filepath.Join(a.o.Dir, "images-*")))(t); len(l) != 2*len(m.Shards) {
		t.Errorf("%v of %d shards", l, len(m.Shards))
	}
}

// TestTerms are queries and what they mean.
func TestTerms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.png")
	picture(t, file, 1)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "null"},
		{[]string{"a dog"}, `[{"text":"a dog"}]`},
		{[]string{"a", "dog - or not"}, `[{"text":"a dog - or not"}]`},
		{[]string{"a", "dog", "+", file, "-", "green", "grass"},
			fmt.Sprintf(`[{"text":"a dog"},{"image":%q},{"minus":true,"text":"green grass"}]`, file)},
		{[]string{file, "at night"}, fmt.Sprintf(`[{"image":%q},{"text":"at night"}]`, file)},
	} {
		if b := check.Get(json.Marshal(check.Get(Terms(c.args...))(t)))(t); string(b) != c.want {
			t.Errorf("%q: %s, want %s", c.args, b, c.want)
		}
	}
	for _, c := range [][2]string{{"-,a", "begins with what is looked for"}, {"a,+", "has nothing behind it"},
		{"a,+,-,b", "one of them"}, {"nowhere.png", "there is no picture"}, {" ", "is empty"}} {
		check.Fails(Terms(strings.Split(c[0], ",")...))(t, c[1])
	}
}

// TestAsk: scores are those of a plain loop over the rows.
func TestAsk(t *testing.T) {
	a := newAlbum(t, 6)
	settle(t)
	u := a.update(t)
	model := check.Get(convert.Open(a.o.Model, a.o.Open))(t)
	defer model.Close()
	enc := check.Get(embed.NewEncoder(model))(t)
	rows := check.Get(enc.Images(t.Context(), 6, func(i int) (*transform.Image, error) {
		return images.DecodeFile(a.at(u.names[i]), 0)
	}))(t)
	text := check.Get(enc.Texts(t.Context(), []string{"a red square", "blue circle"}))(t)
	dim := enc.Dim()
	dots := func(x []float32) []float64 {
		list := make([]float64, 6)
		for i := range list {
			for c := range dim {
				list[i] += float64(x[c]) * float64(rows[i*dim+c])
			}
		}
		return list
	}
	compare := func(terms []Term, limit int, want []float64, skip int) *Answer {
		t.Helper()
		got := check.Get(u.Ask(t.Context(), terms, limit))(t)
		last := math.Inf(1)
		for i, h := range got.Hits {
			k := slices.Index(u.names, h.Name)
			if h.Rank != i+1 || k == skip || math.Abs(h.Score-want[k]) > 1e-5 || h.Score > last || h.Path != a.at(h.Name) {
				t.Errorf("%+v, want %v", got.Hits, want)
			}
			last = h.Score
		}
		return got
	}
	red, blue := dots(text[:dim]), dots(text[dim:])
	got := compare([]Term{{Text: "a red square"}}, 4, red, -1)
	if c := got.Chance; len(got.Hits) != 4 || c == nil || c.Texts != len(nothingToSee) || c.P != float64(c.Above+1)/float64(c.Texts+1) || c.Better() != (c.P <= 0.05) {
		t.Errorf("%+v, %+v", got, c)
	}
	if got = compare([]Term{{Image: a.at(u.names[2])}}, 10, dots(rows[2*dim:]), 2); len(got.Hits) != 5 || got.Chance != nil {
		t.Errorf("%+v", got)
	}
	sum := make([]float64, 6)
	for _, x := range []struct {
		s    []float64
		sign float64
	}{{red, 1}, {dots(rows[2*dim:]), 1}, {blue, -1}} {
		mean, square := 0.0, 0.0
		for _, v := range x.s {
			mean += v / 6
		}
		for _, v := range x.s {
			square += (v - mean) * (v - mean) / 6
		}
		for i, v := range x.s {
			sum[i] += x.sign * (v - mean) / math.Sqrt(square)
		}
	}
	got = compare([]Term{{Text: "a red square"}, {Image: a.at(u.names[2])}, {Minus: true, Text: "blue circle"}}, 10, sum, 2)
	if got.Score != Standardised || len(got.Words) != 0 {
		t.Errorf("%+v", got)
	}
	got = check.Get(u.Ask(t.Context(), []Term{{Text: "a purple square"}, {Minus: true, Text: "zebra"}}, 1))(t)
	if b := check.Get(json.Marshal(got.Words))(t); string(b) != `[{"text":"a purple square","words":["purple"]},{"text":"zebra","words":["zebra"]}]` {
		t.Errorf("%s", b)
	}
	check.Fails(u.Ask(t.Context(), nil, 1))(t, "at least one hit")
}

// TestChanceKept: the texts that no picture shows are encoded once for a model.
func TestChanceKept(t *testing.T) {
	a := newAlbum(t, 3)
	settle(t)
	ask := func() *Chance {
		t.Helper()
		u := check.Get(Update(t.Context(), a.dir, a.o))(t)
		defer u.Close()
		return check.Get(u.Ask(t.Context(), []Term{{Text: "red"}}, 1))(t).Chance
	}
	first := ask()
	path := filepath.Join(a.o.Dir, chanceFile)
	was := filetest.Read(t, path)
	if again := ask(); *again != *first {
		t.Errorf("%+v, then %+v", first, again)
	}
	check.OK(t, os.WriteFile(path, was[:len(was)-1], 0o666))
	if again := ask(); *again != *first || !slices.Equal(filetest.Read(t, path), was) {
		t.Errorf("damaged: %+v, then %+v", first, again)
	}
	if x := readChance(path, "another", 6); x != nil {
		t.Error("that of another model is read")
	}
}

// TestImageEncoder: a model of images alone is asked by pictures.
func TestImageEncoder(t *testing.T) {
	a := newAlbum(t, 4)
	a.o.Model = weightstest.Stored(t, "vit")
	settle(t)
	u := a.update(t)
	if u.ReadsTexts() {
		t.Error("it reads texts")
	}
	check.Fails(u.Ask(t.Context(), []Term{{Text: "a dog"}}, 1))(t, "reads no texts: ask by a picture")
	got := check.Get(u.Ask(t.Context(), []Term{{Image: a.at("p01.png")}}, 9))(t)
	if len(got.Hits) != 3 || slices.ContainsFunc(got.Hits, func(h Hit) bool { return h.Name == "p01.png" }) {
		t.Errorf("%+v", got)
	}
	copied := filepath.Join(t.TempDir(), "p01.png") // not of the folder: its copy there is found
	filetest.Write(t, copied, filetest.Read(t, a.at("p01.png")))
	if got = check.Get(u.Ask(t.Context(), []Term{{Image: copied}}, 1))(t); got.Hits[0].Name != "p01.png" || got.Hits[0].Score < 0.9999 {
		t.Errorf("%+v", got)
	}
}

// TestPlace: folders of one name have places of their own, and links lead to one.
func TestPlace(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "/data")
	base := check.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	one, two, link := filepath.Join(base, "a", "pics"), filepath.Join(base, "b", "pics"), filepath.Join(base, "link")
	check.OK(t, errors.Join(os.MkdirAll(one, 0o777), os.MkdirAll(two, 0o777), os.Symlink(one, link)))
	p, q, r := check.Get(Place(one))(t), check.Get(Place(two))(t), check.Get(Place(link))(t)
	if p == q || p != r || !strings.HasPrefix(p, "/data/geoalign/photos/pics-") {
		t.Error(p, q, r)
	}
	check.Fails(Place(filepath.Join(base, "none")))(t, "the folder of pictures")
}
