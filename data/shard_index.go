package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
)

// An index of a shard is kept in a file: the gob of a shard and a checksum. Its name is a
// fingerprint of path and stamp of the shard and of what its captions are, so that of a shard that has changed is another one.

// shardIndexVersion grows when an index of the same file becomes another one.
const shardIndexVersion = 5

// openShard returns the index of the shard at path, and its state, from the folder dir or by reading it. With dir
// it is kept there (empty: nowhere). What is wrong with the folder is told to warn.
func openShard(path, jsonKey, clean, dir string, warn func(error)) (*shard, identity.Stamp, error) {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return nil, identity.Stamp{}, fmt.Errorf("data: shard: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, identity.Stamp{}, fmt.Errorf("data: shard: %w", err)
	}
	stamp, name := identity.StampOfInfo(st), ""
	if dir != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			abs = path
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s\x00%s\x00%s", shardIndexVersion, abs, stamp.Shared(), jsonKey, clean))
		name = filepath.Join(dir, fmt.Sprintf("shard-%x.index", sum[:16]))
		b, err := os.ReadFile(name)
		var s *shard
		if err == nil {
			s, err = parseShardIndex(b, size)
		}
		if err == nil {
			return s, stamp, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			warn(fmt.Errorf("data: %s is made anew: %w", name, err))
		}
	}
	s, err := indexShard(f, size, jsonKey, clean)
	if err != nil {
		return nil, identity.Stamp{}, fmt.Errorf("data: shard %s: %w", path, err)
	}
	if dir != "" {
		err := os.MkdirAll(dir, 0o777)
		if err == nil {
			err = files.ReplaceFrom(name, func(w io.Writer) error { return writeShardIndex(w, s) })
		}
		if err != nil {
			warn(fmt.Errorf("data: the index of a shard cannot be kept in data.cache_dir, and is made again at the next start: %w", err))
		}
	}
	return s, stamp, nil
}

func writeShardIndex(w io.Writer, s *shard) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(s); err != nil {
		return err
	}
	_, err := w.Write(binary.LittleEndian.AppendUint32(b.Bytes(), crc32.Checksum(b.Bytes(), castagnoli)))
	return err
}

// parseShardIndex reads the index of a shard of size bytes.
func parseShardIndex(b []byte, size int64) (*shard, error) {
	n := len(b) - 4
	if n < 0 || binary.LittleEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
		return nil, errors.New("its checksum does not fit")
	}
	return decodeShard(b[:n], size)
}

func decodeShard(b []byte, size int64) (*shard, error) {
	var s shard
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil {
		return nil, err
	}
	return &s, s.check(size)
}
