package data

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/names"
	"github.com/geoalign/geoalign/internal/words"
)

// shard is what an index holds of a tar file of samples: where images lie, and what is said of
// them.
type shard struct {
	Offsets []int64 // of the bytes of each image
	Sizes   []int64 // of them; 0: see the fault
	Texts   packed  // of each sample its name, its fault ("": none) and its captions
	Empty   int     // captions that were dropped because nothing of them is left
	Other   string  // ends of the names of members that are no part of a sample, for messages
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

// gzipMagic begins what gzip has compressed.
const gzipMagic = "\x1f\x8b"

// errCompressed says that a shard is no plain tar file.
var errCompressed = errors.New("it is compressed: unpack it to a .tar file, as gunzip does; images gain nothing by it")

// indexShard reads the headers of a tar file of size bytes, and the members that hold captions: the .txt
// member of a sample, or what its .json member has under jsonKey, less those of which the
// rule clean leaves nothing. Members of a sample follow each other, and share
// their name up to the first dot behind the last slash. What is incomplete or cannot be read is a sample
// with a fault; what is neither image nor caption is passed over. An error means that the file is no tar file.
func indexShard(r io.ReadSeeker, size int64, jsonKey, clean string) (*shard, error) {
	if err := checkPlain(r); err != nil {
		return nil, err
	}
	x := shardIndexer{jsonKey: jsonKey, clean: clean, other: map[string]bool{}}
	t := tar.NewReader(r)
	end := int64(0) // of the last member
	for first := true; ; first = false {
		h, err := t.Next()
		if err == io.EOF && size-end < 512 {
			err = errors.New("it has no end")
		}
		if err == io.EOF {
			err = x.ended(r)
			if err != nil {
				return nil, err
			}
			break
		}
		if err != nil && first && size > 0 {
			return nil, fmt.Errorf("it is no tar file: %w", err)
		}
		if err != nil {
			x.cut(err)
			break
		}
		offset, err := r.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if end = offset; h.Typeflag == tar.TypeReg && !isSparse(h) { // whose size is not that of its bytes here
			if h.Size > size-offset {
				x.cut(fmt.Errorf("%s ends in the middle", h.Name))
				break
			}
			end += (h.Size + 511) / 512 * 512
		}
		if err := x.member(h, offset, t); err != nil {
			x.cut(err)
			break
		}
	}
	x.flush()
	x.s.Other = endsOf(x.other)
	return &x.s, nil
}

// checkPlain refuses compressed files, and goes back to the start.
func checkPlain(r io.ReadSeeker) error {
	var b [4]byte
	n, err := io.ReadFull(r, b[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	for _, magic := range []string{gzipMagic, "\x28\xb5\x2f\xfd", "BZh", "\xfd7zX"} {
		if bytes.HasPrefix(b[:n], []byte(magic)) {
			return errCompressed
		}
	}
	_, err = r.Seek(0, io.SeekStart)
	return err
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

// splitMember returns the key and the end of the name of a member.
func splitMember(name string) (key, ext string, ok bool) {
	dir, base := path.Split(name)
	before, after, found := strings.Cut(base, ".")
	if !found || before == "" || after == "" {
		return "", "", false
	}
	return names.Clean(dir + before), strings.ToLower(after), true
}

// member takes a member whose bytes lie at offset and can be read from r. An error means that the
// file is cut.
func (x *shardIndexer) member(h *tar.Header, offset int64, r io.Reader) error {
	key, ext, ok := splitMember(h.Name)
	if !ok || h.Typeflag == tar.TypeDir {
		return nil
	}
	if !x.open || key != x.key {
		x.flush()
		x.key, x.open = key, true
	}
	isCaption := ext == "txt" && x.jsonKey == "" || ext == "json" && x.jsonKey != ""
	isImage := !strings.Contains(ext, ".") && isImageName("."+ext)
	switch {
	case !isCaption && !isImage:
		x.other[ext] = true
	case h.Typeflag != tar.TypeReg || isSparse(h):
		x.bad("%s is a link, sparse or no file: write the files themselves", h.Name)
	case isImage && x.image != "":
		x.bad("%s and %s are two images of one sample", x.image, h.Name)
	case isImage:
		x.image, x.offset, x.size = h.Name, offset, h.Size
	case x.hasCaption:
		x.bad("%s is there twice", h.Name)
	case ext == "txt" && h.Size > maxText || h.Size > maxJSON:
		x.bad("%s has %d bytes, too many for captions", h.Name, h.Size)
	default:
		b, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		x.hasCaption, b = true, files.WithoutMark(b)
		list := []string{string(b)}
		if ext == "json" {
			if list, err = captionsOfJSON(b, x.jsonKey); err != nil {
				x.bad("%s: %v", h.Name, err)
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

// isSparse says whether the bytes of a member do not lie as they are.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

// captionsOfJSON returns the text or the texts that an object has under key.
func captionsOfJSON(b []byte, key string) ([]string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(b, &object); err != nil {
		return nil, jsonError(err)
	}
	return captionsOf(key, object[key])
}

// bad notes the first fault of a sample.
func (x *shardIndexer) bad(format string, args ...any) {
	if x.fault == "" {
		x.fault = words.Cut(fmt.Sprintf(format, args...), longestExample)
	}
}

// cut ends the shard with a sample whose fault says so.
func (x *shardIndexer) cut(err error) {
	x.flush()
	x.key, x.open = "end of the shard", true
	x.fault = fmt.Sprintf("the shard is cut or damaged here, and what follows is lost (%s): copy it again", words.Cut(err.Error(), longestExample))
}

// ended looks behind the mark that ends the archive, up to which tar files are read: of two that were put together as bytes
// (cat a.tar b.tar) the second is lost, which is a sample with a fault. Zeros fill the last block.
func (x *shardIndexer) ended(r io.Reader) error {
	block := make([]byte, 1<<16)
	for {
		n, err := r.Read(block)
		if slices.ContainsFunc(block[:n], func(b byte) bool { return b != 0 }) {
			x.flush()
			x.key, x.open = "behind the end of the shard", true
			x.fault = "something follows the mark that ends the archive and is not read: join archives with tar --concatenate, or give them as several files"
			return nil
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
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
