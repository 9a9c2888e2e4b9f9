package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// plainDictionary is what older writers call the encoding of a dictionary, and of the places in it.
const plainDictionary format.Encoding = 2

// checkEncoded checks values behind the levels of a page that has n with those that are null.
func checkEncoded(b []byte, encoding format.Encoding, n int64) error {
	switch encoding {
	case plainDictionary, format.RLEDictionary:
		if len(b) == 0 {
			return nil
		}
		return checkRuns(b[1:], int(b[0]), n)
	case format.RLE: // of booleans
		in, _, err := prefixed(b)
		if err != nil {
			return err
		}
		if err := checkRuns(in, 1, n); err != nil {
			return err
		}
		return checkTruth(in)
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		_, err := checkDeltas(b, n)
		return err
	case format.DeltaByteArray: // lengths of what a text shares with the one before it, and of what follows
		b, err := checkDeltas(b, n)
		if err == nil {
			_, err = checkDeltas(b, n)
		}
		return err
	}
	return nil // values of a fixed size, and bytes behind their number
}

// checkRuns checks that runs of values of some bits take no more memory than n values and the bytes that are there can.
// A run begins with twice the number of times that the value behind it is to be repeated, or with twice the number of
// groups of eight values behind it, plus one. Repeated values are no more than n. Groups may go on behind the last
// value (DuckDB fills up 256 of them): they have bytes for each value, but for those of no bits.
func checkRuns(b []byte, width int, n int64) error {
	var w = walker{rest: b}
	for repeated := uint64(0); len(w.rest) > 0; {
		run, err := w.varint()
		if err != nil {
			return err
		}
		count, bytes := run>>1, uint64(width+7)/8
		if packed := run&1 != 0; packed && width > 0 {
			if count > uint64(len(w.rest)) {
				return errShort
			}
			bytes = count * uint64(width)
		} else {
			if count > uint64(n)+paddedValues {
				return moreValues(count, n)
			}
			if packed {
				count, bytes = 8*count, 0
			}
			if repeated += count; repeated > uint64(n)+paddedValues {
				return moreValues(repeated, n)
			}
		}
		if err := w.skip(bytes); err != nil {
			return err
		}
	}
	return nil
}

// checkTruth refuses runs of truth values that the library misreads: it repeats the byte of a repeated value in the
// place of its bit, so that eight times true, which pyarrow writes as 1, become one, and takes such a run to end with a
// byte where others follow.
func checkTruth(b []byte) error {
	w := walker{rest: b}
	for ragged := false; len(w.rest) > 0; {
		run, err := w.varint()
		if err != nil {
			return err
		}
		count, bytes := run>>1, uint64(1)
		wrong := ragged && count > 0
		if run&1 != 0 {
			bytes = count
		} else {
			ragged = count%8 != 0
			wrong = wrong || len(w.rest) > 0 && count > 1 && w.rest[0] != 0 && w.rest[0] != 0xff
		}
		if wrong {
			return unsupported{errors.New(
				"not supported: it holds runs of truth values: write the file anew with data_page_version 1.0, or truth values as numbers")}
		}
		if err := w.skip(bytes); err != nil {
			return err
		}
	}
	return nil
}

// paddedValues is how many values that are repeated, or take no bits, may follow the last one of a page: the rest of a
// group of eight.
const paddedValues = 7

// checkDeltas checks that differences of whole numbers are no more than n, and returns what is behind them. They begin
// with the numbers of values in a block, of parts of a block and of values, and with the first value. A block has the
// least difference, a byte for each part with the number of its bits, and the parts.
func checkDeltas(b []byte, n int64) ([]byte, error) {
	w := walker{rest: b}
	var head [4]uint64
	for i := range head {
		var err error
		if head[i], err = w.varint(); err != nil {
			return nil, err
		}
	}
	block, parts, total := head[0], head[1], head[2]
	if total > uint64(n) {
		return nil, moreValues(total, n)
	}
	if parts == 0 || block > 1<<16 || block/parts == 0 {
		return nil, fmt.Errorf("it says that %d differences are in %d parts", block, parts)
	}
	for left := int64(total) - 1; left > 0 && len(w.rest) > 0; {
		if _, err := w.varint(); err != nil {
			return nil, err
		}
		widths := w.rest
		if err := w.skip(parts); err != nil {
			return nil, err
		}
		for _, width := range widths[:parts] {
			if left <= 0 {
				break
			}
			if err := w.skip(min(block/parts*uint64(width)/8, uint64(len(w.rest)))); err != nil {
				return nil, err
			}
			left -= int64(block / parts)
		}
	}
	return w.rest, nil
}

func moreValues(n uint64, most int64) error {
	return fmt.Errorf("it says that it holds %d values, and has %d", n, most)
}

// checkSnappy checks how many bytes some compressed ones say that they hold, before the library takes memory for these.
func checkSnappy(b []byte) error {
	n, length := binary.Uvarint(b)
	if len(b) > 0 && (length <= 0 || n > snappyRatio*uint64(len(b))) {
		return fmt.Errorf("its %d compressed bytes say that they hold %d", len(b), n)
	}
	return nil
}
