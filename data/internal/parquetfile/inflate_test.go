package parquetfile

import (
	"errors"
	"testing"

	"github.com/geoalign/geoalign/internal/budget"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// TestInflate: what a page becomes is bound by its bytes, whatever its header says, and memory is taken for no more.
func TestInflate(t *testing.T) {
	for _, codec := range []format.CompressionCodec{format.Gzip, format.Zstd, format.Brotli, format.Snappy} {
		c := parquet.LookupCompressionCodec(codec)
		small := []byte("a page of some bytes, some bytes, some bytes")
		b, err := c.Encode(nil, small)
		if err != nil {
			t.Fatal(err)
		}
		for _, says := range []int64{0, int64(len(small))} {
			if out, err := inflate(codec, b, says); err != nil || string(out) != string(small) {
				t.Errorf("%v: %q, %v", codec, out, err)
			}
		}
		if codec == format.Snappy {
			continue
		}
		if b, err = c.Encode(nil, make([]byte, 400<<20)); err != nil {
			t.Fatal(err)
		}
		for _, says := range []int64{1, 400 << 20} {
			before := allocated()
			out, err := inflate(codec, b, says)
			took := allocated() - before
			if over := new(budget.Error); !errors.As(err, &over) || took > 4*(pageFree+pageRatio*uint64(len(b))) {
				t.Errorf("%v of %d bytes that says %d: %d bytes, %v, took %d MB", codec, len(b), says, len(out), err, took>>20)
			}
		}
	}
}
