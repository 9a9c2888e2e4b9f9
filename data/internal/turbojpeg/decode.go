package turbojpeg

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/geoalign/geoalign/internal/dynlib"
)

// Constants of turbojpeg.h, the same in version 2 and 3.
const (
	formatRGB = 0 // TJPF_RGB

	stopOnWarning = 8192  // TJFLAG_STOPONWARNING
	limitScans    = 32768 // TJFLAG_LIMITSCANS: at most 500 of a progressive file

	spaceYCbCr = 1 // TJCS_YCbCr
	spaceGrey  = 2 // TJCS_GRAY
)

// handle is a decompressor of the library, for one goroutine at a time. What C writes to lies in it:
// it is on the heap and stays where it is.
type handle struct {
	c    uintptr // tjhandle
	args [9]uintptr
	out  [4]int32 // width, height, subsampling, colour space
	bad  bool     // the library refused a file
}

// take lends a handle; give takes it back, if it is still good. There are never more than callers at the same time, and
// they live as long as the program.
func (l *Library) take() (*handle, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idle); n > 0 {
		h := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return h, nil
	}
	h := &handle{c: dynlib.Call(l.f[fInit])}
	if h.c == 0 {
		return nil, errors.New("turbojpeg: the library gives no decompressor: out of memory")
	}
	return h, nil
}

func (l *Library) give(h *handle) {
	if h.bad { // it may have kept a table of that file, and would refuse or misread all files to come
		dynlib.Call(l.f[fDestroy], h.c)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, h)
}

// call calls a function of the library. The error has the library's words; what it warns of counts.
func (l *Library) call(h *handle, f int, args ...uintptr) error {
	n := copy(h.args[:], args)
	code := int32(dynlib.Call(l.f[f], h.args[:n]...))
	runtime.KeepAlive(h)
	if code == 0 {
		return nil
	}
	h.bad = true
	h.args[0] = h.c
	text := dynlib.Call(l.f[fErrorText], h.args[:1]...)
	return fmt.Errorf("turbojpeg: %s: %s", functionNames[f], dynlib.String(*(*unsafe.Pointer)(unsafe.Pointer(&text))))
}

// Decode writes the pixels of a JPEG file of w x h pixels, brightness and colour differences or grey
// alone, as RGB to dst, of at least 3 w h bytes. Everything the library warns of, such as a file that
// is cut short, is an error; dst is then undefined.
func (l *Library) Decode(dst, file []byte, w, h int) error {
	if w <= 0 || h <= 0 || len(dst) < 3*w*h || len(file) == 0 {
		return fmt.Errorf("turbojpeg: a file of %d bytes and %dx%d pixels does not go into %d bytes", len(file), w, h,
			len(dst))
	}
	c, err := l.take()
	if err != nil {
		return err
	}
	defer l.give(c)
	at, size := uintptr(unsafe.Pointer(&file[0])), uintptr(len(file))
	out := func(i int) uintptr { return uintptr(unsafe.Pointer(&c.out[i])) }
	if err := l.call(c, fHeader, c.c, at, size, out(0), out(1), out(2), out(3)); err != nil {
		return err
	}
	if c.out[0] != int32(w) || c.out[1] != int32(h) {
		return fmt.Errorf("turbojpeg: the file has %dx%d pixels, not %dx%d", c.out[0], c.out[1], w, h)
	}
	if s := c.out[3]; s != spaceYCbCr && s != spaceGrey {
		return fmt.Errorf("turbojpeg: colour space %d is left to the built-in decoder", s)
	}
	err = l.call(c, fDecompress, c.c, at, size, uintptr(unsafe.Pointer(&dst[0])), uintptr(w), uintptr(3*w), uintptr(h),
		formatRGB, stopOnWarning|limitScans)
	runtime.KeepAlive(file)
	runtime.KeepAlive(dst)
	return err
}
