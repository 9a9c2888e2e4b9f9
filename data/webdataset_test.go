package data

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

// member of a tar file of tests.
type member struct {
	name, body string
}

// tarOf writes a tar file.
func tarOf(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: m.name, Size: int64(len(m.body)), Mode: 0o644}), second(w.Write([]byte(m.body)))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func second(_ int, err error) error { return err }

// shardFiles writes shards and returns their paths.
func shardFiles(t testing.TB, shards ...[]byte) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for i, b := range shards {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%03d.tar", i)))
		filetest.Write(t, paths[i], b)
	}
	return paths
}

// sampleMembers are the members of image i with one caption.
func sampleMembers(t testing.TB, i int) []member {
	return []member{{fmt.Sprintf("%04d.png", i), string(pngOf(t, i))}, {fmt.Sprintf("%04d.txt", i), fmt.Sprintf("Caption %d.\n", i)}}
}

func openShards(t *testing.T, paths []string, cfg ShardsConfig, opt ...Options) *Shards {
	t.Helper()
	s, err := OpenShards(t.Context(), paths, cfg, append(opt, Options{})[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Three shards of 4, 1 and 6 samples, against a data set in memory.
func TestShards(t *testing.T) {
	var paths []string
	want := naive{Memory: &Memory{}, mixed: 3}
	var shards [][]byte
	for _, n := range []int{4, 1, 6} {
		want.first = append(want.first, want.Len())
		var members []member
		for range n {
			i := want.Len()
			members = append(members, sampleMembers(t, i)...)
			want.Images, want.Texts = append(want.Images, pixelsOf(i)), append(want.Texts, []string{fmt.Sprintf("Caption %d.", i)})
		}
		shards = append(shards, tarOf(t, members...))
	}
	paths = shardFiles(t, shards...)
	checkSame(t, openShards(t, paths, ShardsConfig{Shuffle: 3}), want)
}

// A byte order mark, as editors of Windows write it, is no part of a caption, and JSON may begin with one.
func TestShardsWithByteOrderMarks(t *testing.T) {
	img := string(pngOf(t, 0))
	tar := tarOf(t, member{"1.png", img}, member{"1.txt", "\ufeffA dog.\r\n"}, member{"1.json", "\ufeff{\"c\": [\"A cat.\", \"Two.\"]}\r\n"},
		member{"2.png", img}, member{"2.txt", "\ufeff\r\n"}, member{"2.json", "\ufeff{\"c\": \"\"}"})
	for key, want := range map[string][]string{"": {"A dog."}, "c": {"A cat.", "Two."}} {
		s := openShards(t, shardFiles(t, tar), ShardsConfig{JSONKey: key})
		if err := s.Fault(0); err != nil || !slices.Equal(s.Captions(0), want) || len(s.Captions(1)) != 0 || s.EmptyCaptions() != 1 {
			t.Errorf("key %q: captions %q and %q, %d empty, %v", key, s.Captions(0), s.Captions(1), s.EmptyCaptions(), err)
		}
	}
}

// An epoch visits each sample once, the shards one after the other, and mixes no more than it should.
func TestPartOrder(t *testing.T) {
	parts, mixed, n := []int{0, 10, 11, 40}, 7, 100
	o := newPartOrder(3, n, parts, mixed)
	for epoch := range 3 {
		var got []int
		for c := range n {
			got = append(got, o.At(uint64(epoch*n+c)))
		}
		var plain []int // the windows sorted by the order of the parts
		for _, p := range partsIn(got, parts) {
			end := n
			if p+1 < len(parts) {
				end = parts[p+1]
			}
			for i := parts[p]; i < end; i++ {
				plain = append(plain, i)
			}
		}
		for w := range slices.Chunk(plain, mixed) {
			have := slices.Sorted(slices.Values(got[:len(w)]))
			slices.Sort(w)
			if !slices.Equal(have, w) {
				t.Fatalf("epoch %d: a window of %v, want %v", epoch, have, w)
			}
			got = got[len(w):]
		}
	}
	if o.At(0) == o.At(uint64(n)) && o.At(1) == o.At(uint64(n+1)) && o.At(2) == o.At(uint64(n+2)) {
		t.Error("two epochs begin alike")
	}
	for c := range uint64(20) { // the zero value of ShardsConfig and ParquetConfig
		if got, want := newPartOrder(3, 10, []int{0, 4}, 0).At(c), newPartOrder(3, 10, []int{0, 4}, 1).At(c); got != want {
			t.Errorf("with nothing mixed sample %d is %d, want %d as they lie", c, got, want)
		}
	}
}

// The parts of pairs begin with the pairs of their first image, those of empty parts too.
func TestPartsOfPairs(t *testing.T) {
	ds := naive{Memory: memory(5, "a", "b"), first: []int{0, 0, 2, 4, 4, 5}, mixed: 3}
	ds.Texts[3] = nil
	for pairs, want := range map[bool][]int{false: ds.first, true: {0, 0, 4, 6, 6, 8}} {
		s := trainOf(t, ds, TrainConfig{Pairs: pairs, Transform: trainSmall})
		var seen []int
		for c := range s.EpochSamples() {
			seen = append(seen, s.order.At(uint64(c)))
		}
		if slices.Sort(seen); !slices.Equal(s.order.(*Order).parts, want) || seen[len(seen)-1] != len(seen)-1 {
			t.Errorf("pairs %v: parts %v, want %v; samples %v", pairs, s.order.(*Order).parts, want, seen)
		}
	}
}

// partsIn returns the parts in the order of their middle places.
func partsIn(order, parts []int) (list []int) {
	sum, count := make([]int, len(parts)), make([]int, len(parts))
	for place, i := range order {
		p := len(parts) - 1
		for parts[p] > i {
			p--
		}
		sum[p] += place
		count[p]++
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return sum[a]*count[b] - sum[b]*count[a] })
	return list
}

// What is incomplete or damaged is a sample whose fault names the member, and what is neither image nor
// caption is passed over.
func TestShardFaults(t *testing.T) {
	img := string(pngOf(t, 1))
	for name, c := range map[string]struct {
		members []member
		key     string
		want    []string // name of each sample: fault or captions
	}{
		"whole":      {[]member{{"a/b.x/1.PNG", img}, {"a/b.x/1.txt", " Two dogs. \n"}}, "", []string{`a/b.x/1.PNG: ["Two dogs."]`}},
		"dots":       {[]member{{"1.seg.png", img}, {"1.png", img}, {"1.txt", "x"}, {"1.cls", "3"}}, "", []string{`1.png: ["x"]`}},
		"no caption": {[]member{{"1.png", img}, {"2.png", img}, {"2.txt", "x"}}, "", []string{"1.png: the sample has no .txt member", `2.png: ["x"]`}},
		"no image":   {[]member{{"1.txt", "x"}, {"2.png", img}, {"2.txt", "x"}}, "", []string{"1: the sample has no image (.jpg, .png, .webp or another format that is read)", `2.png: ["x"]`}},
		"apart":      {[]member{{"1.png", img}, {"2.png", img}, {"1.txt", "x"}, {"2.txt", "y"}}, "", []string{"1.png: the sample has no .txt", "2.png: the sample has no .txt", "1: the sample has no image (.jpg", "2: the sample has no image (.jpg"}},
		"twice":      {[]member{{"1.png", img}, {"1.jpg", img}, {"1.txt", "x"}}, "", []string{"1.png: 1.png and 1.jpg are two images of one sample"}},
		"two texts":  {[]member{{"1.png", img}, {"1.txt", "x"}, {"1.txt", "x"}}, "", []string{"1.png: 1.txt is there twice"}},
		"blank":      {[]member{{"1.png", img}, {"1.txt", " . "}}, "", []string{"1.png: []"}},
		"long":       {[]member{{"1.png", img}, {"1.txt", strings.Repeat("x", maxText+1)}}, "", []string{"1.png: 1.txt has 1048577 bytes, too many for captions"}},
		"others":     {[]member{{"README", "x"}, {".hidden.txt", "x"}, {"dir/", ""}, {"1.json", "{}"}, {"1.png", img}, {"1.txt", "x"}, {"sizes.json", "{}"}}, "", []string{`1.png: ["x"]`}},
		"traversal":  {[]member{{"../../etc/1.png", img}, {"../../etc/1.txt", "x"}, {"/2.png", img}, {"/2.txt", "y"}}, "", []string{`../../etc/1.png: ["x"]`, `/2.png: ["y"]`}},
		"long name":  {[]member{{strings.Repeat("k", 300) + ".png", img}, {strings.Repeat("k", 300) + ".txt", "x"}}, "", []string{strings.Repeat("k", 300) + `.png: ["x"]`}},
		"json":       {[]member{{"1.png", img}, {"1.txt", "no"}, {"1.json", `{"caption": ["x", " ", "y"]}`}}, "caption", []string{`1.png: ["x" "y"]`}},
		"no json":    {[]member{{"1.png", img}, {"1.txt", "no"}}, "caption", []string{"1.png: the sample has no .json member"}},
		"bad json":   {[]member{{"1.png", img}, {"1.json", "{"}, {"2.png", img}, {"2.json", "{}"}, {"3.png", img}, {"3.json", `{"text": 7}`}}, "text", []string{"1.png: 1.json: broken JSON", `2.png: 2.json: field "text" is missing`, `3.png: 3.json: field "text" is neither`}},
	} {
		b := tarOf(t, c.members...)
		s, err := indexShard(bytes.NewReader(b), int64(len(b)), c.key, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := samplesOf(s)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", name, got[i], c.want[i])
			}
			if whole := s.Texts.list(i, 0)[shardFault] == ""; whole != (string(b[s.Offsets[i]:s.Offsets[i]+s.Sizes[i]]) == img) {
				t.Errorf("%s: sample %d lies at %d, %d", name, i, s.Offsets[i], s.Sizes[i])
			}
		}
	}
}

// samplesOf says what is in an index.
func samplesOf(s *shard) (list []string) {
	for i := range s.Texts.len() {
		text := s.Texts.list(i, 0)[shardFault]
		if text == "" {
			text = fmt.Sprintf("%q", s.Texts.list(i, shardCaptions))
		}
		list = append(list, s.Texts.list(i, 0)[shardName]+": "+text)
	}
	return list
}

// A shard that is cut anywhere has its whole samples, and one more with a fault; one that is
// damaged is an error or has samples that lie in it.
func TestCutShards(t *testing.T) {
	whole := tarOf(t, append(sampleMembers(t, 0), sampleMembers(t, 1)...)...)
	full, err := indexShard(bytes.NewReader(whole), int64(len(whole)), "", "")
	if err != nil {
		t.Fatal(err)
	}
	end := full.Offsets[1] + 512 + 1024 // an image and a caption take a block each, and a header before
	for n := 1; n < len(whole); n += 37 {
		s, err := indexShard(bytes.NewReader(whole[:n]), int64(n), "", "")
		if n < 512 {
			if err == nil {
				t.Errorf("%d bytes are not an error", n)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		got := samplesOf(s)
		if int64(n) >= end+512 {
			if len(got) < 2 || s.Texts.list(0, 0)[shardFault] != "" || s.Texts.list(1, 0)[shardFault] != "" {
				t.Errorf("cut at %d behind the end: %q", n, got)
			}
			continue
		}
		if last := got[len(got)-1]; !strings.Contains(last, "the shard is cut or damaged here") {
			t.Errorf("cut at %d: %q", n, got)
		}
		if s.check(int64(n)) != nil {
			t.Errorf("cut at %d: %v", n, s.check(int64(n)))
		}
	}
	b := slices.Clone(whole)
	copy(b[512+512:], bytes.Repeat([]byte{7}, 512)) // the second header
	if s, err := indexShard(bytes.NewReader(b), int64(len(b)), "", ""); err != nil || len(samplesOf(s)) != 2 {
		t.Errorf("a damaged header: %v, %v", s, err)
	}
}

// Sparse members, links and sizes that no file has are faults, and take no memory.
func TestHostileShards(t *testing.T) {
	img := string(pngOf(t, 1))
	header := func(h tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	pax := header(tar.Header{Name: "1.png", Size: 512, PAXRecords: map[string]string{"GEOALIGN.note": strings.Repeat("long ", 500)}, Format: tar.FormatPAX})
	sparsePAX := bytes.ReplaceAll(pax, []byte("GEOALIGN.note"), []byte("GNU.sparse.no"))
	for name, c := range map[string]struct {
		tar  []byte
		want string
	}{
		"huge":     {header(tar.Header{Name: "1.png", Size: 1 << 60}), "1.png ends in the middle"},
		"huge txt": {header(tar.Header{Name: "1.txt", Size: 1 << 60}), "1.txt ends in the middle"},
		"link":     {slices.Concat(header(tar.Header{Name: "1.png", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), tarOf(t, member{"1.txt", "x"})), "1.png is a link, sparse or no file"},
		"device":   {slices.Concat(header(tar.Header{Name: "1.png", Typeflag: tar.TypeChar}), tarOf(t, member{"1.txt", "x"})), "1.png is a link, sparse or no file"},
		"pax":      {slices.Concat(pax, bytes.Repeat([]byte("x"), 512), tarOf(t, member{"1.txt", "x"})), `1.png: ["x"]`},
		"sparse":   {slices.Concat(sparsePAX, bytes.Repeat([]byte("x"), 512), tarOf(t, member{"1.txt", "x"})), "1.png is a link, sparse or no file"},
		"whole":    {tarOf(t, member{"1.png", img}, member{"1.txt", "x"}), `1.png: ["x"]`},
	} {
		var s *shard
		var err error
		if took := budgettest.Allocated(func() { s, err = indexShard(bytes.NewReader(c.tar), int64(len(c.tar)), "", "") }); took > 1<<20 {
			t.Errorf("%s: takes %d bytes", name, took)
		}
		text := fmt.Sprint(err)
		if err == nil {
			text = strings.Join(samplesOf(s), "\n")
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, want %q", name, text, c.want)
		}
	}
}

// What follows the mark that ends an archive is told to be lost; the zeros that fill its last block are nothing.
func TestBehindTheEnd(t *testing.T) {
	img := string(pngOf(t, 0))
	first, second := tarOf(t, member{"1.png", img}, member{"1.txt", "x"}), tarOf(t, member{"2.png", img}, member{"2.txt", "y"})
	for _, c := range []struct {
		tar  []byte
		want int
	}{
		{first, 1}, {slices.Concat(first, make([]byte, 1<<17)), 1}, {slices.Concat(first, second), 2}, {slices.Concat(first, make([]byte, 1<<17), []byte{1}), 2},
	} {
		s, err := indexShard(bytes.NewReader(c.tar), int64(len(c.tar)), "", "")
		if err != nil {
			t.Fatal(err)
		}
		got := samplesOf(s)
		if len(got) != c.want || got[0] != `1.png: ["x"]` || c.want == 2 && !strings.Contains(got[1], "behind the end of the shard: ") {
			t.Errorf("%d bytes: %q, want %d samples", len(c.tar), got, c.want)
		}
	}
}

// What follows a sparse member is read, whatever size the file has that it stands for: GNU tar writes files with holes so with --sparse.
func TestSparseMembers(t *testing.T) {
	for size, what := range map[int64]string{1 << 30: "beyond the end of the shard", 2048: "within the shard"} {
		var sparse bytes.Buffer
		h := tar.Header{Name: "1.npy", Size: 1024, Format: tar.FormatPAX, PAXRecords: map[string]string{
			"GEO.aligns.major": "1", "GEO.aligns.minor": "0", "GEO.aligns.name": "1.mask.npy", "GEO.aligns.realsize": fmt.Sprint(size)}}
		if err := tar.NewWriter(&sparse).WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		list := fmt.Appendf(nil, "1\n%d\n512\n", size-512) // of the pieces that are not a hole: one, at the end
		sparse.Write(append(list, make([]byte, 1024-len(list))...))
		img := string(pngOf(t, 1))
		head := tarOf(t, member{"1.png", img}, member{"1.txt", "x"})
		b := slices.Concat(head[:len(head)-1024], bytes.ReplaceAll(sparse.Bytes(), []byte("GEO.aligns."), []byte("GNU.sparse.")), tarOf(t, member{"2.png", img}, member{"2.txt", "y"}))
		s, err := indexShard(bytes.NewReader(b), int64(len(b)), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := samplesOf(s); !slices.Equal(got, []string{`1.png: ["x"]`, `2.png: ["y"]`}) {
			t.Errorf("a file that ends %s: %q", what, got)
		}
	}
}

func TestShardsRefuse(t *testing.T) {
	img := string(pngOf(t, 1))
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		body []byte
		want string
	}{
		{"a.tar.gz", []byte("\x1f\x8b\x08 and so on"), "it is compressed: unpack it"},
		{"a.tar", []byte(strings.Repeat("no tar ", 200)), "it is not a tar file"},
		{"b.tar", nil, "none of the 1 shards has a complete sample"},
		{"f.tar", make([]byte, 10240), "f.tar has no members"},
		{"c.tar", tarOf(t, member{"1.mp", "x"}, member{"1.cls", "3"}), "end in .cls, .mp"},
		{"d.tar", tarOf(t, member{"1.png", img}), "d.tar: 1.png: the sample has no .txt member"},
		{"e.tar", tarOf(t, member{"1.png", img}, member{"1.json", "{}"}), "data.webdataset.json_key for captions in .json members"},
	} {
		path := filepath.Join(dir, c.name)
		filetest.Write(t, path, c.body)
		_, err := OpenShards(t.Context(), []string{path}, ShardsConfig{}, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) && c.body != nil {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := OpenShards(t.Context(), []string{filepath.Join(dir, "none.tar")}, ShardsConfig{}, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := OpenShards(t.Context(), nil, ShardsConfig{}, Options{}); err == nil {
		t.Error("no shard and no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenShards(ctx, shardFiles(t, tarOf(t, sampleMembers(t, 1)...)), ShardsConfig{}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The index of a shard is kept and read again; a damaged one is made anew with a warning, and that of a shard that
// has changed is another one.
func TestShardIndexIsKept(t *testing.T) {
	paths, dir := shardFiles(t, tarOf(t, sampleMembers(t, 1)...)), filepath.Join(t.TempDir(), "indices")
	var warned []string
	var progress []int
	open := func() *Shards {
		return openShards(t, paths, ShardsConfig{IndexDir: dir, Warn: func(s string) { warned = append(warned, s) }}, Options{Progress: func(done, of int) { progress = append(progress, done, of) }})
	}
	want := samplesOf(open().shards[0])
	list, _ := filepath.Glob(filepath.Join(dir, "shard-*.index"))
	if len(list) != 1 || !slices.Equal(progress, []int{1, 1}) {
		t.Fatalf("%q, progress %v", list, progress)
	}
	b := filetest.Read(t, list[0])
	// What is read is the index: one that says something else is believed.
	other, err := decodeShard(b[:len(b)-4], 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	other.Texts = packed{}
	other.Texts.add("other.png", "", "other")
	var written bytes.Buffer
	if err := writeShardIndex(&written, other); err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, list[0], written.Bytes())
	if got := samplesOf(open().shards[0]); got[0] != `other.png: ["other"]` || warned != nil {
		t.Errorf("%q, %q", got, warned)
	}
	for i := range b {
		if i%23 != 0 {
			continue
		}
		bad := slices.Clone(b)
		bad[i] ^= 16
		filetest.Write(t, list[0], bad)
		if got := samplesOf(open().shards[0]); !slices.Equal(got, want) {
			t.Errorf("byte %d: %q", i, got)
		}
		if len(warned) != 1 || !strings.Contains(warned[0], "is made anew") {
			t.Errorf("byte %d: warned %q", i, warned)
		}
		warned = nil
	}
	filetest.Write(t, paths[0], tarOf(t, append(sampleMembers(t, 2), sampleMembers(t, 3)...)...))
	if s := open(); s.Len() != 2 {
		t.Errorf("%d samples of a shard that has changed", s.Len())
	}
	filetest.Write(t, filepath.Join(dir, "file"), "")
	dir = filepath.Join(dir, "file")
	if s := open(); s.Len() != 2 || len(warned) != 1 || !strings.Contains(warned[0], dir) {
		t.Errorf("%d samples, warned %q", s.Len(), warned)
	}
}

// Shards that vanish or change under a data set are errors of their samples.
func TestShardsChange(t *testing.T) {
	one := tarOf(t, sampleMembers(t, 1)...)
	paths := shardFiles(t, one, one)
	s := openShards(t, paths, ShardsConfig{})
	if err := os.Remove(paths[0]); err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, paths[1], append(one, make([]byte, 512)...))
	if _, err := s.Image(0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Image(1); err == nil || !strings.Contains(err.Error(), paths[1]+" has changed since it was opened") {
		t.Errorf("got %v", err)
	}
}

// Some files are open at a time, whatever their number.
func TestHandles(t *testing.T) {
	var shards [][]byte
	for i := range mostHandles + 9 {
		shards = append(shards, tarOf(t, sampleMembers(t, i)...))
	}
	s := openShards(t, shardFiles(t, shards...), ShardsConfig{})
	err := each(t.Context(), 3*s.Len(), 7, func(i int) error {
		i %= s.Len()
		m, err := s.Image(i)
		if err == nil && !bytes.Equal(m.Pix, pixelsOf(i).Pix) {
			err = fmt.Errorf("image %d is another one", i)
		}
		return err
	})
	if err != nil || len(s.files.open) > mostHandles || len(s.files.open) == 0 {
		t.Errorf("%d files are open, %v", len(s.files.open), err)
	}
	if s.Close(); len(s.files.open) != 0 {
		t.Error("files are open after Close")
	}
}

// Samples of shards are kept in a cache by their place, so that equal names are no matter.
func TestShardsCache(t *testing.T) {
	a, b := sampleMembers(t, 1), sampleMembers(t, 2)
	b[0].name, b[1].name = a[0].name, a[1].name
	s := openShards(t, shardFiles(t, tarOf(t, slices.Concat(a, []member{{"x.txt", "x"}, {"x.png", string(pngOf(t, 5))}}, b)...)), ShardsConfig{})
	cache, err := NewCache(CacheConfig{Kind: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	s.UseCache(cache)
	for range 2 {
		for i, want := range []int{1, 5, 2} {
			if m, err := s.Image(i); err != nil || !bytes.Equal(m.Pix, pixelsOf(want).Pix) {
				t.Errorf("image %d: %v", i, err)
			}
		}
	}
	if st := s.Cache().Stats(); st.Hits != 3 || st.Misses != 3 {
		t.Errorf("%+v", st)
	}
}

// webdatasetFolder holds real shards beside the repository.
const webdatasetFolder = "../../shared/data/webdataset"

func TestRealShards(t *testing.T) {
	if _, err := os.Stat(webdatasetFolder); err != nil {
		t.Skip("no shards at " + webdatasetFolder)
	}
	paths, err := Expand(webdatasetFolder, []string{"flickr8k-{00000..00001}.tar"})
	if err != nil {
		t.Fatal(err)
	}
	for key, captions := range map[string]int{"": 1, "captions": 5} {
		s := openShards(t, paths, ShardsConfig{JSONKey: key})
		if s.Len() != 400 {
			t.Fatalf("%d samples", s.Len())
		}
		for i := range s.Len() {
			if len(s.Captions(i)) != captions || s.Fault(i) != nil {
				t.Errorf("%s: %q, %v", s.Name(i), s.Captions(i), s.Fault(i))
			}
			if i%29 == 0 {
				if m, err := s.Image(i); err != nil || m.W != 128 {
					t.Errorf("%s: %v", s.Name(i), err)
				}
			}
		}
	}
	for name, want := range map[string]string{"mpdata": ".mp", "tendata": ".ten", "testgz": ".txt.gz", "compressed": ".txt.gz"} {
		_, err := OpenShards(t.Context(), []string{filepath.Join(webdatasetFolder, name+".tar")}, ShardsConfig{}, Options{})
		if err == nil || !strings.Contains(err.Error(), "end in "+want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzIndexShard: whatever is in a file, its samples lie in it.
func FuzzIndexShard(f *testing.F) {
	whole := tarOf(f, append(sampleMembers(f, 0), member{"0001.json", `{"text": ["x"]}`})...)
	f.Add(whole, "")
	f.Add(whole[:1700], "text")
	f.Add([]byte("\x1f\x8b"), "")
	f.Fuzz(func(t *testing.T, b []byte, key string) {
		defer budgettest.Within(t, len(b)+len(key))()
		s, err := indexShard(bytes.NewReader(b), int64(len(b)), key, "")
		if err != nil {
			return
		}
		if err := s.check(int64(len(b))); err != nil {
			t.Error(err)
		}
		samplesOf(s)
	})
}

// FuzzShardIndex: what is read of an index can be used.
func FuzzShardIndex(f *testing.F) {
	var s shard
	s.Offsets, s.Sizes = []int64{512}, []int64{3}
	s.Texts.add("a.png", "", "x")
	var b bytes.Buffer
	if err := writeShardIndex(&b, &s); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes()[:b.Len()-4])
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.WithinBytes(t, len(b), 16<<20)() // gob takes 10 MB at first for what says that it is longer
		s, err := decodeShard(b, 1000)
		if err != nil {
			return
		}
		samplesOf(s)
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
	})
}

// Faults of shards are findings of a check, and bad samples whose share is limited.
func TestShardFaultsAreBadSamples(t *testing.T) {
	var members []member
	for i := range 6 {
		members = append(members, sampleMembers(t, i)...)
	}
	whole := tarOf(t, slices.Concat(members, []member{{"alone.png", string(pngOf(t, 6))}, {"bad.png", "no image"}, {"bad.txt", "bad"}, {"cut.png", strings.Repeat("x", 1000)}})...)
	s := openShards(t, shardFiles(t, whole[:len(whole)-2000]), ShardsConfig{Shuffle: 100})
	found, err := Check(t.Context(), s, CheckConfig{Images: true})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(found)
	for _, want := range []string{"bad image 3", "no caption 2", "alone.png: the sample has no .txt member", "bad.png: data: not a JPEG", "the shard is cut or damaged here"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	stream, err := NewTrain(s, TrainConfig{Seed: 1, Transform: trainSmall})
	if err != nil {
		t.Fatal(err)
	}
	l := newLoader(t, stream, LoaderConfig{BatchSize: 6, MaxBadShare: 0.4, DropLast: true})
	for range 3 {
		b := nextOf(t, l)
		l.Recycle(b)
	}
	bad, read, examples := l.Bad()
	if bad < 6 || read != bad+18 || !strings.Contains(fmt.Sprint(examples), "alone.png: the sample has no .txt member") {
		t.Errorf("%d of %d: %v", bad, read, examples)
	}
	strict := newLoader(t, stream, LoaderConfig{BatchSize: 6})
	var share *BadShareError
	if _, err := strict.Next(t.Context()); !errors.As(err, &share) || !strings.Contains(err.Error(), ".tar: ") {
		t.Errorf("got %v", err)
	}
}
