package features

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

// headers are headers of .npy files with what is read of them, or why they are refused.
var headers = []struct{ text, want string }{
	{`{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, "<f4 false [3 4]"},
	{`{'shape': (3, 4), "descr": "<f8", 'fortran_order': True}`, "<f8 true [3 4]"},
	{` { 'descr' : '<f2' ,'fortran_order':False,'shape':(3L,4L,) } `, "<f2 false [3 4]"},
	{`{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }`, "<f4 false [7]"},
	{`{'descr': '<f4', 'fortran_order': False, 'shape': (), }`, "<f4 false []"},
	{`{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)`, "not a dictionary"},
	{`{'descr': '<f4', 'fortran_order': False}`, "lacks shape"},
	{`{'descr': '<f4', 'fortran_order': 'no', 'shape': (3, 4)}`, "fortran_order"},
	{`{'descr': '<f4', 'fortran_order': False, 'shape': True}`, "no tuple"},
	{`{'descr': '<f4', 'descr': '<f4', 'shape': (3, 4)}`, "descr twice"},
	{`{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }`, "cannot be read"},
	{`{'descr': '<f4', 'fortran_order': False, 'shape': (3 4), }`, "the axis 3 4"},
	{`{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999999999999, 4), }`, "the axis 9999"},
	{`{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 4), }`, "cannot be read"},
	{``, "not a dictionary"},
}

func header(text string, major byte) []byte {
	b := append([]byte(npyMagic), major, 0)
	if major == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	}
	return append(append(b, text...), 0, 0)
}

func TestNPYHeader(t *testing.T) {
	for _, c := range headers {
		for _, major := range []byte{1, 2, 3} {
			b := header(c.text, major)
			h, err := readNPYHeader(bytes.NewReader(b))
			got := fmt.Sprint(h.descr, " ", h.fortran, " ", h.shape)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) || err == nil && h.start != int64(len(b)-2) {
				t.Errorf("%s: %s, data at %d of %d, want %s", c.text, got, h.start, len(b), c.want)
			}
		}
	}
	if _, err := readNPYHeader(bytes.NewReader(header("{}", 4))); err == nil || !strings.Contains(err.Error(), "version 4") {
		t.Errorf("version 4: %v", err)
	}
	long := append([]byte(npyMagic), 2, 0, 255, 255, 255, 255)
	if _, err := readNPYHeader(bytes.NewReader(append(long, 0, 0))); err == nil || !strings.Contains(err.Error(), "more than 65536") {
		t.Errorf("a header of 4 GB: %v", err)
	}
}

func FuzzNPYHeader(f *testing.F) {
	for _, c := range headers {
		f.Add(header(c.text, 1))
		f.Add(header(c.text, 2))
	}
	files, err := filepath.Glob("testdata/*.npy")
	if err != nil || len(files) == 0 {
		f.Fatal(err, files)
	}
	for _, name := range files {
		b := filetest.Read(f, name)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		h, err := readNPYHeader(bytes.NewReader(b))
		if err != nil {
			return
		}
		if h.start < 10 || h.start > int64(len(b)) {
			t.Errorf("the data begins at %d of %d", h.start, len(b))
		}
		if slices.ContainsFunc(h.shape, func(n int) bool { return n < 0 }) {
			t.Errorf("shape %v", h.shape)
		}
	})
}
