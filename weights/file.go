package weights

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/internal/torch"
)

// Tensor is a tensor of a file.
type Tensor struct {
	Name  string
	Shape []int  // empty: a scalar
	DType string // as safetensors spells it: F32, BF16, I64, ...

	file    *shard
	offset  int64    // of its first element
	strides []int    // elements from one index of an axis to the next; nil: they lie together
	adapter *lowRank // what is added to the elements; nil: nothing
}

// Len returns the number of elements.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// shard is a file that is open.
type shard struct {
	path string
	part bool // of a model in several
	r    io.ReaderAt
	file io.Closer
}

// File is the tensors of a model, in one file or several shards. It may be used by several goroutines.
type File struct {
	Path string

	shards  []*shard
	tensors map[string]*Tensor
}

// OpenFile opens the weights at path: a file, an index of shards, or a folder that has one of either
// under a name of Hugging Face or open_clip. What wraps the weights of a checkpoint is left out of
// the names: model. and state_dict. in files of PyTorch, and module. of a model that was trained on several
// devices; LayerNorm.gamma and beta of old files are weight and bias. Close it after use.
func OpenFile(path string) (*File, error) {
	at, err := locate(path)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	f := &File{Path: at, tensors: map[string]*Tensor{}}
	if strings.HasSuffix(at, indexSuffix) {
		err = f.openShards()
	} else {
		_, err = f.add(at, false)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("weights: %w", err)
	}
	return f, nil
}

// Close closes all shards.
func (f *File) Close() error {
	var errs []error
	for _, s := range f.shards {
		errs = append(errs, s.file.Close())
	}
	f.shards = nil
	return errors.Join(errs...)
}

// Names lists the names of the tensors in order.
func (f *File) Names() []string {
	return slices.Sorted(maps.Keys(f.tensors))
}

// Lookup returns the tensor of a name.
func (f *File) Lookup(name string) (*Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// add opens a file, a shard of several with part, and adds its tensors.
func (f *File) add(path string, part bool) ([]*Tensor, error) {
	r, size, err := files.Open(path, 0)
	if err != nil {
		return nil, err
	}
	return f.addShard(&shard{path: path, part: part, r: r, file: r}, size)
}

// addShard adds the tensors of an open file of size bytes.
func (f *File) addShard(s *shard, size int64) ([]*Tensor, error) {
	f.shards = append(f.shards, s)
	list, err := s.tensors(size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	for _, t := range list {
		if other, twice := f.tensors[t.Name]; twice {
			if other.file == s {
				return nil, fmt.Errorf("%s: two tensors have the name %q without what wraps them: save one of the models alone", s.path, t.Name)
			}
			return nil, fmt.Errorf("tensor %q is in %s and in %s: download the shards of one model again", t.Name,
				other.file.path, s.path)
		}
		f.tensors[t.Name] = t
	}
	return list, nil
}

// tensors reads the directory of a file, whose format its first bytes tell.
func (s *shard) tensors(size int64) (list []*Tensor, err error) {
	var head [9]byte // a length of eight bytes, any numbers, and {, in a safetensors file
	n, err := s.r.ReadAt(head[:], 0)
	switch first := string(head[:n]); {
	case err != nil && err != io.EOF:
		return nil, err
	case n < len(head):
		return nil, fmt.Errorf("it has %d bytes and no tensors: copy it again", size)
	case head[8] == '{':
	case head[0] == 0x80 || strings.HasPrefix(first, "PK"):
		return s.torch(size)
	case strings.HasPrefix(first, "GGUF"):
		return nil, errors.New("it is a GGUF file of llama.cpp, which is not read: take the safetensors of the same model")
	case first == "version h":
		return nil, errors.New("it is a pointer of Git LFS, not the file itself: git lfs pull fetches it")
	}
	f, err := safetensors.NewReader(s.r, size)
	if err != nil {
		return nil, err
	}
	for _, t := range f.Tensors() {
		offset, _, _ := f.Span(t.Name)
		list = append(list, &Tensor{Name: t.Name, Shape: t.Shape, DType: string(t.DType), file: s, offset: offset})
	}
	return unwrapped(list), nil
}

// torch reads a file of torch.save.
func (s *shard) torch(size int64) (list []*Tensor, err error) {
	f, err := torch.NewReader(s.r, size)
	if err != nil {
		return nil, err
	}
	for _, t := range f.Tensors() {
		x := &Tensor{Name: t.Name, Shape: t.Shape, DType: string(t.DType), file: s, offset: t.Offset}
		if !t.Contiguous() {
			x.strides = t.Strides
		}
		list = append(list, x)
	}
	for _, key := range []string{"state_dict.", "model_state_dict.", "model."} {
		if inner := below(list, key); len(inner) > 0 && !s.part {
			return unwrapped(inner), nil
		}
	}
	return unwrapped(list), nil
}

// unwrapped returns the tensors without the prefixes that all of them have from wrappers of a model,
// under the names of today.
func unwrapped(list []*Tensor) []*Tensor {
	for again := len(list) > 0; again; { // one may be within the other
		again = false
		for _, wrapper := range []string{"module.", "_orig_mod."} {
			if inner := below(list, wrapper); len(inner) == len(list) {
				list, again = inner, true
			}
		}
	}
	for _, t := range list {
		if name, old := strings.CutSuffix(t.Name, ".LayerNorm.gamma"); old {
			t.Name = name + ".LayerNorm.weight"
		} else if name, old := strings.CutSuffix(t.Name, ".LayerNorm.beta"); old {
			t.Name = name + ".LayerNorm.bias"
		}
	}
	return list
}

// below returns the tensors whose names begin with prefix, without it.
func below(list []*Tensor, prefix string) (inner []*Tensor) {
	for _, t := range list {
		if name, ok := strings.CutPrefix(t.Name, prefix); ok {
			x := *t
			x.Name = name
			inner = append(inner, &x)
		}
	}
	return inner
}
