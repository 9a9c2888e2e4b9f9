package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

// tree makes the named files below a new folder: images by their extension, folders
// where the name ends in a slash.
func tree(t testing.TB, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for i, name := range names {
		dir, file := filepath.Split(filepath.Join(root, filepath.FromSlash(name)) + map[bool]string{true: "/", false: ""}[strings.HasSuffix(name, "/")])
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if file != "" {
			writeImage(t, dir, file, uint8(i))
		}
	}
	return root
}

// namesIn are the paths of a data set below root, with labels.
func namesIn(t *testing.T, f *Files, root string) []string {
	t.Helper()
	var all []string
	for i := range f.Len() {
		rel, err := filepath.Rel(root, f.Name(i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(filepath.ToSlash(rel), " ", f.Label(i)))
	}
	return all
}

func TestLoadFolderBySplit(t *testing.T) {
	root := tree(t, "train/tabby_cat/2.png", "train/tabby_cat/10.PNG", "train/tabby_cat/more/1.jpeg", "train/ant/x.webp",
		"train/ant/notes.txt", "train/.hidden/y.png", "train/ant/.thumb.png", "val/tabby_cat/3.png", "meta/z.png", "readme.png")
	f, err := LoadFolder(root, "train", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"train/ant/x.webp 0", "train/tabby_cat/10.PNG 1", "train/tabby_cat/2.png 1", "train/tabby_cat/more/1.jpeg 1"}
	if got := namesIn(t, f, root); !slices.Equal(got, want) {
		t.Errorf("train: %q, want %q", got, want)
	}
	if c, ok := f.Labels(); !ok || !slices.Equal(c, []string{"ant", "tabby_cat"}) {
		t.Errorf("classes %q", c)
	}
	if c := f.Captions(2); !slices.Equal(c, []string{"tabby cat"}) || f.ImageID(2) != 1 {
		t.Errorf("captions %q, id %d", c, f.ImageID(2))
	}
	// A split that lacks a class numbers the others as train does.
	if f, err = LoadFolder(root, "val", Options{}); err != nil {
		t.Fatal(err)
	}
	if got := namesIn(t, f, root); !slices.Equal(got, []string{"val/tabby_cat/3.png 1"}) {
		t.Errorf("val: %q", got)
	}
	if s, err := FolderSplits(root); err != nil || !slices.Equal(s, []string{"train", "val"}) {
		t.Errorf("splits %q (%v)", s, err)
	}
	if _, err := LoadFolder(root, "test", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no test folder: %v", err)
	}
	// Without train the classes are the split's own.
	root = tree(t, "test/b/1.png", "test/a/1.png")
	if f, err = LoadFolder(root, "test", Options{}); err != nil || !slices.Equal(namesIn(t, f, root), []string{"test/a/1.png 0", "test/b/1.png 1"}) {
		t.Errorf("test alone: %v", err)
	}
}

func TestLoadFolderByHash(t *testing.T) {
	var list []string
	for i := range 200 {
		list = append(list, fmt.Sprintf("train/%03d.png", i), fmt.Sprintf("car/%03d.png", i)) // a class may be called train
	}
	root := tree(t, list...)
	seen := map[string]string{}
	for _, split := range splits {
		f, err := LoadFolder(root, split, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c, _ := f.Labels(); !slices.Equal(c, []string{"car", "train"}) {
			t.Errorf("%s: classes %q", split, c)
		}
		for _, n := range namesIn(t, f, root) {
			if seen[n] != "" {
				t.Errorf("%s is in %s and %s", n, seen[n], split)
			}
			seen[n] = split
		}
		share := map[string]int{"train": 320, "val": 40, "test": 40}[split]
		if f.Len() < share-25 || f.Len() > share+25 { // 4 deviations of a binomial
			t.Errorf("%s has %d of 400 images, want about %d", split, f.Len(), share)
		}
	}
	if len(seen) != 400 {
		t.Errorf("%d of 400 images are in a split", len(seen))
	}
	// int(hashlib.sha256(name).hexdigest()[:16], 16) % 10 in Python.
	for name, want := range folderSplits {
		class, file, _ := strings.Cut(name, "/")
		if got := FolderSplit(class, file); got != want {
			t.Errorf("%s is in %s, want %s", name, got, want)
		}
	}
}

func TestLoadFolderFailures(t *testing.T) {
	for _, c := range []struct {
		tree  []string
		split string
		want  string
	}{
		{[]string{"a/1.png", "b/"}, "train", "b has no image (JPEG, PNG, WebP, GIF, BMP or TIFF)"},
		{[]string{"a/1.png", "b/notes.txt"}, "train", "b has no image"},
		{[]string{"a/1.png"}, "train", "need at least 2 classes (got 1 folders)"},
		{[]string{"1.png"}, "train", "need at least 2 classes (got 0 folders)"},
		{[]string{"train/a/1.png"}, "train", "need at least 2 classes (got 1 folders)"},
		{[]string{"train/a/1.png", "train/b/1.png", "val/c/1.png"}, "val", `class "c" is not in`},
		{[]string{"a/1.png", "b/1.png"}, "dev", `no split "dev": use train, val or test`},
		{[]string{"a/1.png", "(!)/1.png"}, "train", `nothing of the class name "(!)" is left`},
		{[]string{"cat/1.png", "dog/1.png"}, "val", "no image is in the val split"},
	} {
		_, err := LoadFolder(tree(t, c.tree...), c.split, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.tree, err, c.want)
		}
	}
	if _, err := LoadFolder(filepath.Join(t.TempDir(), "none"), "train", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := FolderSplits(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// An image that cannot be read is a bad sample like any other, and labels follow the
// rows.
func TestFolderBadImages(t *testing.T) {
	var list []string
	for i := range 20 {
		list = append(list, fmt.Sprintf("train/a/%d.png", i), fmt.Sprintf("train/b/%d.png", i))
	}
	root := tree(t, list...)
	filetest.Write(t, filepath.Join(root, "train/a/7.png"), []byte("not an image"))
	ds, err := LoadFolder(root, "train", Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := NewTrain(ds, TrainConfig{Transform: transform.Train{Size: 8}})
	if err != nil {
		t.Fatal(err)
	}
	l := newLoader(t, tr, LoaderConfig{BatchSize: 13, MaxBadShare: 0.2})
	for range 3 { // 39 good samples are an epoch
		b, err := l.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for row, c := range b.Counters {
			caption, id, err := tr.Describe(c)
			want := slices.Index([]string{"a", "b"}, caption)
			if err != nil || int(b.Ints(batch.Labels)[row]) != want || id != int64(want) || tr.dense[id] != b.Ints(batch.IDs)[row] {
				t.Errorf("caption %q with label %d and id %d (%v)", caption, b.Ints(batch.Labels)[row], id, err)
			}
		}
		l.Recycle(b)
	}
	if bad, read, ex := l.Bad(); bad != 1 || read < 39 || !strings.Contains(ex[0].Err.Error(), "7.png") {
		t.Errorf("%d of %d bad: %v", bad, read, ex)
	}
	// The captions repeat, but each image is a right answer for the others of its class.
	found, err := Check(context.Background(), ds, CheckConfig{})
	if err != nil || len(found) != 0 {
		t.Errorf("%v, %v: want nothing", found, err)
	}
}

func TestFolderCifar(t *testing.T) {
	root := "../../shared/data/cifar10"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no cifar10 beside the repository")
	}
	total := 0
	for _, split := range splits {
		ds, err := LoadFolder(root, split, Options{})
		if err != nil {
			t.Fatal(err)
		}
		classes, _ := ds.Labels()
		if len(classes) != 10 || classes[0] != "airplane" || classes[9] != "truck" {
			t.Errorf("classes %q", classes)
		}
		total += ds.Len()
		e := evalOf(t, ds, EvalConfig{ImageSize: 32})
		count := make([]int, 10)
		dst := make([]float32, 3*32*32)
		for i := range e.NumImages() {
			count[e.Label(i)]++
			if e.Text(e.ImageTexts(i)[0]) != classes[e.Label(i)] {
				t.Errorf("%s is a %q", e.ImageName(i), e.Text(e.ImageTexts(i)[0]))
			}
		}
		if err := e.LoadImage(0, dst); err != nil {
			t.Error(err)
		}
		if slices.Min(count) == 0 {
			t.Errorf("%s: images of the classes %v", split, count)
		}
		t.Logf("%s: %d images, %v of the classes", split, ds.Len(), count)
	}
	if total != 2000 {
		t.Errorf("%d of 2000 images are in a split", total)
	}
}

func FuzzFolderSplit(f *testing.F) {
	f.Add("cat", "1.jpg")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, class, name string) {
		defer budgettest.Within(t, len(class)+len(name))()
		s := FolderSplit(class, name)
		if !slices.Contains(splits, s) || s != FolderSplit(class, name) {
			t.Errorf("%q/%q is in %q", class, name, s)
		}
	})
}

// folderSplits are places of images by the rule of FolderSplit, computed in Python.
var folderSplits = map[string]string{
	"cat/1.jpg":         "train",
	"cat/2.jpg":         "train",
	"dog/1.jpg":         "train",
	"dog/sub/9.png":     "train",
	"airplane/0007.jpg": "train",
	"truck/0199.jpg":    "test",
	"cat/4.jpg":         "train",
	"cat/13.jpg":        "test",
	"cat/0.jpg":         "test",
	"cat/7.jpg":         "val",
	"cat/10.jpg":        "test",
}
