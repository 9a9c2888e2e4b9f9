package features

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/internal/safetensors"
)

// The .npy format (numpy.lib.format): the magic bytes, a version, the length of a header
// in little endian, and the header, a Python dictionary in ASCII or UTF-8:
//
//	{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }

// npyMagic begins every .npy file.
const npyMagic = "\x93NUMPY"

// maxNPYHeader is the largest header accepted; those of matrices have 118 bytes.
const maxNPYHeader = 1 << 16

// npyTypes are the element types that can be read.
var npyTypes = map[string]safetensors.DType{"<f2": safetensors.F16, "<f4": safetensors.F32, "<f8": safetensors.F64}

// npyHeader is what the header of a .npy file says.
type npyHeader struct {
	descr   string // type of an element, such as <f4; empty for a record
	fortran bool
	shape   []int
	start   int64 // first byte of the data
}

// readNPYHeader reads the header at the start of a file.
func readNPYHeader(r io.ReaderAt) (npyHeader, error) {
	var h npyHeader
	head := make([]byte, 12)
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return h, err
	}
	if n < len(npyMagic) || string(head[:len(npyMagic)]) != npyMagic {
		return h, fmt.Errorf("it does not begin as a .npy file does: save it with numpy.save")
	}
	if n < len(head) {
		return h, fmt.Errorf("it ends within its header: copy it again")
	}
	var size int
	switch major := head[6]; major {
	case 1:
		size, h.start = int(binary.LittleEndian.Uint16(head[8:])), 10
	case 2, 3:
		size, h.start = int(min(binary.LittleEndian.Uint32(head[8:]), maxNPYHeader+1)), 12
	default:
		return h, fmt.Errorf("it has version %d of the format, not 1, 2 or 3: save it with numpy.save", major)
	}
	if size > maxNPYHeader {
		return h, fmt.Errorf("its header has more than %d bytes: it holds no plain matrix", maxNPYHeader)
	}
	text := make([]byte, size)
	if n, err := r.ReadAt(text, h.start); n < size {
		if err == io.EOF {
			return h, fmt.Errorf("it ends within its header of %d bytes: copy it again", size)
		}
		return h, err
	}
	h.start += int64(size)
	return h, h.parse(text)
}

// Parts of a header. Values are read by pattern: a header holds no other quotes or
// parentheses unless it describes a record, which is not a matrix.
var (
	npyDict  = regexp.MustCompile(`^\s*\{(.*)\}\s*$`)
	npyEntry = regexp.MustCompile(`^\s*['"](\w+)['"]\s*:\s*('[^']*'|"[^"]*"|True|False|\([0-9,L\s]*\))\s*(?:,|$)`)
)

// parse reads the dictionary.
func (h *npyHeader) parse(text []byte) error {
	m := npyDict.FindSubmatch(bytes.ReplaceAll(text, []byte("\n"), []byte(" ")))
	if m == nil {
		return fmt.Errorf("its header is not a dictionary (%.60q)", text)
	}
	seen := map[string]string{}
	for rest := m[1]; len(bytes.TrimSpace(rest)) > 0; {
		e := npyEntry.FindSubmatch(rest)
		if e == nil {
			return fmt.Errorf("its header cannot be read from %.60q on: save a plain matrix of floats with numpy.save",
				rest)
		}
		if _, twice := seen[string(e[1])]; twice {
			return fmt.Errorf("its header has %s twice", e[1])
		}
		seen[string(e[1])] = string(e[2])
		rest = rest[len(e[0]):]
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if _, ok := seen[key]; !ok {
			return fmt.Errorf("its header lacks %s", key)
		}
	}
	h.descr = strings.Trim(seen["descr"], `'"`)
	switch v := seen["fortran_order"]; v {
	case "True", "False":
		h.fortran = v == "True"
	default:
		return fmt.Errorf("its header has the fortran_order %s, not True or False", v)
	}
	axes, ok := strings.CutPrefix(seen["shape"], "(")
	if !ok {
		return fmt.Errorf("its header has the shape %s, no tuple", seen["shape"])
	}
	for axis := range strings.SplitSeq(strings.TrimSuffix(axes, ")"), ",") {
		axis = strings.TrimSuffix(strings.TrimSpace(axis), "L") // of Python 2
		if axis == "" {
			continue
		}
		n, err := strconv.ParseInt(axis, 10, 48)
		if err != nil {
			return fmt.Errorf("its header has the axis %s", axis)
		}
		h.shape = append(h.shape, int(n))
	}
	return nil
}
