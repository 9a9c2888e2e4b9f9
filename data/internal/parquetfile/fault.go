package parquetfile

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// unsupported is an error of a file that may be sound, and has what is not read.
type unsupported struct{ error }

// notSupported is the error of a column that another program may read: what of it is not read, and what to write in its
// place.
func notSupported(leaf *parquet.Column, what, instead string) error {
	return unsupported{fmt.Errorf("column %q is not supported: it %s: write %s", leaf.Path()[0], what, instead)}
}

// Fault adds to an error of reading what to do: to copy the file again, but for what is not supported.
func Fault(err error) error {
	if _, is := errors.AsType[unsupported](err); is {
		return err
	}
	if errors.Is(err, encoding.ErrNotSupported) {
		return unsupported{fmt.Errorf("not supported: %w: write the file anew with pyarrow", err)}
	}
	return fmt.Errorf("%w: copy the file again", err)
}
