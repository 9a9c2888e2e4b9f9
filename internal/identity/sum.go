package identity

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/geoalign/geoalign/internal/files"
)

// Sum is the first half of the SHA-256 of contents. The zero Sum says that they are not known.
type Sum [16]byte

// String is the sum in hexadecimal, empty for the zero Sum.
func (s Sum) String() string {
	if s == (Sum{}) {
		return ""
	}
	return hex.EncodeToString(s[:])
}

// MarshalText implements encoding.TextMarshaler.
func (s Sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sum) UnmarshalText(text []byte) error {
	*s = Sum{}
	if len(text) == 0 {
		return nil
	}
	if n, err := hex.Decode(s[:], text[:min(len(text), 2*len(s))]); err != nil || n != len(s) || len(text) != 2*len(s) {
		return fmt.Errorf("identity: %.40q is not a sum of %d hexadecimal digits", text, 2*len(s))
	}
	return nil
}

// sumBytes is how much of a file is read at a time.
const sumBytes = 1 << 20

// Of returns the sum of all bytes of a file, which it reads. It ends early with the error of ctx.
func Of(ctx context.Context, path string) (Sum, error) { return OfPaced(ctx, path, nil) }

// OfPaced is Of that does its work in parts, each by a call of pace, which may rest between them; nil: without.
func OfPaced(ctx context.Context, path string, pace func(work func() error) error) (Sum, error) {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return Sum{}, err
	}
	defer f.Close()
	if pace == nil {
		pace = func(work func() error) error { return work() }
	}
	h, b := sha256.New(), make([]byte, min(max(size, 4<<10), sumBytes))
	part := func() error {
		n, err := f.Read(b)
		h.Write(b[:n])
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return Sum{}, err
		}
		switch err := pace(part); err {
		case nil:
		case io.EOF:
			return half(h), nil
		default:
			return Sum{}, err
		}
	}
}

// OfBytes returns the sum of contents in memory: that of a file that holds them.
func OfBytes(b []byte) Sum {
	all := sha256.Sum256(b)
	return Sum(all[:len(Sum{})])
}

func half(h hash.Hash) Sum {
	var all [sha256.Size]byte
	return Sum(h.Sum(all[:0])[:len(Sum{})])
}

// List sums entries in their order, each of any number of fields. Lists have one sum exactly where they
// have the same entries of the same fields.
type List struct {
	h   hash.Hash
	buf []byte
}

// NewList returns a list without entries.
func NewList() *List { return &List{h: sha256.New()} }

// Add adds an entry.
func (l *List) Add(fields ...string) {
	l.buf = binary.AppendUvarint(l.buf, uint64(len(fields)))
	for _, f := range fields {
		l.buf = binary.AppendUvarint(l.buf, uint64(len(f)))
		l.buf = append(l.buf, f...)
	}
	if len(l.buf) >= 32<<10 {
		l.flush()
	}
}

func (l *List) flush() {
	l.h.Write(l.buf)
	l.buf = l.buf[:0]
}

// Sum returns that of the entries so far. More may be added after it.
func (l *List) Sum() Sum {
	l.flush()
	return half(l.h)
}
