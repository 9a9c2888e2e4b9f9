package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/identity"
)

// A cache folder holds one file per image, in 256 folders by the first byte of its
// name. The name is a hash of the image's path and of what the pixels depend on,
// so a changed image replaces its entry. Files appear by renaming, whole; the
// check sum finds those that a crash or the disk damaged.
//
// Files are read, not mapped: a mapped file that shrinks under a reader ends the
// process, and its pages would have to outlive every image made of them. The
// system's page cache serves both alike.

// cacheVersion changes when the pixels that decoding gives or the layout change.
// Some decoders are those of the Go release, so it counts too.
var cacheVersion = "geoalign image cache 5 " + runtime.Version()

const (
	cacheMagic = "GEOAIMG2"
	// width, height (32 bits), sum of the stamp of the source (128), check sums of pixels and header (32)
	cacheHeader = len(cacheMagic) + 32
	cacheSuffix = ".rgb"
	tempPrefix  = ".new-"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// diskStore keeps images in a folder.
type diskStore struct {
	dir  string
	max  int64
	size int

	mu    sync.Mutex
	bytes int64 // in the folder, as far as known
	fresh int64 // of them added since the folder was last counted
	full  bool
}

func openDiskStore(cfg CacheConfig) (*diskStore, error) {
	if cfg.Dir == "" {
		return nil, fmt.Errorf("data: an image cache on disk needs a folder: set data.cache_dir")
	}
	if err := os.MkdirAll(cfg.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("data: folder of the image cache: %w: set data.cache_dir to one that can be made", err)
	}
	s := &diskStore{dir: cfg.Dir, max: cfg.MaxBytes, size: cfg.Size}
	bytes, err := s.count()
	if err != nil {
		return nil, fmt.Errorf("data: folder of the image cache: %w", err)
	}
	s.bytes = bytes
	return s, nil
}

// count adds up the entries and removes what crashed writers left behind an hour
// ago or more.
func (s *diskStore) count() (bytes int64, err error) {
	folders, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, err
	}
	for _, f := range folders {
		if !f.IsDir() || len(f.Name()) != 2 {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(s.dir, f.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue // removed meanwhile
			}
			if strings.HasPrefix(e.Name(), tempPrefix) && time.Since(info.ModTime()) > time.Hour {
				os.Remove(filepath.Join(s.dir, f.Name(), e.Name()))
				continue
			}
			bytes += info.Size()
		}
	}
	return bytes, nil
}

// file is the name of the entry of an image.
func (s *diskStore) file(src source) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%s", cacheVersion, s.size, src.maxPixels, src.path))
	name := hex.EncodeToString(h[:16])
	return filepath.Join(s.dir, name[:2], name+cacheSuffix)
}

func (s *diskStore) load(src source) (*transform.Image, error) {
	name := s.file(src)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var h [cacheHeader]byte
	if _, err := io.ReadFull(f, h[:]); err != nil {
		return nil, fmt.Errorf("%s: %w: its head is cut short", name, errDamaged)
	}
	e, err := parseCacheHeader(h[:])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if e.state != src.state() {
		return nil, nil // of an earlier state of the source
	}
	m := &transform.Image{W: e.w, H: e.h}
	// The size is believed once the file has it.
	n := 3 * m.W * m.H
	if info, err := f.Stat(); err != nil || info.Size() != int64(cacheHeader+n) {
		return nil, fmt.Errorf("%s: %w: its size does not fit an image of %dx%d", name, errDamaged, m.W, m.H)
	}
	m.Pix = make([]uint8, n)
	if _, err := io.ReadFull(f, m.Pix); err != nil {
		return nil, fmt.Errorf("%s: %w: %v", name, errDamaged, err)
	}
	if crc32.Checksum(m.Pix, castagnoli) != e.sum {
		return nil, fmt.Errorf("%s: %w: its check sum does not fit", name, errDamaged)
	}
	return m, nil
}

