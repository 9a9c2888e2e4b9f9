package jpeg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Unsupported is the reason for a file that may be sound and is not read.
type Unsupported string

// Error says what is not read.
func (u Unsupported) Error() string { return "jpeg: not supported: " + string(u) }

// ErrCut is the reason for a file that ends before its picture does.
var ErrCut = errors.New("jpeg: the file ends before the picture does: get it anew")

// damaged is the error of a file at a byte of it.
func damaged(at int, format string, args ...any) error {
	return fmt.Errorf("jpeg: byte %d: %s: get the file anew", at, fmt.Sprintf(format, args...))
}

// Markers (table B.1).
const (
	markerTEM  = 0x01
	markerSOF0 = 0xc0
	markerDHT  = 0xc4
	markerJPG  = 0xc8
	markerDAC  = 0xcc
	markerRST0 = 0xd0
	markerRST7 = 0xd7
	markerSOI  = 0xd8
	markerEOI  = 0xd9
	markerSOS  = 0xda
	markerDQT  = 0xdb
	markerDNL  = 0xdc
	markerDRI  = 0xdd
	markerAPP0 = 0xe0
	markerAPPE = 0xee
	markerAPPF = 0xef
	markerCOM  = 0xfe
)

// marker passes the next marker, and what is none before it. ok is false at the end of the file.
func (r *reader) marker() (code uint8, ok bool) {
	for {
		i := bytes.IndexByte(r.b[r.at:], 0xff)
		if i < 0 {
			return 0, false
		}
		for r.at += i; r.at < len(r.b) && r.b[r.at] == 0xff; r.at++ {
		}
		if r.at == len(r.b) {
			return 0, false
		}
		code = r.b[r.at]
		r.at++
		if code != 0 {
			return code, true
		}
	}
}

// segment passes a segment (section B.1.1.4). A length below its own is that of an empty one.
func (r *reader) segment() (body []byte, length int, err error) {
	if r.at+2 > len(r.b) {
		return nil, 0, ErrCut
	}
	length = int(binary.BigEndian.Uint16(r.b[r.at:]))
	if r.at+max(length, 2) > len(r.b) {
		return nil, 0, ErrCut
	}
	body = r.b[r.at+2 : r.at+max(length, 2)]
	r.at += max(length, 2)
	return body, length, nil
}

// markers reads segments up to the header of a scan, which it reads too, or to the end of the picture (scan is false).
func (d *Decoder) markers() (scan bool, err error) {
	for {
		code, ok := d.in.marker()
		if !ok {
			return false, ErrCut
		}
		at := d.in.at - 2
		switch {
		case code == markerEOI:
			return false, nil
		case code == markerSOI:
			return false, damaged(at, "a picture begins within another")
		case code >= markerRST0 && code <= markerRST7 || code == markerTEM && d.scans > 0:
			continue
		case code < markerSOF0 || code > markerAPPF && code != markerCOM || code == 0xde || code == 0xdf:
			return false, damaged(at, "unknown marker %#x", code)
		}
		body, length, err := d.in.segment()
		if err != nil {
			return false, err
		}
		switch code {
		case markerSOS:
			return true, d.scanHeader(at, body)
		case markerDHT:
			err = d.huffmanTables(at, body, length)
		case markerDQT:
			err = d.quantisation(at, body, length)
		case markerDRI:
			if length != 4 {
				return false, damaged(at, "the interval of restarts has %d bytes, want 4", length)
			}
			d.restart = int(binary.BigEndian.Uint16(body))
		case markerAPP0:
			if len(body) >= 14 && string(body[:5]) == "JFIF\x00" {
				d.jfif = true
			} else if bytes.HasPrefix(body, []byte("JFIF")) && len(body) < 7 {
				return false, damaged(at, "the JFIF header has %d bytes", len(body))
			}
		case markerAPPE:
			if len(body) >= 12 && string(body[:5]) == "Adobe" {
				d.adobe, d.transform = true, body[11]
			}
		case markerDAC:
			err = arithmetic(at, body, length)
		case markerDNL, markerCOM:
		default:
			if code < markerRST0 {
				err = d.frameHeader(at, code, body)
			}
		}
		if err != nil {
			return false, err
		}
	}
}

// frameHeader reads the header of the frame (section B.2.2).
func (d *Decoder) frameHeader(at int, code uint8, body []byte) error {
	if d.n != 0 {
		return damaged(at, "a second frame")
	}
	f, err := frameOf(at, code, body)
	if err != nil {
		return err
	}
	d.frame = f
	d.n = f.components
	for i := range d.n {
		c := &d.comp[i]
		*c = component{memory: c.memory}
		c.id, c.h, c.v, c.table = body[6+3*i], int(body[7+3*i]>>4), int(body[7+3*i]&15), body[8+3*i]
	}
	return nil
}

// frame is what the header of a frame says.
type frame struct {
	Width, Height int // pixels, > 0
	components    int // 1, 3 or 4
	progressive   bool
}

