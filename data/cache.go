package data

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
)

// CacheConfig says where decoded images are kept.
type CacheConfig struct {
	Kind     string       // "memory" or "disk"; "none" or "": nowhere
	Dir      string       // folder of kind disk; made if it is not there
	MaxBytes int64        // nothing is added beyond this; 0: no limit
	Size     int          // images whose shorter side is longer are kept shrunk to it; 0: as they are
	Warn     func(string) // told what is wrong with the cache, a few times at most; nil: nobody
}

// Cache keeps decoded images so that a file is read and decoded once. An image
// that comes from the cache equals the one that decoding (and shrinking to Size)
// gives, byte by byte; a file that changed (by its stamp) is decoded anew.
//
// When it is full it stays as it is. Training reads its images in a new order
// every epoch, so an image that would be thrown out for another is as likely to be
// wanted next as the other one.
//
// Methods may be called from several goroutines, and several processes may share
// a folder.
type Cache struct {
	cfg    CacheConfig
	store  cacheStore
	warned atomic.Int32
	stats  struct{ hits, misses, damaged atomic.Uint64 }
}

// CacheStats counts what a cache did.
type CacheStats struct {
	Hits    uint64 `json:"hits"`
	Misses  uint64 `json:"misses"`  // decoded, with those that were damaged
	Damaged uint64 `json:"damaged"` // entries that were broken and made anew
	Bytes   int64  `json:"bytes"`   // that the cache holds
	Full    bool   `json:"full"`    // an image was left out for want of room
}

// cacheStore keeps images under a source.
type cacheStore interface {
	// load returns nil without an error when there is no entry for this source.
	load(s source) (*transform.Image, error)
	save(s source, m *transform.Image) error
	usage() (bytes int64, full bool)
}

// source is an image file, or a part of a file, in one state.
type source struct {
	path      string // absolute, of a part with its name
	stamp     identity.Stamp
	maxPixels int
}

// state is the sum of the stamp, as files keep it.
func (s source) state() identity.Sum { return identity.OfBytes([]byte(s.stamp.Shared())) }

// errDamaged marks entries that must be made anew.
var errDamaged = errors.New("damaged")

// NewCache returns the cache that cfg describes, nil for kind "none".
func NewCache(cfg CacheConfig) (*Cache, error) {
	if cfg.MaxBytes < 0 || cfg.Size < 0 {
		return nil, fmt.Errorf("data: size and limit of the image cache must be >= 0 (got %d pixels, %d bytes)",
			cfg.Size, cfg.MaxBytes)
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = math.MaxInt64
	}
	c := &Cache{cfg: cfg}
	switch cfg.Kind {
	case "", "none":
		return nil, nil
	case "memory":
		c.store = &memoryStore{max: cfg.MaxBytes, images: map[string]memoryEntry{}}
	case "disk":
		store, err := openDiskStore(cfg)
		if err != nil {
			return nil, err
		}
		c.store = store
	default:
		return nil, fmt.Errorf("data: unknown image cache %q: use none, memory or disk", cfg.Kind)
	}
	return c, nil
}

// Image returns the image at path from the cache, or decodes it and keeps it. The
// image must not be changed. A nil cache only decodes.
func (c *Cache) Image(path string, maxPixels int) (*transform.Image, error) {
	return c.image(path, maxPixels, nil)
}

func (c *Cache) image(path string, maxPixels int, w *images.Stopwatch) (*transform.Image, error) {
	return c.part(path, "", maxPixels, w, func() (*transform.Image,
		error) {
		return images.DecodeFileTimed(path, maxPixels, w)
	})
}

// part returns the image that decode makes of a part of the file at path from the cache, or decodes
// it and keeps it. Parts of a file have different names, and the file as a whole none.
func (c *Cache) part(path, name string, maxPixels int, w *images.Stopwatch,
	decode func() (*transform.Image, error)) (*transform.Image, error) {
	if c == nil {
		return decode()
	}
	defer func() { w.Lap(images.StageCache) }()
	err := files.CheckPath(path)
	var stamp identity.Stamp
	if err == nil {
		stamp, err = identity.StampOf(path)
	}
	if err != nil {
		return nil, fmt.Errorf("data: image: %w", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	if name != "" {
		abs += "\x00" + name
	}
	s := source{abs, stamp, maxPixels}
	m, err := c.store.load(s)
	switch {
	case m != nil && err == nil:
		c.stats.hits.Add(1)
		return m, nil
	case errors.Is(err, errDamaged):
		c.stats.damaged.Add(1)
		c.warn(fmt.Errorf("data: an entry of the image cache is made anew: %w", err))
	case err != nil:
		c.warn(fmt.Errorf("data: the image cache cannot be read: %w", err))
	}
	c.stats.misses.Add(1)
	w.Lap(images.StageCache)
	if m, err = decode(); err != nil {
		return nil, err
	}
	if m, err = c.shrink(m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// A file that was written to meanwhile may have given the pixels of one state
	// and the stamp of another.
	if now, err := identity.StampOf(path); err != nil || now != stamp {
		return m, nil
	}
	if err := c.store.save(s, m); err != nil {
		c.warn(fmt.Errorf("data: the image cache cannot be written (training goes on without): %w", err))
	}
	return m, nil
}

// shrink returns m with a shorter side of at most the cache's size.
func (c *Cache) shrink(m *transform.Image) (*transform.Image, error) {
	short := min(m.W, m.H)
	if c.cfg.Size == 0 || short <= c.cfg.Size {
		return m, nil
	}
	side := func(v int) int { return max(1, int(math.Round(float64(v)*float64(c.cfg.Size)/float64(short)))) }
	return transform.Resize(m, side(m.W), side(m.H))
}

// maxWarnings is how often a cache complains.
const maxWarnings = 5

func (c *Cache) warn(err error) {
	n := c.warned.Add(1)
	if c.cfg.Warn == nil || n > maxWarnings {
		return
	}
	msg := err.Error()
	if n == maxWarnings {
		msg += " (further warnings of the image cache are not shown)"
	}
	c.cfg.Warn(msg)
}

// Stats returns what the cache did so far.
func (c *Cache) Stats() CacheStats {
	if c == nil {
		return CacheStats{}
	}
	s := CacheStats{Hits: c.stats.hits.Load(), Misses: c.stats.misses.Load(), Damaged: c.stats.damaged.Load()}
	s.Bytes, s.Full = c.store.usage()
	return s
}

// memoryStore keeps images in the memory of the process.
type memoryStore struct {
	max int64

	mu     sync.RWMutex
	images map[string]memoryEntry
	bytes  int64
	full   bool
}

type memoryEntry struct {
	source source
	image  *transform.Image
}

func (s *memoryStore) load(src source) (*transform.Image, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if e, ok := s.images[src.path]; ok && e.source == src {
		return e.image, nil
	}
	return nil, nil
}

func (s *memoryStore) save(src source, m *transform.Image) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var old int64
	if e, ok := s.images[src.path]; ok {
		old = int64(len(e.image.Pix))
	}
	if s.bytes-old+int64(len(m.Pix)) > s.max {
		s.full = true
		delete(s.images, src.path) // of a file that changed
		s.bytes -= old
		return nil
	}
	s.images[src.path] = memoryEntry{src, m}
	s.bytes += int64(len(m.Pix)) - old
	return nil
}

func (s *memoryStore) usage() (int64, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.bytes, s.full
}
