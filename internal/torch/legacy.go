package torch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The legacy format is pickles, one after another: a magic number, a version, facts on the machine that
// wrote, the object, the keys of the storages. Then come the storages in the order of these keys, each
// its number of elements in eight bytes and its numbers.

// legacyMagic is the pickle of the magic number after the version of the pickle.
const legacyMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."

// legacyVersion is the version of the format that all of PyTorch wrote.
const legacyVersion = 1001

// readLegacy reads a file that is not a zip archive.
func readLegacy(r io.ReaderAt, size int64) (*File, error) {
	head := make([]byte, 2+1+8+len(legacyMagic))
	n, _ := r.ReadAt(head, 0)
	head = head[:n]
	from := min(n, 2)
	if n > 2 && head[2] == frame { // of version 4 and later of pickles
		from = min(n, 2+1+8)
	}
	switch {
	case n > 0 && head[0] == proto && bytes.HasPrefix(head[from:], []byte(legacyMagic)):
	case n >= 2 && head[0] == proto:
		return nil, errors.New("it is a plain pickle, or of a format before PyTorch 0.4, which are not read: load it in Python and torch.save it again")
	default:
		return nil, errors.New("it is not a file of torch.save, or it was cut short: its directory, at the end, is not there")
	}
	t := &tape{r: r, size: size, at: int64(from + len(legacyMagic))}
	version, _, err := t.pickle("its version")
	if err != nil {
		return nil, err
	}
	if version != any(int64(legacyVersion)) {
		return nil, fmt.Errorf("it has version %v of the legacy format, and %d is read", version, legacyVersion)
	}
	facts, _, err := t.pickle("its facts on the machine")
	if err != nil {
		return nil, err
	}
	if d, ok := facts.(*dict); !ok || d.get("little_endian") != any(true) {
		return nil, errors.New("its numbers are not stored in the byte order little: save it again on a machine whose order it is")
	}
	root, storages, err := t.pickle("its object")
	if err != nil {
		return nil, err
	}
	spans, err := t.storages(storages)
	if err != nil {
		return nil, err
	}
	return collect(root, func(key string, _ int64) (int64, error) {
		at, ok := spans[key]
		if !ok {
			return 0, fmt.Errorf("the bytes of storage %.40q are not in it: copy it again", key)
		}
		return at, nil
	})
}

// get returns the value of a key, nil without one.
func (d *dict) get(key any) any {
	if i, ok := d.at[key]; ok {
		return d.values[i]
	}
	return nil
}

// tape is a file that is read in order.
type tape struct {
	r        io.ReaderAt
	size, at int64
}

// pickle reads the pickle that comes next. Its end is in it: more is read until it is found.
func (t *tape) pickle(what string) (any, map[string]storage, error) {
	for most := int64(64 << 10); ; most *= 8 {
		text := make([]byte, min(most, maxPickle, t.size-t.at))
		if _, err := t.r.ReadAt(text, t.at); err != nil && err != io.EOF {
			return nil, nil, fmt.Errorf("%s: %w", what, err)
		}
		m := newMachine(text)
		v, err := m.run()
		if err == nil {
			t.at += int64(m.at)
			return v, m.storages, nil
		}
		if !errors.Is(err, errShort) || int64(len(text)) < most {
			return nil, nil, fmt.Errorf("%s: %w", what, err)
		}
	}
}

// storages reads the keys of storages, of which the object named some, and returns where each begins.
func (t *tape) storages(named map[string]storage) (map[string]int64, error) {
	v, _, err := t.pickle("its keys of storages")
	if err != nil {
		return nil, err
	}
	keys, ok := v.(*list)
	if !ok {
		return nil, errors.New("its keys of storages are not a list")
	}
	spans := map[string]int64{}
	for _, v := range keys.items {
		key, ok := v.(string)
		s, known := named[key]
		if _, twice := spans[key]; !ok || !known || twice {
			return nil, fmt.Errorf("it has a storage %.40q that no tensor is in, or has it twice", fmt.Sprint(v))
		}
		var b [8]byte
		if n, _ := t.r.ReadAt(b[:], t.at); n < len(b) {
			return nil, fmt.Errorf("it ends before storage %.40q: copy it again", key)
		}
		n, size := int64(binary.LittleEndian.Uint64(b[:])), int64(s.dtype.Size())
		t.at += int64(len(b))
		if n != s.n {
			return nil, fmt.Errorf("storage %.40q has %d elements and needs %d: copy it again", key, n, s.n)
		}
		if n > (t.size-t.at)/size {
			return nil, fmt.Errorf("it ends within storage %.40q: copy it again", key)
		}
		spans[key] = t.at
		t.at += n * size
	}
	return spans, nil
}
