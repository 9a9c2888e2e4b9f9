package regions

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// Images of the tests have up to three regions of two features. Image i has 1 + i%3 regions; region k of it the
// features 10*i+k+1 and 1, and the box 0, 0, (k+1)/4, 1/2.
const (
	testMost  = 3
	testWidth = 2
)

func testRegions(i int) (features, boxes []float32) {
	features, boxes = make([]float32, testMost*testWidth), make([]float32, testMost*4)
	for k := range 1 + i%3 {
		features[2*k], features[2*k+1] = float32(10*i+k+1), 1
		copy(boxes[4*k:], []float32{0, 0, float32(k+1) / 4, .5})
	}
	return features, boxes
}

// folder is files to be written.
type folder struct {
	t   *testing.T
	dir string
}

func newFolder(t *testing.T) folder { return folder{t, t.TempDir()} }

func (f folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f folder) text(name string, lines ...string) string {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		f.t.Fatal(err)
	}
	return f.path(name)
}

// array writes the regions of the given images as .npy, and their boxes.
func (f folder) array(name string, images ...int) (file, boxes string) {
	f.t.Helper()
	file, boxes = f.path(name+"_ims.npy"), f.path(name+"_boxes.npy")
	write := func(path string, width int, of func(i int) []float32) {
		err := features.WriteArray(path, []int{testMost, width}, func(emit func([]float32) error) error {
			for _, i := range images {
				if err := emit(of(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	write(file, testWidth, func(i int) []float32 { x, _ := testRegions(i); return x })
	write(boxes, 4, func(i int) []float32 { _, b := testRegions(i); return b })
	return file, boxes
}

// tensors writes a safetensors file.
func (f folder) tensors(name string, tensors ...safetensors.Tensor) string {
	f.t.Helper()
	var b bytes.Buffer
	if err := safetensors.Write(&b, tensors, nil); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.path(name), b.Bytes(), 0o644); err != nil {
		f.t.Fatal(err)
	}
	return f.path(name)
}

// tableLineOf is the line of an image in a table, whose picture has 200 x 100 pixels.
func tableLineOf(i int) string {
	x, boxes := testRegions(i)
	n := 1 + i%3
	for k := range boxes {
		boxes[k] *= []float32{200, 100}[k%2]
	}
	encode := func(x []float32) string {
		var b []byte
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	return fmt.Sprintf("%d\t200\t100\t%d\t%s\t%s", 100+i, n, encode(boxes[:4*n]), encode(x[:2*n]))
}

// captionsOf is n captions of each image.
func captionsOf(n int, images ...int) (lines []string) {
	for _, i := range images {
		for c := range n {
			lines = append(lines, fmt.Sprintf("picture %d said %d", i, c))
		}
	}
	return lines
}

// check compares row r of the features with image i.
func checkRead(t *testing.T, f Features, r, i int) {
	t.Helper()
	x, boxes := make([]float32, testMost*testWidth), make([]float32, testMost*4)
	n, err := f.Read(r, x, boxes)
	wantX, wantBoxes := testRegions(i)
	if !f.Boxed() {
		clear(wantBoxes)
	}
	if err != nil || n != 1+i%3 || !slices.Equal(x, wantX) || !slices.Equal(boxes, wantBoxes) {
		t.Errorf("row %d: %d regions %v with boxes %v (%v), want image %d: %v %v", r, n, x, boxes, err, i, wantX, wantBoxes)
	}
	// With room for one and for more regions than there are.
	one, many := make([]float32, testWidth), make([]float32, 5*testWidth)
	if n, err := f.Read(r, one, nil); err != nil || n != 1 || !slices.Equal(one, wantX[:2]) {
		t.Errorf("row %d: the first of the regions is %v (%d, %v)", r, one, n, err)
	}
	many[9] = 7
	if n, err := f.Read(r, many, make([]float32, 20)); err != nil || n != 1+i%3 || !slices.Equal(many, append(wantX, 0, 0, 0, 0)) {
		t.Errorf("row %d: with much room %v (%d, %v)", r, many, n, err)
	}
}

// TestFeatures: every form of file gives the same regions and boxes.
func TestFeatures(t *testing.T) {
	f := newFolder(t)
	npy, boxes := f.array("train", 0, 1, 2, 3, 4)
	var all, places []float32
	var each []safetensors.Tensor
	var lines []string
	for i := range 5 {
		x, b := testRegions(i)
		n := 1 + i%3
		all, places = append(all, x...), append(places, b...)
		each = append(each, safetensors.Tensor{Name: fmt.Sprint(100 + i), Shape: []int{n, 2}, Data: x[:2*n]},
			safetensors.Tensor{Name: fmt.Sprintf("%d/boxes", 100+i), Shape: []int{n, 4}, Data: b[:4*n]})
		lines = append(lines, tableLineOf(i))
	}
	lines = append(lines, lines[0]) // an image twice
	slices.Reverse(each)
	one := []safetensors.Tensor{{Name: "features", Shape: []int{5, 3, 2}, Data: all}, {Name: "boxes", Shape: []int{5, 3, 4}, Data: places}, {Name: "lengths", Shape: []int{5}, Data: []int64{1, 2, 3, 1, 2}}}
	keys := []string{"100", "101", "102", "103", "104"}
	for _, c := range []struct {
		name, path, boxes string
		boxed             bool
		keys              []string
	}{
		{"npy", npy, "", false, nil},
		{"npy with boxes", npy, boxes, true, nil},
		{"safetensors array", f.tensors("one.safetensors", one...), "", true, nil},
		{"safetensors array, boxes elsewhere", f.tensors("plain.safetensors", one[0], one[2]), boxes, true, nil},
		{"tensor per image", f.tensors("each.safetensors", each...), "", true, keys},
		{"table", f.text("all.tsv", lines...), "", true, keys},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, err := OpenFeatures(c.path, "", c.boxes)
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			if x.Len() != 5 || x.Most() != 3 || x.Width() != 2 || x.Boxed() != c.boxed || !slices.Equal(x.Keys(), c.keys) {
				t.Fatalf("%d images of %d regions, width %d, boxed %v, keys %q", x.Len(), x.Most(), x.Width(), x.Boxed(), x.Keys())
			}
			for i := range 5 {
				checkRead(t, x, i, i)
			}
		})
	}
}

// TestFeaturesErrors: each names the file, the place and what to do.
func TestFeaturesErrors(t *testing.T) {
	f := newFolder(t)
	npy, boxes := f.array("a", 0, 1, 2)
	_, fewer := f.array("b", 0, 1)
	cut := f.path("cut.npy")
	whole := filetest.Read(t, npy)
	put := func(path string, b []byte) string {
		filetest.Write(t, path, b)
		return path
	}
	put(cut, whole[:len(whole)-4])
	pickled := put(f.path("pickled.npy"), bytes.Replace(whole, []byte("'<f4'"), []byte("'|O' "), 1))
	flat := f.path("flat.npy")
	if err := features.Write(flat, func(emit func([]float32) error) error { return emit([]float32{1, 2}) }); err != nil {
		t.Fatal(err)
	}
	x := safetensors.Tensor{Name: "features", Shape: []int{1, 1, 2}, Data: []float32{1, 2}}
	line := tableLineOf(1)
	for _, c := range []struct{ path, tensor, boxes, want string }{
		{cut, "", "", "it is cut short"},
		{pickled, "", "", "which are pickled and not read"},
		{flat, "", "", "its shape is [1 2]: 3 axes are needed"},
		{npy, "", fewer, "has boxes of the shape [2 3 4]"},
		{npy, "", npy, "give a box of 4 numbers for each region"},
		{f.path("none.npy"), "", "", "none.npy"},
		{f.text("x.h5", "x"), "", "", "must end in .npy"},
		{f.tensors("short.safetensors", x, safetensors.Tensor{Name: "lengths", Shape: []int{2}, Data: []int64{1, 1}}), "", "", "has 2 lengths and 1 images"},
		{f.tensors("long.safetensors", x, safetensors.Tensor{Name: "lengths", Shape: []int{1}, Data: []int64{2}}), "", "", "row 0 has the length 2"},
		{f.tensors("odd.safetensors", safetensors.Tensor{Name: "a", Shape: []int{1, 2}, Data: []float32{1, 2}}, safetensors.Tensor{Name: "b", Shape: []int{1, 1}, Data: []float32{1}}), "", "", `tensor "b" has 1 features for a region`},
		{f.tensors("some.safetensors", safetensors.Tensor{Name: "a", Shape: []int{1, 2}, Data: []float32{1, 2}}, safetensors.Tensor{Name: "b/boxes", Shape: []int{1, 4}, Data: []float32{1, 2, 3, 4}}, safetensors.Tensor{Name: "c/boxes", Shape: []int{1, 4}, Data: []float32{1, 2, 3, 4}}), "", "", "has boxes for 2 of its 1 images"},
		{f.tensors("each.safetensors", safetensors.Tensor{Name: "a", Shape: []int{1, 2}, Data: []float32{1, 2}}), "", boxes, "store the boxes of image NAME beside it"},
		{npy, "x", "", "name no tensor"},
		{f.text("blank.tsv", "", ""), "", "", "no image has a region"},
		{f.text("few.tsv", "1\t2\t3"), "", "", "line 1: it has no 6 columns"},
		{f.text("word.tsv", line, strings.Replace(line, "\t200\t", "\twide\t", 1)), "", "", `line 2: its image_w is "wide"`},
		{f.text("boxes.tsv", line), "", boxes, "has boxes of its own"},
		{f.text("width.tsv", strings.Replace(line, "\t2\t", "\t3\t", 1)), "", "", "line 1, image 101: its features have 16 bytes, which are not rows of 3 regions"},
	} {
		if got, err := OpenFeatures(c.path, c.tensor, c.boxes); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Base(c.path)) {
			t.Errorf("%s: %v %v, want %q", filepath.Base(c.path), got, err, c.want)
		}
	}
}

// TestBadImages: an image that cannot be used is an error of that image alone.
func TestBadImages(t *testing.T) {
	f := newFolder(t)
	bad := func(name string, features, boxes []float32) string {
		return f.tensors(name, safetensors.Tensor{Name: "features", Shape: []int{2, 1, 2}, Data: append([]float32{1, 2}, features...)},
			safetensors.Tensor{Name: "boxes", Shape: []int{2, 1, 4}, Data: append([]float32{0, 0, 1, 1}, boxes...)})
	}
	nan := float32(math.NaN())
	line := tableLineOf(1)
	for _, c := range []struct{ path, want string }{
		{bad("nan.safetensors", []float32{1, nan}, []float32{0, 0, 1, 1}), "row 1 is not finite"},
		{bad("pixels.safetensors", []float32{1, 2}, []float32{0, 0, 20, 10}), "row 1: region 0 has the box [0 0 20 10]: write left, top, right, bottom as shares"},
		{bad("turned.safetensors", []float32{1, 2}, []float32{.5, 0, .2, 1}), "row 1: region 0 has the box"},
		{f.tensors("each.safetensors", safetensors.Tensor{Name: "1", Shape: []int{1, 2}, Data: []float32{1, 2}}, safetensors.Tensor{Name: "2", Shape: []int{1, 2}, Data: []float32{nan, 1}}), "row 1: feature 0 of region 0 is not finite"},
		{f.text("cut.tsv", line, tableLineOf(2)[:60]), "line 2, image 102"},
		{f.text("damaged.tsv", line, strings.TrimRight(tableLineOf(2), "=")[:len(tableLineOf(2))-5]+"!!!!"), "line 2, image 102: its features"},
		{f.text("many.tsv", line, strings.Replace(tableLineOf(2), "\t3\t", "\t2\t", 1)), "line 2, image 102: its features: 24 bytes instead of 16"},
		{f.text("outside.tsv", line, strings.Replace(tableLineOf(2), "\t200\t", "\t20\t", 1)), "row 2: region 0 has the box"},
	} {
		x, err := OpenFeatures(c.path, "", "")
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(c.path), err)
			continue
		}
		feats, boxes := make([]float32, x.Most()*x.Width()), make([]float32, x.Most()*4)
		if _, err := x.Read(0, feats, boxes); err != nil {
			t.Errorf("%s: the good image: %v", filepath.Base(c.path), err)
		}
		if n, err := x.Read(1, feats, boxes); n != 0 || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Base(c.path)) {
			t.Errorf("%s: %d regions, %v, want none and %q", filepath.Base(c.path), n, err, c.want)
		}
		x.Close()
	}
}

