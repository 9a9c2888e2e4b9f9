package neighbours

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"unsafe"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// A file of lists is a safetensors file with a checksum: the tensor "near" and the description in
// the metadata. Its name is a fingerprint of the pool, the anchors and what was asked for, so files
// of other rows have other names.

// cacheVersion grows when the lists of the same rows become others, or the file another one.
const cacheVersion = 1

// descriptionKey is where the metadata holds the description.
const descriptionKey = "geoalign.neighbours"

// description says of which rows lists are.
type description struct {
	Version int     `json:"version"`
	Side    string  `json:"side"`
	Pool    string  `json:"pool"`    // fingerprint
	Anchors string  `json:"anchors"` // fingerprint
	Near    int     `json:"near"`    // that were asked for
	Indexed bool    `json:"indexed"`
	Seed    uint64  `json:"seed"`   // of an index, else 0
	Recall  float64 `json:"recall"` // 0 in what the name is made of
}

// describe returns the description of the lists that are to be found.
func (l *Lists) describe(ctx context.Context, o Options) (description, error) {
	pool, err := l.pool.Fingerprint(ctx)
	if err != nil {
		return description{}, err
	}
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, l.anchors) // a hash takes everything
	d := description{Version: cacheVersion, Side: l.side, Pool: pool, Anchors: hex.EncodeToString(h.Sum(nil)),
		Near: l.Near, Indexed: l.indexed()}
	if d.Indexed {
		d.Seed = o.Seed
	}
	return d, nil
}

// cached takes the lists from their file, or finds them and writes it.
func (l *Lists) cached(ctx context.Context, o Options) error {
	d, err := l.describe(ctx, o)
	if err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	path := filepath.Join(o.Cache, fmt.Sprintf("neighbours-%x.safetensors", sum[:8]))
	switch err := l.load(path, d); {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		o.Note(fmt.Sprintf("neighbours are found anew: %v", err))
	}
	if err := l.search(ctx, o); err != nil {
		return err
	}
	d.Recall = l.recall
	if text, err = json.Marshal(d); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Cache, 0o777); err != nil {
		return fmt.Errorf("neighbours: folder of the lists: %w: set data.cache_dir to one that can be made", err)
	}
	err = files.ReplaceFrom(path, func(w io.Writer) error {
		return safetensors.WriteSummed(w, []safetensors.Tensor{{Name: "near", Shape: []int{len(l.anchors), l.most},
			Data: l.near}}, map[string]string{descriptionKey: string(text)})
	})
	if err != nil {
		o.Note(fmt.Sprintf("the neighbours of %ss cannot be kept in data.cache_dir, and are found again at the next "+
			"start: %v", l.side, err))
	}
	return nil
}

// load maps the file of the lists that d describes.
func (l *Lists) load(path string, d description) error {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	closer := func() error { return nil }
	b := files.Map(f, size)
	if b != nil {
		// a second time it may be the memory of other lists
		closer = sync.OnceValue(func() error { return files.Unmap(b) })
	} else if b, err = files.Rest(f, size, 0); err != nil {
		return err
	}
	if err := l.parse(b, d); err != nil {
		return fmt.Errorf("%s cannot be used: %w", path, errors.Join(err, closer()))
	}
	l.close = closer
	return nil
}

// parse checks the bytes of a file and points the lists at them.
func (l *Lists) parse(b []byte, want description) (err error) {
	defer files.RecoverFault(&err, errGone, debug.SetPanicOnFault(true))
	f, err := safetensors.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	var d description
	if err := json.Unmarshal([]byte(f.Metadata()[descriptionKey]), &d); err != nil {
		return fmt.Errorf("its description cannot be read: %w", err)
	}
	if err := safetensors.CheckSum(b, f.Metadata()[safetensors.SumKey]); err != nil {
		return err
	}
	recall := d.Recall
	if d.Recall = 0; d != want || !(recall >= 0 && recall <= 1) {
		return errors.New("it is of other rows")
	}
	info, ok := f.Lookup("near")
	if !ok || info.DType != safetensors.I32 || len(info.Shape) != 2 || info.Shape[0] != len(l.anchors) ||
		info.Shape[1] < l.drawn() || info.Shape[1] > l.most {
		return fmt.Errorf("its lists are %s %v, not I32 [%d %d]", info.DType, info.Shape, len(l.anchors), l.most)
	}
	start, length, _ := f.Span("near")
	near, err := ints(b[start : start+length])
	if err != nil {
		return err
	}
	rows := int32(l.pool.Rows())
	for i, v := range near {
		if v >= rows || v < -1 || v == -1 && i%info.Shape[1] != 0 {
			return fmt.Errorf("row %d at place %d is none of the %d of the pool", v, i, rows)
		}
	}
	l.near, l.most, l.recall = near, info.Shape[1], recall
	return nil
}

// ints returns bytes as numbers, in place where the processor stores them so.
func ints(b []byte) ([]int32, error) {
	if len(b) == 0 || len(b)%4 != 0 {
		return nil, fmt.Errorf("%d bytes are not lists", len(b))
	}
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 && uintptr(unsafe.Pointer(&b[0]))%4 == 0 {
		return unsafe.Slice((*int32)(unsafe.Pointer(&b[0])), len(b)/4), nil
	}
	list := slices.Grow([]int32(nil), len(b)/4)
	for i := 0; i < len(b); i += 4 {
		list = append(list, int32(binary.LittleEndian.Uint32(b[i:])))
	}
	return list, nil
}
