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
	n := len(cacheMagic) // whose last byte is the version: earlier ones lie the same way
	if len(b) < cacheHeader || string(b[:n-1]) != cacheMagic[:n-1] || crc32.Checksum(b[:cacheHeader-4], castagnoli) != binary.LittleEndian.Uint32(b[cacheHeader-4:]) {
		return errors.New("its head is no head of an entry")
	}
	w, h := binary.LittleEndian.Uint32(b[n:]), binary.LittleEndian.Uint32(b[n+4:])
	if uint64(len(b)-cacheHeader) != 3*uint64(w)*uint64(h) {
		return fmt.Errorf("its size does not fit an image of %dx%d", w, h)
	}
	if crc32.Checksum(b[cacheHeader:], castagnoli) != binary.LittleEndian.Uint32(b[n+24:]) {
		return errors.New("its checksum does not fit")
	}
	return nil
}