// load opens a set.
func load(t *testing.T, c Config) *Set {
	t.Helper()
	s, err := Load(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// first is the first feature of image i of a set: 10*image+1.
func first(t *testing.T, s data.Columned, i int) (feature float32, regions int32) {
	t.Helper()
	b := batch.New(1, s.ImageColumns()...)
	if err := s.FillImage(i, b.Row(0)); err != nil {
		t.Fatal(err)
	}
	return b.Floats(batch.Regions)[0], b.Ints(batch.RegionLengths)[0]
}

// TestLayouts: which captions belong to which image, and its id, in every layout that there is.
func TestLayouts(t *testing.T) {
	f := newFolder(t)
	two, boxes := f.array("two", 3, 4)
	repeated, _ := f.array("repeated", 3, 3, 3, 3, 3, 4, 4, 4, 4, 4)
	single, _ := f.array("single", 3, 4, 5, 6, 7)
	table := f.text("t.tsv", tableLineOf(7), tableLineOf(4), tableLineOf(3), tableLineOf(5))
	five, ones := f.text("five.txt", captionsOf(5, 3, 4)...), f.text("ones.txt", captionsOf(1, 3, 4, 5, 6, 7)...)
	perImage, perCaption := f.text("ids.txt", "103", "104"), f.text("ids10.txt", "103", "103", "103", "103", "103", "104", "104", "104", "104", "104")
	for _, c := range []struct {
		name    string
		cfg     Config
		images  []int // that the rows must be
		ids     []int64
		per     int
		nameOf0 string
	}{
		{"five captions", Config{Features: two, Captions: five}, []int{3, 4}, []int64{0, 1}, 5, "two_ims.npy row 0"},
		{"ids of images", Config{Features: two, Captions: five, IDs: perImage, Boxes: boxes}, []int{3, 4}, []int64{103, 104}, 5, "two_ims.npy row 0"},
		{"ids of captions", Config{Features: two, Captions: five, IDs: perCaption}, []int{3, 4}, []int64{103, 104}, 5, "two_ims.npy row 0"},
		{"ids that are not there", Config{Features: two, Captions: five, IDs: f.path("no.txt")}, []int{3, 4}, []int64{0, 1}, 5, "two_ims.npy row 0"},
		{"repeated, found", Config{Features: repeated, Captions: five}, []int{3, 4}, []int64{0, 1}, 5, "repeated_ims.npy row 0"},
		{"repeated, by ids", Config{Features: repeated, Captions: five, IDs: perCaption}, []int{3, 4}, []int64{103, 104}, 5, "repeated_ims.npy row 0"},
		{"repeated, said", Config{Features: repeated, Captions: five, Repeated: RepeatedYes}, []int{3, 4}, []int64{0, 1}, 5, "repeated_ims.npy row 0"},
		{"repeated, denied", Config{Features: repeated, Captions: five, Repeated: RepeatedNo, IDs: perCaption}, []int{3, 3, 3, 3, 3, 4, 4, 4, 4, 4}, []int64{103, 103, 103, 103, 103, 104, 104, 104, 104, 104}, 1, "repeated_ims.npy row 0"},
		{"one caption", Config{Features: single, Captions: ones}, []int{3, 4, 5, 6, 7}, []int64{0, 1, 2, 3, 4}, 1, "single_ims.npy row 0"},
		{"the first captions", Config{Features: two, Captions: five, MaxCaptions: 5}, []int{3}, []int64{0}, 5, "two_ims.npy row 0"},
		{"names of files", Config{Features: two, Captions: five, IDs: perImage, Mapping: f.text("id_mapping.json", `{"103": "val/3.jpg", "104": "val/4.jpg"}`)}, []int{3, 4}, []int64{103, 104}, 5, "val/3.jpg"},
		{"table by ids", Config{Features: table, Captions: five, IDs: perImage}, []int{3, 4}, []int64{103, 104}, 5, "103"},
		{"table by ids of captions", Config{Features: table, Captions: five, IDs: perCaption}, []int{3, 4}, []int64{103, 104}, 5, "103"},
		{"table in its order", Config{Features: table, Captions: f.text("four.txt", captionsOf(1, 7, 4, 3, 5)...)}, []int{7, 4, 3, 5}, []int64{107, 104, 103, 105}, 1, "107"},
		{"ids that are texts", Config{Features: two, Captions: five, IDs: f.text("names.txt", "b.jpg", "a.jpg")}, []int{3, 4}, []int64{0, 1}, 5, "two_ims.npy row 0"},
		{"words", Config{Features: two, Captions: f.text("precaps.txt", "picture,3,said,0", "picture 4 , said 0"), Words: true}, []int{3, 4}, []int64{0, 1}, 1, "two_ims.npy row 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := load(t, c.cfg)
			if s.Len() != len(c.images) || s.Name(0) != c.nameOf0 || s.Pixels() {
				t.Fatalf("%d images, the first is %s", s.Len(), s.Name(0))
			}
			for i, image := range c.images {
				x, n := first(t, s, i)
				if x != float32(10*image+1) || int(n) != 1+image%3 || s.ImageID(i) != c.ids[i] || len(s.Captions(i)) != c.per {
					t.Errorf("image %d: feature %v, %d regions, id %d, captions %q", i, x, n, s.ImageID(i), s.Captions(i))
				}
				for _, caption := range s.Captions(i) {
					if !strings.HasPrefix(caption, fmt.Sprintf("picture %d said ", image)) {
						t.Errorf("image %d has the caption %q", image, caption)
					}
				}
			}
		})
	}
}

// TestLoadErrors: each names both sides of what disagrees.
func TestLoadErrors(t *testing.T) {
	f := newFolder(t)
	two, _ := f.array("two", 3, 4)
	four, _ := f.array("four", 3, 4, 5, 6)
	five := f.text("five.txt", captionsOf(5, 3, 4)...)
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Features: two, Captions: f.text("three.txt", "a", "b", "c")}, "three.txt has 3 captions and " + two + " 2 images"},
		{Config{Features: two, Captions: f.text("one.txt", "a")}, "one.txt has 1 captions and " + two + " 2 images"},
		{Config{Features: two, Captions: five, IDs: f.text("ids.txt", "1", "2", "3")}, "ids.txt has 3 ids, " + two + " 2 images and " + five + " 10 captions"},
		{Config{Features: two, Captions: five, IDs: f.text("mixed.txt", "1", "1", "1", "1", "2", "2", "2", "2", "2", "2")}, `mixed.txt: line 1: the captions of one image have the ids ["1" "2"]`},
		{Config{Features: four, Captions: f.text("four.txt", "a", "b", "c", "d"), Repeated: RepeatedYes}, "has 4 images, which are not a multiple of 5"},
		{Config{Features: two, Captions: five, MaxCaptions: 7}, "the first 7 captions of " + five + " are not whole images, which have 5 each"},
		{Config{Features: two, Captions: f.path("none.txt")}, "none.txt"},
		{Config{Features: two, Captions: f.text("latin.txt", "a", "caf\xe9")}, "latin.txt: line 2: it is not UTF-8 text"},
		{Config{Features: two, Captions: f.text("numbers.txt", "1,5,7,2", "1,6,2"), Words: true}, "numbers.txt: line 1: all its words are numbers"},
		{Config{Features: two, Captions: five, Mapping: f.text("list.json", "[1]")}, "list.json: want an object of the ids"},
	} {
		if _, err := Load(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v\nwant %q", err, c.want)
		}
	}
}

