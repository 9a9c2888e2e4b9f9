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
	"strings"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/words"
)

// shard is what an index holds of a tar file of samples: where images lie, and what is said of
// them.
type shard struct {
	Offsets []int64 // of the bytes of each image
	Sizes   []int64 // of them; 0: see the fault
	Texts   packed  // of each sample its name, its fault ("": none) and its captions
	Empty   int     // captions that were dropped because nothing of them is left
	Other   string  // ends of the names of members that are not part of a sample, for messages
}

// Strings of a list of shard.Texts.
const (
	shardName = iota
	shardFault
	shardCaptions
)

// Largest sizes in bytes of members that hold captions.
const (
	maxText = 1 << 20
	maxJSON = 16 << 20
)

// indexShard reads the headers of a tar file of size bytes, and the members that hold captions: the .txt
// member of a sample, or what its .json member has under jsonKey, less those of which the
// rule clean leaves nothing. Members of a sample follow each other. What is incomplete or cannot be read is a sample
// with a fault; what is neither image nor caption is passed over. An error means that the file is not a tar file.
func indexShard(r io.ReadSeeker, size int64, jsonKey, clean string) (*shard, error) {
	x := shardIndexer{jsonKey: jsonKey, clean: clean, other: map[string]bool{}}
	lost, err := table.Members(r, size, x.member)
	switch {
	case err != nil:
		return nil, err
	case lost == table.ErrBehindEnd:
		x.ends("behind the end of the shard", lost.Error())
	case lost != nil:
		x.ends("end of the shard", fmt.Sprintf("the shard is cut or damaged here, and what follows is lost (%s): copy "+
			"it again", words.Cut(lost.Error(), longestExample)))
	}
	x.flush()
	x.s.Other = endsOf(x.other)
	return &x.s, nil
}

// shardIndexer puts members together to samples.
type shardIndexer struct {
	s       shard
	jsonKey string
	clean   string // see Clean
	other   map[string]bool

	key          string
	open         bool   // a sample with key is being put together
	image        string // name of its image; "": none yet
	offset, size int64
	hasCaption   bool
	captions     []string
	fault        string // the first one
}

// member takes a member. An error means that the file is cut.
func (x *shardIndexer) member(m table.Member) error {
	if !x.open || m.Record != x.key {
		x.flush()
		x.key, x.open = m.Record, true
	}
	isCaption := m.Field == "txt" && x.jsonKey == "" || m.Field == "json" && x.jsonKey != ""
	isImage := !strings.Contains(m.Field, ".") && images.IsName("."+m.Field)
	switch {
	case !isCaption && !isImage:
		x.other[m.Field] = true
	case !m.Plain:
		x.bad("%s is a link, sparse or no file: write the files themselves", m.Name)
	case isImage && x.image != "":
		x.bad("%s and %s are two images of one sample", x.image, m.Name)
	case isImage:
		x.image, x.offset, x.size = m.Name, m.Offset, m.Size
	case x.hasCaption:
		x.bad("%s is there twice", m.Name)
	case m.Field == "txt" && m.Size > maxText || m.Size > maxJSON:
		x.bad("%s has %d bytes, too many for captions", m.Name, m.Size)
	default:
		b, err := m.Read()
		if err != nil {
			return err
		}
		x.hasCaption, b = true, files.WithoutMark(b)
		list := []string{string(b)}
		if m.Field == "json" {
			if list, err = table.Texts(b, x.jsonKey); err != nil {
				x.bad("%s: %v", m.Name, err)
			}
		}
		for _, c := range list {
			if c = strings.ToValidUTF8(strings.TrimSpace(c), "\uFFFD"); blank(x.clean, c) {
				x.s.Empty++
				continue
			}
			x.captions = append(x.captions, c)
		}
	}
	return nil
}

// bad notes the first fault of a sample.
func (x *shardIndexer) bad(format string, args ...any) {
	if x.fault == "" {
		x.fault = words.Cut(fmt.Sprintf(format, args...), longestExample)
	}
}

// ends adds what ends the shard early, as a sample with a fault.
func (x *shardIndexer) ends(name, fault string) {
	x.flush()
	x.key, x.open, x.fault = name, true, fault
}

// flush adds the sample that was put together. A group of members without image and caption is none.
func (x *shardIndexer) flush() {
	defer func() { *x = shardIndexer{s: x.s, jsonKey: x.jsonKey, clean: x.clean, other: x.other} }()
	if !x.open || x.image == "" && !x.hasCaption && x.fault == "" {
		return
	}
	name := x.image
	switch {
	case x.image == "":
		name = x.key
		x.bad("the sample has no image (.jpg, .png, .webp or another format that is read)")
	case !x.hasCaption && x.jsonKey != "":
		x.bad("the sample has no .json member")
	case !x.hasCaption:
		x.bad("the sample has no .txt member")
	}
	if x.fault != "" {
		x.offset, x.size, x.captions = 0, 0, nil
	}
	x.s.Offsets, x.s.Sizes = append(x.s.Offsets, x.offset), append(x.s.Sizes, x.size)
	x.s.Texts.add(append([]string{name, x.fault}, x.captions...)...)
}

// endsOf lists some ends of names.
func endsOf(m map[string]bool) string {
	const most = 10
	var list []string
	for _, e := range sortedKeys(m) {
		if len(list) == most {
			list = append(list, "...")
			break
		}
		list = append(list, "."+words.Shown(e))
	}
	return strings.Join(list, ", ")
}

// check says what is wrong with an index of a file of size bytes that was read from elsewhere.
func (s *shard) check(size int64) error {
	if len(s.Offsets) != s.Texts.len() || len(s.Sizes) != s.Texts.len() || !s.Texts.valid(shardCaptions) {
		return errors.New("it does not fit together")
	}
	for i, offset := range s.Offsets {
		if offset < 0 || s.Sizes[i] < 0 || offset > size-s.Sizes[i] {
			return fmt.Errorf("sample %d lies beyond the end", i)
		}
	}
	return nil
}

// An index of a shard is kept in a file: the gob of a shard and a checksum. Its name is a
// fingerprint of path and stamp of the shard and of what its captions are, so that of a shard that has changed is
// another one.

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
		sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s\x00%s\x00%s", shardIndexVersion, abs, stamp.Shared(),
			jsonKey, clean))
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
			warn(fmt.Errorf("data: the index of a shard cannot be kept in data.cache_dir, and is made again at the "+
				"next start: %w", err))
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
	b, err := summed(b)
	if err != nil {
		return nil, err
	}
	return decodeShard(b, size)
}

func decodeShard(b []byte, size int64) (*shard, error) {
	var s shard
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil {
		return nil, err
	}
	return &s, s.check(size)
}

// summed is the bytes of an index before its checksum.
func summed(b []byte) ([]byte, error) {
	n := len(b) - 4
	if n < 0 || binary.LittleEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
		return nil, errors.New("its checksum does not fit")
	}
	return b[:n], nil
}
