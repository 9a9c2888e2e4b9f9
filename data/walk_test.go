package data

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/images"
)

// link makes a link at name, both below dir.
func link(t *testing.T, dir, to, name string) {
	t.Helper()
	if err := os.Symlink(filepath.Join(dir, to), filepath.Join(dir, name)); err != nil {
		t.Skipf("no links here: %v", err)
	}
}

// found are the images below a folder.
func found(t *testing.T, dir string, a *account.Account) (list []string) {
	t.Helper()
	for name, err := range images.Below(dir, a) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, name)
	}
	return list
}

// Links to folders are followed, each folder is read once, and loops end. What is not an image by its name is counted.
func TestImagesBelowLinks(t *testing.T) {
	root := tree(t, "in/a.jpg", "in/deep/b.PNG", "in/notes.txt", "in/c.avif", "in/d.HEIC", "in/e.psd", "in/.hidden/f.png", "out/g.webp", "out/sub/h.jpg", "out/sub/i.jxl")
	in := filepath.Join(root, "in")
	link(t, root, "out", "in/0-elsewhere") // comes first by its name, and is read last
	link(t, root, "out/sub", "in/deep/again")
	link(t, root, "in", "in/deep/loop")
	link(t, root, "in/loop", "in/loop") // to itself: no file
	link(t, root, "out/g.webp", "in/z.webp")
	link(t, root, "nowhere", "in/gone.jpg")
	a := account.New()
	want := []string{"a.jpg", "deep/b.PNG", "gone.jpg", "z.webp", "0-elsewhere/g.webp", "0-elsewhere/sub/h.jpg"}
	got := found(t, in, a)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	u := a.Units[0]
	if u.Used != len(want) || len(a.Units) != 1 || u.Met() != len(want)+8 {
		t.Errorf("%s", a)
	}
	for _, part := range []string{"no image by its name: 2 (loop, ...)", "a link to a folder that is read under another name: 2 (deep/again, ...)",
		"not understood: a kind of image that is not read (AVIF): 1 (c.avif), a kind of image that is not read (HEIC): 1 (d.HEIC), a kind of image that is not read (Photoshop): 1 (e.psd), a kind of image that is not read (JPEG XL): 1 (0-elsewhere/sub/i.jxl)"} {
		if !strings.Contains(a.String(), part) {
			t.Errorf("%s\nlacks %s", a, part)
		}
	}
	if got := found(t, in, nil); !slices.Equal(got, want) {
		t.Errorf("without an account: %q", got)
	}
	for name, err := range images.Below(in, nil) { // that stops early
		if name != "a.jpg" || err != nil {
			t.Error(name, err)
		}
		break
	}
}

// Folders of classes are read through links too, and count what they leave out.
func TestFolderLinks(t *testing.T) {
	root := tree(t, "d/train/cat/1.png", "d/train/dog/1.png", "d/train/dog/2.jp2", "more/2.png", "more/deep/3.png", "owls/9.jpg")
	link(t, root, "more", "d/train/cat/more")
	link(t, root, "owls", "d/train/owl")
	f, err := LoadFolder(filepath.Join(root, "d"), "train", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cat/1.png 0", "cat/more/2.png 0", "cat/more/deep/3.png 0", "dog/1.png 1", "owl/9.jpg 2"}
	if got := namesIn(t, f, filepath.Join(root, "d/train")); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := f.Account().String(); !strings.HasPrefix(got, "6 files: 5 used; not understood: a kind of image that is not read (JPEG 2000): 1 (2.jp2); 5 images: 5 used; 5 captions: 5 used") {
		t.Error(got)
	}
	// A folder that is not divided counts the images of the split alone.
	flat := tree(t, "a/1.png", "a/2.png", "a/3.png", "a/4.png", "b/1.png", "b/2.png", "b/3.png", "b/4.png")
	if f, err = LoadFolder(flat, "train", Options{}); err != nil || f.Account().Units[0].Used != f.Len() || !f.Account().Whole() {
		t.Errorf("%s, %v", f.Account(), err)
	}
}

// A folder that a link led to before is not read again below another link.
func TestImagesBelowTwice(t *testing.T) {
	root := tree(t, "in/a.jpg", "out/g.webp", "out/sub/h.jpg")
	link(t, root, "out/sub", "in/0")
	link(t, root, "out", "in/1")
	a := account.New()
	if got := found(t, filepath.Join(root, "in"), a); !slices.Equal(got, []string{"a.jpg", "0/h.jpg", "1/g.webp"}) {
		t.Errorf("%q", got)
	}
	if got := a.String(); got != "4 files: 3 used; left out: a folder that is read under another name: 1 (1/sub)" {
		t.Error(got)
	}
}