// TestStreamOfFiles: samples, bad ones and empty captions of a training stream.
func TestStreamOfFiles(t *testing.T) {
	f := newFolder(t)
	table := f.text("t.tsv", tableLineOf(0), "101\t200\t100\t0\t\t", tableLineOf(2), tableLineOf(3)[:45])
	captions := captionsOf(2, 0, 1, 2, 3, 9)
	captions[4] = "..."
	c := Config{Features: table, Captions: f.text("caps.txt", captions...), IDs: f.text("ids.txt", "100", "101", "102", "103", "109")}
	s := load(t, c)
	if s.EmptyCaptions() != 1 || len(s.Captions(2)) != 1 || s.Row(4) != -1 {
		t.Errorf("%d captions are empty, image 2 has %q, image 4 row %d", s.EmptyCaptions(), s.Captions(2), s.Row(4))
	}
	captions[4] = " \t " // of which the rule none leaves white space
	c.Captions, c.Clean = f.text("blank.txt", captions...), data.CleanNone
	if blank := load(t, c); blank.EmptyCaptions() != 1 || len(blank.Captions(2)) != 1 {
		t.Errorf("%d captions are empty, image 2 has %q", blank.EmptyCaptions(), blank.Captions(2))
	}
	for i, want := range map[int]string{1: "image 101, has no region", 3: "line 4, image 103", 4: `has no image "109", which ` + c.IDs + " names"} {
		if err := s.FillImage(i, batch.New(1, s.ImageColumns()...).Row(0)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("image %d: %v, want %q", i, err, want)
		}
	}
	cfg := data.TrainConfig{Seed: 1}
	cfg.Transform.Size = 8
	stream, err := data.NewTrain(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(stream.Columns()); got != "[regions (3, 2) float32 regions/lengths () int32 regions/boxes (3, 4) float32 ids () int32 labels () int32]" {
		t.Errorf("columns %s", got)
	}
	l, err := data.NewLoader(stream, data.LoaderConfig{BatchSize: 2, Columns: stream.Columns(), MaxBadShare: 0.7})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 4 {
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range b.Ints(batch.IDs) {
			x, boxes := testRegions(int(id))
			row := b.Row(i)
			if !slices.Equal(row.Floats(batch.Regions), x) || !slices.Equal(row.Floats(batch.RegionBoxes), boxes) || row.Ints(batch.RegionLengths)[0] != 1+id%3 {
				t.Errorf("id %d: %v %v", id, row.Floats(batch.Regions), row.Floats(batch.RegionBoxes))
			}
		}
		l.Recycle(b)
	}
	if bad, _, _ := l.Bad(); bad == 0 {
		t.Error("bad samples are not counted")
	}
	// As a split for evaluation: a bad image ends it, a good one has its columns.
	e, err := data.NewEval(s, data.EvalConfig{ImageSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	b := batch.New(1, e.Images().Columns()...)
	if err := data.LoadRows(t.Context(), e.Images(), 2, 1, b, 1); err != nil || b.Floats(batch.Regions)[0] != 21 {
		t.Errorf("row 2: %v %v", b.Floats(batch.Regions), err)
	}
	if err := data.LoadRows(t.Context(), e.Images(), 1, 1, b, 1); err == nil || !strings.Contains(err.Error(), "has no region") {
		t.Errorf("an image without regions: %v", err)
	}
	found, err := data.Check(t.Context(), s, data.CheckConfig{Images: true})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, x := range found {
		counts[x.Kind] = x.Count
	}
	if counts[data.BadImage] != 3 || counts[data.EmptyCaption] != 1 {
		t.Errorf("findings %v", counts)
	}
}

// TestPictures: with a folder of pictures there are pixels too.
func TestPictures(t *testing.T) {
	f := newFolder(t)
	two, _ := f.array("two", 3, 4)
	if _, err := load(t, Config{Features: two, Captions: f.text("c.txt", "a", "b")}).Image(0); err == nil || !strings.Contains(err.Error(), "data.regions.pictures") {
		t.Errorf("without a folder: %v", err)
	}
	src, err := filepath.Glob("../images/testdata/images/*.png")
	if err != nil || src == nil {
		t.Fatal("no picture for the test")
	}
	b := filetest.Read(t, src[0])
	filetest.Write(t, f.path("three.png"), b)
	s := load(t, Config{Features: two, Captions: f.path("c.txt"), IDs: f.text("ids.txt", "7", "8"), Mapping: f.text("m.json", `{"7": "three.png"}`), Pictures: f.dir})
	if m, err := s.Image(0); err != nil || m.W == 0 || !s.Pixels() {
		t.Errorf("the picture: %v", err)
	}
	if _, err := s.Image(1); err == nil || !strings.Contains(err.Error(), "8.jpg") {
		t.Errorf("a picture that is not there: %v", err)
	}
	e, err := data.NewEval(s, data.EvalConfig{ImageSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := batch.Find(e.Images().Columns(), batch.Images); !ok {
		t.Errorf("columns %v have no pixels", e.Images().Columns())
	}
}

// TestBoxesAreClipped: what rounding puts beyond the image is taken back.
func TestBoxesAreClipped(t *testing.T) {
	boxes := []float32{-.005, .2, .5, 1.005}
	if err := checkBoxes(boxes, BoxError{}); err != nil || !slices.Equal(boxes, []float32{0, .2, .5, 1}) {
		t.Errorf("%v, %v", boxes, err)
	}
}
