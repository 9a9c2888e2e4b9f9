package parquetfile

import (
	"bytes"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/geoalign/geoalign/internal/budget"
)

// A page may hold so many bytes, and so many for each of its compressed ones: pages are of a megabyte as a rule, and of
// what the compression makes a thousandth, the encoding has left little.
const (
	pageFree  = 64 << 20
	pageRatio = 100
)

// inflate returns what the bytes of a page hold, which are so many as its header says. What would be too many is found
// out before memory is taken for it.
func inflate(codec format.CompressionCodec, b []byte, says int64) ([]byte, error) {
	const what, try = "it", "write the file anew with smaller row groups"
	limit := pageFree + pageRatio*int64(len(b))
	if err := budget.Check(what, says, limit, try); err != nil {
		return nil, err
	}
	const first = 1 << 20 // bytes that are taken at once
	out := make([]byte, 0, max(1, min(says, first)))
	var r io.Reader = bytes.NewReader(b)
	var err error
	switch codec {
	case format.Gzip:
		r, err = gzip.NewReader(r)
	case format.Brotli:
		r = brotli.NewReader(r)
	case format.Zstd:
		d := zstdReaders.Get().(*zstd.Decoder)
		defer zstdReaders.Put(d)
		r, err = d, d.Reset(r)
	default: // which make little of a byte
		return parquet.LookupCompressionCodec(codec).Decode(out, b)
	}
	if err != nil {
		return nil, err
	}
	buffer := bytes.NewBuffer(out)
	_, err = buffer.ReadFrom(budget.Reader(r, what, limit, try))
	return buffer.Bytes(), err
}

// zstdReaders are decoders with their memory, for a goroutine at a time.
var zstdReaders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil { // of options that do not fit
		panic(err)
	}
	return d
}}
