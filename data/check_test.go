package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/filetest"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	a := writeImage(t, dir, "a.png", 10)
	b := writeImage(t, dir, "b.png", 10) // as a.png
	c := writeImage(t, dir, "c.png", 30)
	d := writeImage(t, dir, "d.png", 40)
	whole := filetest.Read(t, c)
	half := filepath.Join(dir, "half.png")
	filetest.Write(t, half, whole[:len(whole)-20])
	big := filepath.Join(dir, "bomb.png")
	filetest.Write(t, big, bomb(50000, 50000))
	ds := NewFiles([]File{
		{Path: a, ID: 1, Captions: []string{"a red dog", "A red dog.", "!"}},
		{Path: b, ID: 2, Captions: []string{"a red dog"}},
		{Path: c, ID: 3, Captions: []string{"one two three four five"}},
		{Path: half, ID: 4, Captions: []string{"half"}},
		{Path: big, ID: 5, Captions: []string{"big"}},
		{Path: filepath.Join(dir, "none.png"), ID: 6, Captions: []string{"none"}},
		{Path: d, ID: 7},
	}, Options{})
	// The other split has c.png under its name and d.png under another.
	e := writeImage(t, dir, "e.png", 40)
	other := NewFiles([]File{{Path: c, ID: 1, Captions: []string{"x"}}, {Path: e, ID: 2, Captions: []string{"y"}}}, Options{})
	calls := 0
	found, err := Check(context.Background(), ds, CheckConfig{
		Tokenizer: letters{}, MaxWords: 4, Tokens: 100, Images: true, Workers: 3,
		Others:   map[string]Dataset{"test": other},
		Progress: func(done, of int) { calls++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		n       int
		example string
	}{
		MissingImage:     {1, "none.png"},
		BadImage:         {1, "half.png"},
		LargeImage:       {1, "bomb.png"},
		NoCaption:        {1, "d.png"},
		Leak:             {2, "c.png is in test too"},
		EmptyCaption:     {1, ""},
		LongCaption:      {1, "c.png: caption 0 has 5 words"},
		DuplicateImage:   {1, "b.png"},
		DuplicateCaption: {1, `"a red dog"`},
		RepeatedCaption:  {1, `"a red dog"`},
	}
	for _, f := range found {
		w, ok := want[f.Kind]
		if !ok || f.Count != w.n || !strings.Contains(strings.Join(f.Examples, "\n"), w.example) || f.Hint == "" {
			t.Errorf("%+v, want %v", f, w)
		}
		delete(want, f.Kind)
	}
	if len(want) != 0 {
		t.Errorf("not found: %v", want)
	}
	if calls != 9 {
		t.Errorf("%d calls of Progress, want 9", calls)
	}
	if !found[0].Grave() || found[len(found)-1].Grave() {
		t.Error("grave findings come first")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Check(ctx, ds, CheckConfig{Images: true}); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	clean, err := Check(context.Background(), memory(4, "a"), CheckConfig{Images: true, Tokenizer: letters{}, Tokens: 2})
	if err != nil || len(clean) != 1 || clean[0].Kind != LongCaption || clean[0].Count != 4 {
		t.Errorf("%v, %v: want the long captions only", clean, err)
	}
}

func TestCheckKeepsFewExamples(t *testing.T) {
	found, err := Check(context.Background(), memory(50), CheckConfig{Examples: 3})
	if err != nil || len(found) != 1 || found[0].Count != 50 || len(found[0].Examples) != 3 {
		t.Errorf("%+v, %v", found, err)
	}
}

// closed is letters with a b behind a text, which is unknown too, as CLIP's end of a text is.
type closed struct{ letters }

func (c closed) Encode(text string, most int) []int32 {
	return append(c.letters.Encode(text, most), 'b')
}
func (closed) UnkID() int32           { return 'b' }
func (closed) Ends() (begin, end int) { return 1, 1 }

func TestStats(t *testing.T) {
	ds := memory(4)
	ds.Texts = [][]string{{"a b"}, {"A b c.", "a"}, nil, {"a b c d"}}
	ds.IDs = []int64{1, 1, 2, 3}
	s := NewStats(ds, letters{}, "")
	if s.Images != 4 || s.ImageIDs != 3 || s.Captions != 4 || s.Words != 10 || s.Distinct != 4 {
		t.Errorf("%+v", s)
	}
	if want := (Quantiles{1, 2, 4, 4, 4, 2.5}); s.WordLengths != want {
		t.Errorf("words %+v, want %+v", s.WordLengths, want)
	}
	// One token a byte and the first: lengths 4, 6, 2, 8.
	if fmt.Sprint(s.Histogram) != "[0 0 1 0 1 0 1 0 1]" {
		t.Errorf("histogram %v", s.Histogram)
	}
	if s = NewStats(ds, closed{}, ""); s.Unknown != 3 { // the letters b, and not what ends a text
		t.Errorf("%d unknown tokens", s.Unknown)
	}
	if s = NewStats(&Memory{}, nil, ""); s.Captions != 0 || s.Histogram != nil {
		t.Errorf("empty: %+v", s)
	}
}

// TestTrainingOverDamagedFiles is the whole chain over bad input: the good
// samples come out, the bad ones are counted with their files.
func TestTrainingOverDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	good := writeImage(t, dir, "good.png", 10)
	whole := filetest.Read(t, good)
	filetest.Write(t, filepath.Join(dir, "half.png"), whole[:len(whole)/2])
	filetest.Write(t, filepath.Join(dir, "bomb.png"), bomb(65000, 65000))
	var list bytes.Buffer
	list.WriteString("[")
	for i := range 16 {
		writeImage(t, dir, fmt.Sprint(i, ".png"), uint8(i))
		fmt.Fprintf(&list, `{"image": "%d.png", "caption": "image %d"},`, i, i)
	}
	list.WriteString(`{"image": "half.png", "caption": "x"}, {"image": "bomb.png", "caption": "x"},
		{"image": "none.png", "caption": "x"}, {"image": "good.png", "caption": " . "}]`)
	filetest.Write(t, filepath.Join(dir, "l.json"), list.Bytes())
	ds := listed(t, dir, "l.json")
	tr, err := NewTrain(ds, TrainConfig{Seed: 1, Transform: trainSmall, Text: someText(12)})
	if err != nil {
		t.Fatal(err)
	}
	l := newLoader(t, tr, LoaderConfig{BatchSize: 4, MaxBadShare: 0.25})
	for range 20 {
		b, err := l.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range b.Ints(batch.Lengths) {
			var text []byte // letters has a token per byte
			for _, id := range b.Row(i).Ints(batch.Tokens)[1:n] {
				text = append(text, byte(id))
			}
			caption, id, err := tr.Describe(b.Counters[i])
			if err != nil || string(text) != caption || caption != fmt.Sprint("image ", id) || int64(b.Ints(batch.IDs)[i]) != id {
				t.Errorf("text %q, caption %q with image %d (%v)", text, caption, id, err)
			}
		}
		l.Recycle(b)
	}
	bad, read, examples := l.Bad()
	if read < 80 || float64(bad)/float64(read) < 0.12 || float64(bad)/float64(read) > 0.25 {
		t.Errorf("%d bad of %d", bad, read)
	}
	var reasons string
	for _, x := range examples {
		reasons += x.Err.Error() + "\n"
	}
	for _, want := range []string{"half.png", "bomb.png", "none.png", "good.png: no caption"} {
		if !strings.Contains(reasons, want) {
			t.Errorf("reasons lack %s:\n%s", want, reasons)
		}
	}
	l = newLoader(t, tr, LoaderConfig{BatchSize: 4, MaxBadShare: 0.1})
	for range 100 {
		if _, err = l.Next(context.Background()); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "max_bad_share = 0.1") {
		t.Errorf("got %v, want to stop above 0.1", err)
	}
}

// TestCheckOfALimit: a machine that has run out of open files ends a check, whichever split it reads at the moment: what is in both would
// not be found.
func TestCheckOfALimit(t *testing.T) {
	whole := memory(4, "a")
	for _, x := range [][2]Dataset{{limited{whole, syscall.EMFILE}, whole}, {whole, limited{whole, syscall.EMFILE}}} {
		if _, err := Check(t.Context(), x[0], CheckConfig{Images: true, Others: map[string]Dataset{"val": x[1]}}); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("got %v", err)
		}
	}
}

// bomb is a PNG of a few bytes whose header promises w x h pixels.
func bomb(w, h uint32) []byte {
	var b bytes.Buffer
	b.WriteString("\x89PNG\r\n\x1a\n")
	head := append([]byte("IHDR"), make([]byte, 13)...)
	binary.BigEndian.PutUint32(head[4:], w)
	binary.BigEndian.PutUint32(head[8:], h)
	head[12], head[13] = 8, 2
	binary.Write(&b, binary.BigEndian, uint32(13))
	b.Write(head)
	binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE(head))
	return b.Bytes()
}
