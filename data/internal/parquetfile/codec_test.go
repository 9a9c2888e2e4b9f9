package parquetfile

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"
)

// written is a file with a column of texts compressed by a codec, in two row groups, of numbers that no codec makes much smaller.
func written(t *testing.T, codec compress.Codec) ([]byte, []string) {
	t.Helper()
	type row struct {
		Text string `parquet:"text"`
	}
	noise := rand.NewChaCha8([32]byte{})
	var b bytes.Buffer
	var texts []string
	w := parquet.NewGenericWriter[row](&b, parquet.Compression(codec))
	for range 2 {
		text := make([]byte, 1<<16)
		_, _ = noise.Read(text[:3<<14])
		copy(text[3<<14:], text)
		texts = append(texts, string(text))
		if _, err := w.Write([]row{{string(text)}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), texts
}

// texts reads the column of texts, whatever its codec.
func texts(f *parquet.File) (list []string, err error) {
	defer Recovered(&err)
	for g := range f.RowGroups() {
		if list, err = chunkTexts(&Chunk{file: f, leaf: f.Root().Column("text"), group: g}, list); err != nil {
			return list, err
		}
	}
	return list, nil
}

func chunkTexts(c *Chunk, list []string) (_ []string, err error) {
	pages, err := c.Pages()
	if err != nil {
		return list, err
	}
	return pageTexts(pages, list)
}

// pageTexts reads the rest of the pages, and closes them.
func pageTexts(pages parquet.Pages, list []string) (_ []string, err error) {
	defer func() { err = errors.Join(err, pages.Close()) }()
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		values := make([]parquet.Value, page.NumValues())
		if _, err := page.Values().ReadValues(values); err != nil && err != io.EOF {
			return list, err
		}
		for _, v := range values {
			list = append(list, v.String())
		}
		parquet.Release(page)
	}
}

// TestCodecs: what is taken is read rightly, and what is refused is not.
func TestCodecs(t *testing.T) {
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Brotli, &parquet.Zstd, &parquet.Lz4Raw} {
		b, want := written(t, codec)
		f, err := open(b)
		if err != nil {
			t.Fatal(err)
		}
		_, refused := Chunks(f, f.Root().Column("text"))
		got, err := texts(f)
		right := err == nil && strings.Join(got, "") == strings.Join(want, "")
		if right != (refused == nil) {
			t.Errorf("%v: refused by %v, and read rightly is %v (%v)", codec, refused, right, err)
		}
		if refused != nil && !strings.Contains(refused.Error(), `column "text" is not supported: it is compressed by LZ4: write the file anew with one of snappy`) {
			t.Error(refused)
		}
	}
	b, _ := written(t, &parquet.Snappy)
	f, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	f.Metadata().RowGroups[1].Columns[0].MetaData.Codec = format.Zstd
	if _, err := Chunks(f, f.Root().Column("text")); err == nil || !strings.Contains(err.Error(), `is compressed by SNAPPY in row group 0 and by ZSTD in row group 1`) {
		t.Error(err)
	}
}
