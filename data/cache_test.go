package data

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/rng"
)

// cachePhotos copies the test images to a folder of their own.
func cachePhotos(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"color.jpg", "odd.jpg", "wide.jpg", "grey.jpg", "progressive.jpg", "alpha.png", "lossy.webp"} {
		b := filetest.Read(t, filepath.Join("images", "testdata", "images", name))
		p := filepath.Join(dir, name)
		filetest.Write(t, p, b)
		paths = append(paths, p)
	}
	return paths
}

func newCache(t *testing.T, cfg CacheConfig) *Cache {
	t.Helper()
	c, err := NewCache(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func cached(t *testing.T, c *Cache, path string) *transform.Image {
	t.Helper()
	m, err := c.Image(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func same(a, b *transform.Image) bool { return a.W == b.W && a.H == b.H && slices.Equal(a.Pix, b.Pix) }

func decoded(t *testing.T, path string, size int) *transform.Image {
	t.Helper()
	m, err := images.DecodeFile(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = (&Cache{cfg: CacheConfig{Size: size}}).shrink(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// cacheKinds runs f for a fresh cache of each kind, unshrunk and shrunk.
func cacheKinds(t *testing.T, f func(t *testing.T, cfg CacheConfig)) {
	t.Helper()
	for _, kind := range []string{"memory", "disk"} {
		for _, size := range []int{0, 10} {
			t.Run(fmt.Sprintf("%s%d", kind, size), func(t *testing.T) {
				f(t, CacheConfig{Kind: kind, Dir: t.TempDir(), Size: size, Warn: func(s string) { t.Error("warning:", s) }})
			})
		}
	}
}

func TestCacheHitEqualsMiss(t *testing.T) {
	cacheKinds(t, func(t *testing.T, cfg CacheConfig) {
		c := newCache(t, cfg)
		paths := cachePhotos(t)
		for round := range 3 {
			for _, p := range paths {
				if got := cached(t, c, p); !same(got, decoded(t, p, cfg.Size)) {
					t.Errorf("round %d: %s differs from what decoding gives", round, p)
				} else if cfg.Size > 0 && min(got.W, got.H) > cfg.Size {
					t.Errorf("%s: %dx%d is not shrunk to %d", p, got.W, got.H, cfg.Size)
				}
			}
		}
		n := uint64(len(paths))
		if s := c.Stats(); s.Misses != n || s.Hits != 2*n || s.Damaged != 0 || s.Full || s.Bytes == 0 {
			t.Errorf("%+v", s)
		}
		if cfg.Kind != "disk" {
			return
		}
		// Another process, or a later run.
		again := newCache(t, cfg)
		for _, p := range paths {
			if !same(cached(t, again, p), decoded(t, p, cfg.Size)) {
				t.Errorf("a later run: %s differs", p)
			}
		}
		if s := again.Stats(); s.Hits != n || s.Misses != 0 || s.Bytes != c.Stats().Bytes {
			t.Errorf("a later run: %+v", s)
		}
	})
}

// Samples are the same numbers with an unshrunk cache as without.
func TestCachedSamplesAreTheSame(t *testing.T) {
	paths := cachePhotos(t)
	stream := func(c *Cache) *Train {
		var items []File
		for i, p := range paths {
			items = append(items, File{Path: p, ID: int64(i), Captions: []string{"a photo"}})
		}
		ds := NewFiles(items, Options{})
		ds.UseCache(c)
		s, err := NewTrain(ds, TrainConfig{Seed: 3, Transform: transform.Train{Size: 32, ScaleMin: 0.2, Flip: true, Ops: 2, Level: 7}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	plain := stream(nil)
	for _, kind := range []string{"memory", "disk"} {
		c := newCache(t, CacheConfig{Kind: kind, Dir: t.TempDir()})
		with := stream(c)
		for i := range uint64(4 * len(paths)) {
			a, err := picture(plain, i)
			if err != nil {
				t.Fatal(err)
			}
			b, err := picture(with, i)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(a, b) {
				t.Fatalf("%s: sample %d differs", kind, i)
			}
		}
		if c.Stats().Hits == 0 {
			t.Errorf("%s: no hit", kind)
		}
	}
}

func TestCacheSeesChangedFiles(t *testing.T) {
	cacheKinds(t, func(t *testing.T, cfg CacheConfig) {
		c := newCache(t, cfg)
		paths := cachePhotos(t)
		p := paths[0]
		cached(t, c, p)
		before := c.Stats().Bytes
		// Another image of the same number of bytes, then the same with another
		// time: size and time both count.
		b := filetest.Read(t, paths[1])
		filetest.Write(t, p, b)
		later := time.Now().Add(3 * time.Second)
		if err := os.Chtimes(p, later, later); err != nil {
			t.Fatal(err)
		}
		if !same(cached(t, c, p), decoded(t, paths[1], cfg.Size)) {
			t.Error("the old image is returned")
		}
		if !same(cached(t, c, p), decoded(t, paths[1], cfg.Size)) {
			t.Error("the old image is returned the second time")
		}
		s := c.Stats()
		if s.Misses != 2 || s.Hits != 1 || s.Damaged != 0 {
			t.Errorf("%+v", s)
		}
		// The new entry took the place of the old one.
		diff := int64(len(decoded(t, paths[1], cfg.Size).Pix)) - int64(len(decodedBytes(t, "color.jpg", cfg.Size)))
		if s.Bytes != before+diff {
			t.Errorf("%d bytes, want %d", s.Bytes, before+diff)
		}
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Image(p, 0); err == nil {
			t.Error("an image that is gone is returned")
		}
	})
}

func decodedBytes(t *testing.T, name string, size int) []uint8 {
	return decoded(t, filepath.Join("images", "testdata", "images", name), size).Pix
}

// entries lists the files of a cache folder.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(dir, "*", tempPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hidden {
		if !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}

func TestCacheRebuildsDamagedEntries(t *testing.T) {
	p := cachePhotos(t)[0]
	damage := map[string]func(b []byte) []byte{
		"pixel":     func(b []byte) []byte { b[len(b)-100] ^= 1; return b },
		"magic":     func(b []byte) []byte { b[0] ^= 1; return b },
		"width":     func(b []byte) []byte { b[8] ^= 1; return b },
		"time":      func(b []byte) []byte { b[24] ^= 1; return b },
		"sum":       func(b []byte) []byte { b[33] ^= 1; return b },
		"cut short": func(b []byte) []byte { return b[:len(b)/2] },
		"head only": func(b []byte) []byte { return b[:cacheHeader-1] },
		"empty":     func(b []byte) []byte { return nil },
		"too long":  func(b []byte) []byte { return append(b, 0) },
		"zeros":     func(b []byte) []byte { return make([]byte, len(b)) },
	}
	for name, f := range damage {
		t.Run(name, func(t *testing.T) {
			var warnings []string
			cfg := CacheConfig{Kind: "disk", Dir: t.TempDir(), Warn: func(s string) { warnings = append(warnings, s) }}
			c := newCache(t, cfg)
			cached(t, c, p)
			list := entries(t, cfg.Dir)
			if len(list) != 1 {
				t.Fatal(list)
			}
			b := filetest.Read(t, list[0])
			filetest.Write(t, list[0], f(b))
			for range 2 {
				if !same(cached(t, c, p), decoded(t, p, 0)) {
					t.Fatal("wrong pixels")
				}
			}
			if s := c.Stats(); s.Damaged != 1 || s.Misses != 2 || s.Hits != 1 {
				t.Errorf("%+v", s)
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], "made anew") || !strings.Contains(warnings[0], list[0]) {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}

func TestCacheStopsAtItsLimit(t *testing.T) {
	cacheKinds(t, func(t *testing.T, cfg CacheConfig) {
		paths := cachePhotos(t)
		all := newCache(t, CacheConfig{Kind: "memory", Size: cfg.Size})
		for _, p := range paths {
			cached(t, all, p)
		}
		cfg.MaxBytes = all.Stats().Bytes / 2
		c := newCache(t, cfg)
		for range 2 {
			for _, p := range paths {
				if !same(cached(t, c, p), decoded(t, p, cfg.Size)) {
					t.Errorf("%s differs", p)
				}
			}
		}
		s := c.Stats()
		if !s.Full || s.Bytes > cfg.MaxBytes || s.Hits == 0 || s.Hits >= uint64(len(paths)) {
			t.Errorf("limit %d: %+v", cfg.MaxBytes, s)
		}
		var onDisk int64
		for _, e := range entries(t, cfg.Dir) {
			info, err := os.Stat(e)
			if err != nil {
				t.Fatal(err)
			}
			onDisk += info.Size()
		}
		if cfg.Kind == "disk" && onDisk != s.Bytes {
			t.Errorf("%d bytes on disk, %d counted", onDisk, s.Bytes)
		}
	})
}

// Two processes that fill one folder stay within the limit together.
func TestCacheLimitIsOfTheFolder(t *testing.T) {
	paths := cachePhotos(t)
	cfg := CacheConfig{Kind: "disk", Dir: t.TempDir()}
	size := newCache(t, CacheConfig{Kind: "memory"})
	for _, p := range paths {
		cached(t, size, p)
	}
	cfg.MaxBytes = size.Stats().Bytes / 2
	a, b := newCache(t, cfg), newCache(t, cfg)
	for i, p := range paths {
		cached(t, []*Cache{a, b}[i%2], p)
	}
	c := newCache(t, cfg)
	if s := c.Stats(); s.Bytes > cfg.MaxBytes || s.Bytes == 0 {
		t.Errorf("%d bytes, limit %d", s.Bytes, cfg.MaxBytes)
	}
}

func TestCacheConcurrentWriters(t *testing.T) {
	cacheKinds(t, func(t *testing.T, cfg CacheConfig) {
		paths := cachePhotos(t)
		var want []*transform.Image
		for _, p := range paths {
			want = append(want, decoded(t, p, cfg.Size))
		}
		caches := []*Cache{newCache(t, cfg)}
		if cfg.Kind == "disk" { // as other processes
			caches = append(caches, newCache(t, cfg), newCache(t, cfg))
		}
		var wg sync.WaitGroup
		for g := range 12 {
			wg.Go(func() {
				r := rng.New(uint64(g), rng.Order, 0)
				for range 40 {
					i := r.IntN(len(paths))
					m, err := caches[g%len(caches)].Image(paths[i], 0)
					if err != nil || !same(m, want[i]) {
						t.Errorf("%s: differs or error %v", paths[i], err)
						return
					}
				}
			})
		}
		wg.Wait()
		if cfg.Kind == "disk" {
			if n := len(entries(t, cfg.Dir)); n != len(paths) {
				t.Errorf("%d files for %d images", n, len(paths))
			}
		}
	})
}

func TestCacheReadOnlyFolder(t *testing.T) {
	if os.Getuid() == 0 {
		// The superuser may write anywhere: a file instead of a folder stops
		// it too.
		testUnwritable(t, func(dir string) {
			for i := range 256 {
				p := filepath.Join(dir, fmt.Sprintf("%02x", i))
				if _, err := os.Stat(p); err != nil {
					filetest.Write(t, p, "")
				}
			}
		})
		return
	}
	testUnwritable(t, func(dir string) {
		filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if d.IsDir() {
				os.Chmod(p, 0o555)
				t.Cleanup(func() { os.Chmod(p, 0o755) })
			}
			return nil
		})
	})
}

func testUnwritable(t *testing.T, lock func(dir string)) {
	paths := cachePhotos(t)
	var warnings []string
	cfg := CacheConfig{Kind: "disk", Dir: t.TempDir(), Warn: func(s string) { warnings = append(warnings, s) }}
	cached(t, newCache(t, cfg), paths[0])
	lock(cfg.Dir)
	c := newCache(t, cfg)
	for range 3 {
		for _, p := range paths {
			if !same(cached(t, c, p), decoded(t, p, 0)) {
				t.Errorf("%s differs", p)
			}
		}
	}
	if s := c.Stats(); s.Hits < 3 || s.Hits > 6 { // what was there is still used; two images may share a folder
		t.Errorf("%+v", s)
	}
	if len(warnings) != maxWarnings || !strings.Contains(warnings[0], "cannot be") {
		t.Errorf("%d warnings: %q", len(warnings), warnings)
	}
}

func TestCacheBadImagesStayBad(t *testing.T) {
	cacheKinds(t, func(t *testing.T, cfg CacheConfig) {
		p := filepath.Join(t.TempDir(), "bad.jpg")
		filetest.Write(t, p, "not an image")
		c := newCache(t, cfg)
		for range 2 {
			if _, err := c.Image(p, 0); err == nil || !strings.Contains(err.Error(), p) {
				t.Errorf("got %v, want an error that names the file", err)
			}
		}
		// The pixel limit holds for cached images too.
		big := cachePhotos(t)[0]
		cached(t, c, big)
		if _, err := c.Image(big, 10); err == nil {
			t.Error("an image above the pixel limit comes from the cache")
		}
	})
}

func TestCacheForgetsCrashedWriters(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "ab"), 0o755); err != nil {
		t.Fatal(err)
	}
	old, fresh := filepath.Join(dir, "ab", tempPrefix+"1"), filepath.Join(dir, "ab", tempPrefix+"2")
	for _, p := range []string{old, fresh} {
		filetest.Write(t, p, make([]byte, 100))
	}
	yesterday := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(old, yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	newCache(t, CacheConfig{Kind: "disk", Dir: dir})
	if list := entries(t, dir); len(list) != 1 || list[0] != fresh {
		t.Errorf("left: %q", list)
	}
}

func TestNewCacheFailures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	filetest.Write(t, file, "")
	for _, c := range []struct {
		cfg  CacheConfig
		want string
	}{
		{CacheConfig{Kind: "ram"}, `unknown image cache "ram"`},
		{CacheConfig{Kind: "disk"}, "set data.cache_dir"},
		{CacheConfig{Kind: "disk", Dir: filepath.Join(file, "sub")}, "set data.cache_dir"},
		{CacheConfig{Kind: "memory", Size: -1}, "must be >= 0"},
		{CacheConfig{Kind: "memory", MaxBytes: -1}, "must be >= 0"},
	} {
		if _, err := NewCache(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.cfg, err, c.want)
		}
	}
	for _, kind := range []string{"", "none"} {
		if c, err := NewCache(CacheConfig{Kind: kind}); c != nil || err != nil {
			t.Errorf("%q: %v, %v", kind, c, err)
		}
	}
}

// Whatever is in an entry's file, reading it gives the pixels that were saved or
// an error.
func FuzzCacheEntry(f *testing.F) {
	m := transform.NewImage(3, 2)
	for i := range m.Pix {
		m.Pix[i] = uint8(i)
	}
	src := source{"/a.jpg", identity.Stamp{Size: 1000, Modified: 2000}, 0}
	s := &diskStore{dir: f.TempDir(), max: 1 << 30}
	if err := s.save(src, m); err != nil {
		f.Fatal(err)
	}
	b := filetest.Read(f, s.file(src))
	f.Add(b)
	f.Add(b[:20])
	f.Add(bytes.Repeat([]byte{255}, len(b)))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		filetest.Write(t, s.file(src), b)
		if got, err := s.load(src); err == nil && got != nil && !same(got, m) {
			t.Errorf("%v is not an image that was saved", got)
		}
	})
}

// TestCacheOfARewrittenFile: pixels of a file that was written anew in place, with its size and its time as they were, are its new ones.
func TestCacheOfARewrittenFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system has no time that a program cannot set")
	}
	for _, kind := range []string{"memory", "disk"} {
		path := filepath.Join(t.TempDir(), "a.png")
		old := time.Now().Add(-time.Hour)
		write := func(grey uint8) {
			t.Helper()
			m := image.NewNRGBA(image.Rect(0, 0, 8, 8))
			for i := range m.Pix {
				m.Pix[i] = 255
			}
			m.Pix[0] = grey
			var b bytes.Buffer
			enc := png.Encoder{CompressionLevel: png.NoCompression}
			if err := enc.Encode(&b, m); err != nil {
				t.Fatal(err)
			}
			filetest.Write(t, path, b.Bytes())
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
		c, err := NewCache(CacheConfig{Kind: kind, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		for _, grey := range []uint8{10, 200} {
			time.Sleep(20 * time.Millisecond) // file systems count time in steps
			write(grey)
			if m, err := c.Image(path, 0); err != nil || m.Pix[0] != grey {
				t.Errorf("%s: %v, %v", kind, m, err)
			}
		}
	}
}

func BenchmarkCacheHit(b *testing.B) {
	files, _ := benchJPEGs(b, 1, 256, 256)
	p := filepath.Join(b.TempDir(), "a.jpg")
	filetest.Write(b, p, files[0])
	for _, kind := range []string{"none", "memory", "disk"} {
		b.Run(kind, func(b *testing.B) {
			c, err := NewCache(CacheConfig{Kind: kind, Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Image(p, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