// frameOf reads the header of a frame and refuses what is not decoded.
func frameOf(at int, code uint8, body []byte) (f frame, err error) {
	switch {
	case code > markerJPG:
		return f, Unsupported("arithmetic coding")
	case code == markerJPG:
		return f, Unsupported("an extension of JPEG")
	case code == 0xc3:
		return f, Unsupported("lossless coding")
	case code > 0xc3:
		return f, Unsupported("hierarchical coding")
	case len(body) < 6:
		return f, damaged(at, "the header of the frame has %d bytes", len(body))
	case body[0] != 8:
		return f, Unsupported(fmt.Sprintf("%d bits a sample", body[0]))
	}
	f = frame{Height: int(binary.BigEndian.Uint16(body[1:])), Width: int(binary.BigEndian.Uint16(body[3:])),
		components: int(body[5]), progressive: code == 0xc2}
	if n := f.components; n != 1 && n != 3 && n != 4 {
		return f, Unsupported(fmt.Sprintf("%d components", n))
	}
	if f.Width == 0 || f.Height == 0 {
		return f, damaged(at, "a picture without pixels (%dx%d)", f.Width, f.Height)
	}
	if len(body) != 6+3*f.components {
		return f, damaged(at, "the header of the frame has %d bytes, want %d", len(body), 6+3*f.components)
	}
	for i := range f.components {
		if h, v := body[7+3*i]>>4, body[7+3*i]&15; h < 1 || h > 4 || v < 1 || v > 4 {
			return f, damaged(at, "sampling factors %dx%d, want 1 to 4", h, v)
		}
	}
	return f, nil
}

// huffmanTables reads tables of codes (section B.2.4.2).
func (d *Decoder) huffmanTables(at int, b []byte, length int) error {
	for length -= 2; length > 16; {
		if len(b) < 17 {
			return damaged(at, "a table of codes is cut")
		}
		kind, to := b[0]>>4, b[0]&15
		n := 0
		for _, c := range b[1:17] {
			n += int(c)
		}
		if n > 256 || n > len(b)-17 || kind > 1 || to > 3 {
			return damaged(at, "a table of %d codes for place %#x", n, b[0])
		}
		c := &d.codes[kind][to]
		*c = codes{ok: true, counts: [16]uint8(b[1:17])}
		copy(c.symbols[:], b[17:17+n])
		b = b[17+n:]
		length -= 17 + n
	}
	if length != 0 {
		return damaged(at, "%d bytes are left behind the tables of codes", length)
	}
	return nil
}

// quantisation reads tables of steps (section B.2.4.1).
func (d *Decoder) quantisation(at int, b []byte, length int) error {
	if length < 2 {
		return damaged(at, "tables of steps have %d bytes", length)
	}
	for len(b) > 0 {
		wide, to := b[0]>>4 != 0, b[0]&15
		size := 64
		if wide {
			size = 128
		}
		if to > 3 || len(b) < 1+size {
			return damaged(at, "a table of steps of %d bytes for place %d", len(b)-1, to)
		}
		q := &d.quant[to]
		q.ok = true
		for z, at := range natural[:64] {
			if wide {
				q.steps[at] = int16(binary.BigEndian.Uint16(b[1+2*z:]))
			} else {
				q.steps[at] = int16(b[1+z])
			}
		}
		b = b[1+size:]
	}
	return nil
}

// arithmetic tests conditions of arithmetic coding (section B.2.4.3), which nothing needs.
func arithmetic(at int, b []byte, length int) error {
	bad := length < 2 || len(b)%2 != 0
	for i := 0; i+1 < len(b); i += 2 {
		bad = bad || b[i] >= 32 || b[i] < 16 && b[i+1]&15 > b[i+1]>>4
	}
	if bad {
		return damaged(at, "conditions of arithmetic coding are out of range")
	}
	return nil
}

// scanHeader reads the header of a scan (section B.2.3).
func (d *Decoder) scanHeader(at int, b []byte) error {
	if d.n == 0 {
		return damaged(at, "a scan before the frame")
	}
	if len(b) < 4 || len(b) != 4+2*int(b[0]) || b[0] < 1 || b[0] > 4 {
		return damaged(at, "the header of a scan has %d bytes", len(b))
	}
	n := int(b[0])
	d.list = d.list[:0]
	for i := range n {
		id, tables := b[1+2*i], b[2+2*i]
		found := -1
		for j := range d.n {
			// A component is passed over where as many are named already, as libjpeg does.
			if d.comp[j].id == id && j >= len(d.list) {
				found = j
				break
			}
		}
		if found < 0 {
			return damaged(at, "a scan of the component %d, which the frame has not, or twice", id)
		}
		c := &d.comp[found]
		for _, before := range d.list {
			if before == c {
				return damaged(at, "a scan has the component %d twice", id)
			}
		}
		c.dcTable, c.acTable = tables>>4, tables&15
		d.list = append(d.list, c)
	}
	if d.scans++; d.scans > MostScans && d.progressive {
		return fmt.Errorf("jpeg: more than %d scans: write the file anew", MostScans)
	}
	d.from, d.to, d.high, d.low = int(b[1+2*n]), int(b[2+2*n]), int(b[3+2*n]>>4), int(b[3+2*n]&15)
	return nil
}
