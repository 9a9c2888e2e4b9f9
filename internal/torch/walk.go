package torch

import (
	"fmt"
	"math"
)

// Bounds of what a file may hold: a list that holds itself has no end, and one of lists of one list
// has more tensors than bytes.
const (
	maxDepth  = 32
	maxValues = 1 << 20
	maxNames  = 256 << 20 // bytes of all names
)

// walker collects the tensors of a value.
type walker struct {
	span   func(key string, n int64) (int64, error) // the first byte of a storage of n bytes
	file   *File
	values int
	names  int
}

// collect returns the tensors of what a pickle made, whose storages begin where span says.
func collect(root any, span func(key string, n int64) (int64, error)) (*File, error) {
	w := walker{span: span, file: &File{index: map[string]int{}}}
	if err := w.walk("", root, 0); err != nil {
		return nil, err
	}
	return w.file, nil
}

// walk adds the tensors of v, which has a name.
func (w *walker) walk(name string, v any, depth int) error {
	w.values++
	w.names += len(name)
	if w.values > maxValues || depth > maxDepth || w.names > maxNames {
		return fmt.Errorf("it has more than %d values, more than %d in each other, or names of more than %d bytes",
			maxValues, maxDepth, maxNames)
	}
	at := func(key any) string {
		if name == "" {
			return fmt.Sprint(key)
		}
		return fmt.Sprint(name, ".", key)
	}
	switch x := v.(type) {
	case *dict:
		for i, key := range x.keys {
			if err := w.walk(at(key), x.values[i], depth+1); err != nil {
				return err
			}
		}
	case *list:
		return w.items(at, x.items, depth)
	case tuple:
		return w.items(at, x, depth)
	case stored:
		return w.add(name, x)
	}
	return nil
}

func (w *walker) items(at func(key any) string, items []any, depth int) error {
	for i, v := range items {
		if err := w.walk(at(i), v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// add adds a tensor.
func (w *walker) add(name string, t stored) error {
	if _, twice := w.file.index[name]; twice {
		return fmt.Errorf("two tensors have the name %.80q", name)
	}
	size := int64(t.storage.dtype.Size())
	if t.storage.n > math.MaxInt64/size {
		return fmt.Errorf("tensor %.80q: its storage of %d elements overflows", name, t.storage.n)
	}
	begin, err := w.span(t.storage.key, t.storage.n*size)
	if err != nil {
		return fmt.Errorf("tensor %.80q: %w", name, err)
	}
	w.file.index[name] = len(w.file.tensors)
	w.file.tensors = append(w.file.tensors, Tensor{Name: name, DType: t.storage.dtype, Shape: t.shape,
		Strides: t.strides, Offset: begin + t.start*size})
	return nil
}
