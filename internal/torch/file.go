package torch

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/internal/words"
)

// Tensor is where a tensor lies in a file.
type Tensor struct {
	// keys of the dictionaries and numbers of the lists around it, joined by dots; empty for a file that is one tensor
	Name    string
	DType   safetensors.DType
	Shape   []int
	Strides []int // elements from one index of an axis to the next
	Offset  int64 // first byte of the tensor in the file
}

// Len returns the number of elements.
func (t Tensor) Len() int { return safetensors.Info{Shape: t.Shape}.Len() }

// Contiguous says whether the elements lie together in the order of the indices, from Offset on.
func (t Tensor) Contiguous() bool {
	want := 1
	for i := len(t.Shape) - 1; i >= 0; i-- {
		if t.Shape[i] != 1 && t.Strides[i] != want && t.Len() > 0 {
			return false
		}
		want *= t.Shape[i]
	}
	return true
}

// File is a file of tensors that is open. It may be used by several goroutines.
type File struct {
	closer  io.Closer
	tensors []Tensor
	index   map[string]int
}

// Open reads the archive's directory and pickle at path. It fails for files of other formats, for
// objects that are not tensors, and where a tensor is not in the file as a whole. Close it after use.
func Open(path string) (*File, error) {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return nil, fmt.Errorf("torch: %w", err)
	}
	t, err := NewReader(f, size)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("torch: %s: %w", path, words.Short(err))
	}
	t.closer = f
	return t, nil
}

// Close closes the file.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Tensors lists the tensors in the order of the file.
func (f *File) Tensors() []Tensor { return slices.Clone(f.tensors) }

// Lookup returns the tensor of a name.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// maxPickle is the largest pickle that is read: those of models have some hundred bytes a tensor.
const maxPickle = 64 << 20

// NewReader reads directory and pickles of a file of size bytes.
func NewReader(r io.ReaderAt, size int64) (*File, error) {
	z, err := zip.NewReader(r, size)
	if errors.Is(err, zip.ErrFormat) {
		return readLegacy(r, size)
	}
	if err != nil {
		return nil, err
	}
	a, err := newArchive(z, size)
	if err != nil {
		return nil, err
	}
	text, err := a.read("data.pkl", maxPickle)
	if err != nil {
		return nil, err
	}
	root, err := unpickle(text)
	if err != nil {
		return nil, fmt.Errorf("data.pkl: %w", err)
	}
	return collect(root, a.span)
}

// archive is the members of a file.
type archive struct {
	folder  string // that all of them are in, with a slash
	members map[string]*zip.File
	size    int64 // of the file
}

func newArchive(z *zip.Reader, size int64) (*archive, error) {
	a := &archive{members: map[string]*zip.File{}, size: size}
	for _, m := range z.File {
		if _, twice := a.members[m.Name]; twice {
			return nil, fmt.Errorf("it has %q twice", m.Name)
		}
		a.members[m.Name] = m
		if folder, ok := strings.CutSuffix(m.Name, "data.pkl"); ok && strings.Count(m.Name, "/") == 1 &&
			strings.HasSuffix(folder, "/") {
			if a.folder != "" {
				return nil, fmt.Errorf("it has two pickles, %sdata.pkl and %s", a.folder, m.Name)
			}
			a.folder = folder
		}
	}
	if a.folder == "" {
		return nil, errors.New("it is a zip archive without data.pkl: none of torch.save")
	}
	if _, ok := a.members[a.folder+"byteorder"]; ok {
		order, err := a.read("byteorder", 16)
		if err != nil {
			return nil, err
		}
		if string(order) != "little" {
			return nil, fmt.Errorf("its numbers are stored in the byte order %.16q: save it again on a machine whose order is little", order)
		}
	}
	return a, nil
}

// read returns a member of at most most bytes.
func (a *archive) read(name string, most uint64) ([]byte, error) {
	m, ok := a.members[a.folder+name]
	if !ok {
		return nil, fmt.Errorf("it has no %s", name)
	}
	if m.Method != zip.Store { // a small file could hold a pickle that takes all memory
		return nil, fmt.Errorf("its %s is compressed, which torch.save does not do: save it again", name)
	}
	if m.UncompressedSize64 > most {
		return nil, fmt.Errorf("its %s has %d bytes, more than the %d that are read", name, m.UncompressedSize64, most)
	}
	r, err := m.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// span returns the first byte of a storage of n bytes.
func (a *archive) span(key string, n int64) (int64, error) {
	m, ok := a.members[a.folder+"data/"+key]
	switch {
	case !ok:
		return 0, fmt.Errorf("the bytes of storage %.40q are not in it: copy it again", key)
	case m.Method != zip.Store:
		return 0, fmt.Errorf("storage %q is compressed, which torch.save does not do: save it again", key)
	case m.UncompressedSize64 != uint64(n) || m.CompressedSize64 != uint64(n):
		return 0, fmt.Errorf("storage %q has %d bytes and needs %d: copy it again", key, m.UncompressedSize64, n)
	}
	at, err := m.DataOffset()
	if err != nil {
		return 0, fmt.Errorf("storage %q: %w", key, err)
	}
	if at > a.size-n { // archive/zip looks at the directory alone
		return 0, fmt.Errorf("storage %q needs %d bytes from %d on, and the file has %d: copy it again", key, n, at,
			a.size)
	}
	return at, nil
}
