package jpeg

import (
	"bytes"
	"encoding/binary"
)

// MostScans is the most scans of a progressive file that are worth decoding, the limit of libjpeg-turbo's
// programs too: a scan of a few bytes may cost the time of the whole image. Files have about ten.
const MostScans = 500

// TooManyScans reports whether a progressive file has more than MostScans.
func TooManyScans(b []byte) bool {
	progressive := false
	scans := 0
	for at := 2; ; {
		// What follows a scan is its data, where 0xff stands before 0 and before restart markers.
		i := bytes.IndexByte(b[min(at, len(b)):], 0xff)
		if i < 0 || at+i+2 > len(b) {
			return false
		}
		at += i + 1
		switch m := b[at]; {
		case m == 0xc0 || m == 0xc1 || m == 0xd9:
			return false // not progressive, or the end
		case m == 0 || m == 0xff || m >= 0xd0 && m <= 0xd7:
			continue
		case m == 0xc2:
			progressive = true
		case m == 0xda:
			if scans++; progressive && scans > MostScans {
				return true
			}
		}
		if at+3 > len(b) {
			return false
		}
		at += 1 + int(binary.BigEndian.Uint16(b[at+1:]))
	}
}

// OneScan reports whether a file is sequential and its first scan has all components.
func OneScan(b []byte) bool {
	components := 0
	for at := 2; at+10 <= len(b) && b[at] == 0xff; {
		switch m := b[at+1]; m {
		case 0xff: // filling
			at++
			continue
		case 0xc0, 0xc1:
			components = int(b[at+9])
		case 0xda:
			return components > 0 && int(b[at+4]) == components
		}
		at += 2 + int(binary.BigEndian.Uint16(b[at+2:]))
	}
	return false
}
