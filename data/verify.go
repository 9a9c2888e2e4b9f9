package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"
)

// CacheFile says what a file of a cache folder (data.cache_dir) holds, by its name; empty: it is none that this package writes.
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
		n := len(b) - 4
		if n < 0 || binary.LittleEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
			return errors.New("its checksum does not fit")
		}
		return nil
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
