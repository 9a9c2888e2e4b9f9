package parquetfile

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// checkCodec refuses a column whose pages the library does not read rightly. It takes the codec of the first row group
// for all. Of LZ4 it gives other bytes where a page is not smaller than a third of what it holds
// (parquet-go issue 608, in v0.32.0), and takes ever more memory for a page that is damaged.
func checkCodec(f *parquet.File, leaf *parquet.Column) error {
	groups := f.Metadata().RowGroups
	for i := range groups {
		switch codec, first := groups[i].Columns[leaf.Index()].MetaData.Codec,
			groups[0].Columns[leaf.Index()].MetaData.Codec; {
		case codec == format.Lz4Raw:
			return unread(leaf, "is compressed by LZ4")
		case codec != first:
			return unread(leaf, fmt.Sprintf("is compressed by %s in row group 0 and by %s in row group %d", first,
				codec, i))
		}
	}
	return nil
}

func unread(leaf *parquet.Column, what string) error {
	return notSupported(leaf, what, "the file anew with one of snappy, zstd, gzip, brotli or none")
}
