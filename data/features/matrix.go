package features

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/internal/words"
)

// Matrix is a table of N rows of D numbers in a file, read row by row. It may be used by
// several goroutines.
type Matrix struct {
	path        string
	rows, width int
	shape       []int // of a row; its product is width
	axes        int   // of the array
	dtype       safetensors.DType
	start       int64 // first byte of the data
	rowIsMatrix bool  // an array of one axis is a row
	convert     func(dst []float32, b []byte)

	file     *os.File
	mapped   []byte // the file in memory; nil: rows are read from it
	inflated bool   // mapped is not a file but memory, which start counts from
	gone     error  // says that mapped cannot be read any more
	bytes    sync.Pool
}

// OpenMatrix opens a matrix of floats, a row after another:
//
//	.npy           the array
//	.npz           the member that tensor names
//	.safetensors   the tensor of that name
//	.pt, .pth      the tensor of that name in a file of torch.save
//
// An empty tensor is the only one. It reads the header alone, and a compressed member of a .npz file
// as a whole. It fails where that is not a matrix of floats, or the file has not as many bytes as it
// says. Close it after use.
func OpenMatrix(path, tensor string) (*Matrix, error) { return openMatrix(path, tensor, files.Map) }

// OpenArray is OpenMatrix of an array of so many axes, 2 or more: a row of the matrix is what the first
// axis counts, see RowShape.
func OpenArray(path, tensor string, axes int) (*Matrix, error) {
	return openArray(path, tensor, axes, files.Map)
}

func openMatrix(path, tensor string, mapping func(*os.File, int64) []byte) (*Matrix, error) {
	return openArray(path, tensor, 2, mapping)
}

func openArray(path, tensor string, axes int, mapping func(*os.File, int64) []byte) (*Matrix, error) {
	m := &Matrix{path: path, axes: axes}
	if err := m.open(tensor, mapping); err != nil {
		return nil, err
	}
	return m, nil
}

// open is openMatrix of m.path.
func (m *Matrix) open(tensor string, mapping func(*os.File, int64) []byte) (err error) {
	path := m.path
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case ext == ".npy" && tensor != "":
		return fmt.Errorf("features: %s is a .npy file, which holds one array: name no tensor (got %q)", path, tensor)
	case ext == ".npy":
		err = m.openNPY()
	case ext == ".npz":
		err = m.openNPZ(tensor)
	case ext == ".safetensors":
		err = m.openSafetensors(tensor)
	case ext == ".pt" || ext == ".pth":
		err = m.openTorch(tensor)
	case converted(path):
		return fmt.Errorf(
			"features: %s must be converted before it can be read: name a folder for the copy in data.cache_dir", path)
	default:
		return fmt.Errorf("features: %s: a file of features must end in .npy, .npz, .safetensors, .pt, .pth or "+
			".parquet (got %q)", path, ext)
	}
	if err == nil {
		m.convert, err = safetensors.Floats(m.dtype)
	}
	var size int64
	if err == nil {
		size, err = m.checkSize()
	}
	if err != nil {
		if m.file != nil {
			m.file.Close()
		}
		if _, isPath := errors.AsType[*os.PathError](err); isPath {
			return fmt.Errorf("features: %w", words.Short(err))
		}
		return fmt.Errorf("features: %s: %w", path, words.Short(err))
	}
	if !m.inflated {
		m.mapped = mapping(m.file, size)
	}
	m.gone = fmt.Errorf("features: %s can no longer be read: it was changed or its disk fails", path)
	m.bytes.New = func() any { b := make([]byte, m.width*m.dtype.Size()); return &b }
	return nil
}

// openNPY reads the header of a .npy file.
func (m *Matrix) openNPY() (err error) {
	if m.file, _, err = files.Open(m.path, 0); err != nil {
		return err
	}
	h, err := readNPYHeader(m.file)
	if err != nil {
		return err
	}
	return m.takeNPY(h, 0)
}

// takeNPY takes what the header of a .npy file that begins at a byte of the file says.
func (m *Matrix) takeNPY(h npyHeader, begin int64) error {
	t, ok := npyTypes[h.descr]
	switch {
	case strings.HasPrefix(h.descr, "|O"), h.descr == "O":
		return fmt.Errorf("it holds Python objects (type %q), which are pickled and not read: save a matrix of "+
			"numbers, as numpy.save(file, numpy.stack(rows).astype('<f4'), allow_pickle=False) does", h.descr)
	case strings.HasPrefix(h.descr, ">"):
		return fmt.Errorf("its numbers are big-endian (type %q): save them as <f2, <f4 or <f8, as numpy.save(file, "+
			"x.astype('<f4')) does", h.descr)
	case !ok:
		return fmt.Errorf("its numbers are of type %q: save them as <f2, <f4 or <f8, as numpy.save(file, "+
			"x.astype('<f4')) does", h.descr)
	}
	m.dtype, m.start = t, begin+h.start
	if err := m.setShape(h.shape); err != nil {
		return err
	}
	if h.fortran && m.rows > 1 && m.width > 1 {
		return fmt.Errorf("its rows do not lie together (fortran_order): save numpy.ascontiguousarray(x)")
	}
	return nil
}