// cacheEntry is what the head of an entry says.
type cacheEntry struct {
	w, h  int
	state identity.Sum // of the source
	sum   uint32       // of the pixels
}

// parseCacheHeader reads the first cacheHeader bytes of an entry, of this version or an earlier one, which lie the same
// way.
func parseCacheHeader(b []byte) (e cacheEntry, err error) {
	n := len(cacheMagic)
	if string(b[:n-1]) != cacheMagic[:n-1] || crc32.Checksum(b[:cacheHeader-4],
		castagnoli) != binary.LittleEndian.Uint32(b[cacheHeader-4:]) {
		return e, fmt.Errorf("%w: its head is not a head of an entry", errDamaged)
	}
	w, h := binary.LittleEndian.Uint32(b[n:]), binary.LittleEndian.Uint32(b[n+4:])
	if w == 0 || h == 0 || uint64(w)*uint64(h) > 1<<40 {
		return e, fmt.Errorf("%w: an image of %dx%d", errDamaged, w, h)
	}
	return cacheEntry{int(w), int(h), identity.Sum(b[n+8 : n+24]), binary.LittleEndian.Uint32(b[n+24:])}, nil
}

func (s *diskStore) save(src source, m *transform.Image) (err error) {
	name := s.file(src)
	more := int64(cacheHeader + len(m.Pix))
	if info, err := os.Stat(name); err == nil {
		more -= info.Size() // it is replaced
	}
	if ok, err := s.reserve(more); !ok || err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.mu.Lock()
			s.bytes -= more
			s.mu.Unlock()
		}
	}()
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, tempPrefix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	h := make([]byte, 0, cacheHeader)
	h = append(h, cacheMagic...)
	h = binary.LittleEndian.AppendUint32(h, uint32(m.W))
	h = binary.LittleEndian.AppendUint32(h, uint32(m.H))
	state := src.state()
	h = append(h, state[:]...)
	h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(m.Pix, castagnoli))
	h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
	_, err = f.Write(h)
	if err == nil {
		_, err = f.Write(m.Pix)
	}
	if e := f.Chmod(0o644); err == nil { // other users may share the folder
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// reserve counts n bytes more, or says that they do not fit. Other processes may
// add to the folder, so it is counted again whenever this one has added a 64th of
// the limit, and before it is called full.
func (s *diskStore) reserve(n int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 && s.full {
		return false, nil
	}
	if s.fresh > s.max/64 || s.fresh > 0 && s.bytes+n > s.max {
		bytes, err := s.count()
		if err != nil {
			return false, err
		}
		s.bytes, s.fresh = bytes, 0
	}
	if n > 0 && s.bytes+n > s.max {
		s.full = true
		return false, nil
	}
	s.bytes += n
	s.fresh += max(n, 0)
	return true, nil
}

func (s *diskStore) usage() (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, s.full
}

// CacheFile says what a file of a cache folder (data.cache_dir) holds, by its name; empty: it is none that this package
// writes.
func CacheFile(name string) string {
	base := filepath.Base(name)
	switch {
	case strings.HasPrefix(base, "shard-") && strings.HasSuffix(base, ".index"):
		return "index of a shard"
	case strings.HasSuffix(base, cacheSuffix):
		return "image"
	}
	return ""
}

// CheckCacheFile compares the bytes of a file that CacheFile knows with its checksum.
func CheckCacheFile(name string, b []byte) error {
	if CacheFile(name) != "image" {
		_, err := summed(b)
		return err
	}
	if len(b) < cacheHeader {
		return errors.New("its head is cut short")
	}
	e, err := parseCacheHeader(b[:cacheHeader])
	switch {
	case err != nil:
		return err
	case len(b)-cacheHeader != 3*e.w*e.h:
		return fmt.Errorf("its size does not fit an image of %dx%d", e.w, e.h)
	case crc32.Checksum(b[cacheHeader:], castagnoli) != e.sum:
		return errors.New("its checksum does not fit")
	}
	return nil
}