// openSafetensors finds a tensor.
func (m *Matrix) openSafetensors(name string) error {
	f, err := safetensors.Open(m.path)
	if err != nil {
		return err
	}
	defer f.Close()
	var names []string
	for _, t := range f.Tensors() {
		names = append(names, t.Name)
	}
	if name, err = choose(name, names); err != nil {
		return err
	}
	info, _ := f.Lookup(name)
	m.dtype = info.DType
	m.start, _, _ = f.Span(name)
	if err := m.setShape(info.Shape); err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	m.file, _, err = files.Open(m.path, 0)
	return err
}

// choose returns the tensor of a name among those of a file, or its only one.
func choose(name string, names []string) (string, error) {
	switch {
	case name == "" && len(names) == 1:
		return names[0], nil
	case name == "":
		return "", fmt.Errorf("it holds the tensors %s: name one of them", list(names))
	case !slices.Contains(names, name):
		return "", fmt.Errorf("it has no tensor %q: it holds %s", name, list(names))
	}
	return name, nil
}

// list names some tensors of a file.
func list(names []string) string {
	const most = 8
	if len(names) == 0 {
		return "none"
	}
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, words.Shown(name))
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// maxRows is the most rows that int32 numbers.
const maxRows = math.MaxInt32

// setShape takes the sizes of a matrix.
func (m *Matrix) setShape(shape []int) error {
	switch ok := len(shape) == m.axes && slices.Min(shape) > 0; {
	case !ok && m.axes == 2:
		return fmt.Errorf("its shape is %v: a row for each pair and a column for each channel are needed", shape)
	case !ok:
		return fmt.Errorf("its shape is %v: %d axes are needed, none of them empty, of which the first counts the "+
			"images", shape, m.axes)
	}
	m.rows, m.width, m.shape = shape[0], 1, slices.Clone(shape[1:])
	for _, n := range m.shape {
		if n > maxRows/m.width {
			m.width = maxRows + 1
			break
		}
		m.width *= n
	}
	if m.rows > maxRows || m.width > maxRows {
		return fmt.Errorf("its shape %v is too large: at most %d rows and columns can be read", shape, maxRows)
	}
	return nil
}

// checkSize compares the bytes of the file with what its header says.
func (m *Matrix) checkSize() (int64, error) {
	have := int64(len(m.mapped))
	if !m.inflated {
		info, err := m.file.Stat()
		if err != nil {
			return 0, err
		}
		have = info.Size()
	}
	row := int64(m.width) * int64(m.dtype.Size())
	if int64(m.rows) > (math.MaxInt64-m.start)/row {
		return 0, fmt.Errorf("its shape [%d %d] overflows", m.rows, m.width)
	}
	want := m.start + int64(m.rows)*row
	switch size := have; {
	case size < want:
		return 0, fmt.Errorf("it is cut short: %d rows of %d numbers need %d bytes (got %d): copy it again", m.rows,
			m.width, want, size)
	case size > want && (m.inflated || strings.EqualFold(filepath.Ext(m.path), ".npy")):
		return 0, fmt.Errorf("%d bytes follow its %d rows of %d numbers: save one array in a file", size-want, m.rows,
			m.width)
	}
	return want, nil
}

// Path returns the file.
func (m *Matrix) Path() string { return m.path }

// Rows returns N.
func (m *Matrix) Rows() int { return m.rows }

// Width returns D.
func (m *Matrix) Width() int { return m.width }

// RowShape returns the axes of the array behind the first: (D) of a matrix.
func (m *Matrix) RowShape() []int { return slices.Clone(m.shape) }

// Type names the type of the numbers in the file, such as F16.
func (m *Matrix) Type() string { return string(m.dtype) }

// Row reads row i into dst (D). It fails with a *NonFiniteError where a number is not
// finite, or too large for float32.
func (m *Matrix) Row(i int, dst []float32) error {
	if i < 0 || i >= m.rows || len(dst) != m.width {
		return fmt.Errorf("features: %s: there is no row %d of %d numbers among %d of %d", m.path, i, len(dst), m.rows,
			m.width)
	}
	if err := m.read(i, dst); err != nil {
		return err
	}
	for k, v := range dst {
		if v-v != 0 { // NaN or an infinity
			return &NonFiniteError{Path: m.path, Row: i, Column: k, Value: v}
		}
	}
	return nil
}

func (m *Matrix) read(i int, dst []float32) (err error) {
	n := m.width * m.dtype.Size()
	at := m.start + int64(i)*int64(n)
	if b := m.mapped; b != nil {
		defer files.RecoverFault(&err, m.gone, debug.SetPanicOnFault(true))
		m.convert(dst, b[at:at+int64(n)])
		return nil
	}
	b := m.bytes.Get().(*[]byte)
	defer m.bytes.Put(b)
	if got, err := m.file.ReadAt(*b, at); got < n {
		return fmt.Errorf("features: %s: row %d: %w", m.path, i, err)
	}
	m.convert(dst, *b)
	return nil
}

// Close gives the file back. No row may be read any more.
func (m *Matrix) Close() error {
	var err error
	if m.mapped != nil && !m.inflated {
		err = files.Unmap(m.mapped)
	}
	m.mapped = nil
	return errors.Join(err, m.file.Close())
}

// NonFiniteError says that a row holds a number that no training can use.
type NonFiniteError struct {
	Path   string
	Row    int
	Column int
	Value  float32
}

// Error names the row.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("features: %s: row %d is not finite (got %v in column %d): compute it again or remove the pair "+
		"from both files", e.Path, e.Row, e.Value, e.Column)
}
