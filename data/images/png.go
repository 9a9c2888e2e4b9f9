package images

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"
	"iter"
)

// pngSignature begins every PNG file.
const pngSignature = "\x89PNG\r\n\x1a\n"

// pngEnd is the last chunk of a PNG file.
const pngEnd = "\x00\x00\x00\x00IEND\xae\x42\x60\x82"

// pngChunks gives the names and the data of the chunks behind the signature that are whole, and where the next one
// begins.
func pngChunks(b []byte) iter.Seq2[int, pngChunk] {
	return func(yield func(end int, c pngChunk) bool) {
		const frame = 12 // bytes of a chunk that are not its data: size and name before, checksum behind
		for at := len(pngSignature); len(b)-at >= frame; {
			n := uint64(binary.BigEndian.Uint32(b[at:]))
			if n > uint64(len(b)-at-frame) {
				return
			}
			c := pngChunk{string(b[at+4 : at+8]), b[at+8 : at+8+int(n)]}
			if at += frame + int(n); !yield(at, c) {
				return
			}
		}
	}
}

type pngChunk struct {
	name string
	data []byte
}

// endedPNG returns a PNG file with a sound end mark behind its last chunk, where that is missing, cut or damaged behind
// the pixels, and others as they are. Whether all pixels are there is for the decoder to find out.
func endedPNG(b []byte) []byte {
	last, pixels := len(pngSignature), false
	for end, c := range pngChunks(b) {
		if c.name == "IEND" {
			break
		}
		last, pixels = end, pixels || c.name == "IDAT"
	}
	rest := b[min(last, len(b)):]
	if len(rest) >= 8 && string(rest[4:8]) == "IDAT" { // pixels without their checksum, or fewer than these
		n := uint64(binary.BigEndian.Uint32(rest))
		if n > uint64(len(rest)-8) {
			return b
		}
		last += 8 + int(n)
		sum := crc32.ChecksumIEEE(rest[4 : 8+n])
		return append(binary.BigEndian.AppendUint32(b[:last:last], sum), pngEnd...)
	}
	if !pixels || bytes.HasPrefix(rest, []byte(pngEnd)) || len(rest) >= 8 && string(rest[4:8]) != "IEND" {
		return b // whole, or more than the end mark is lost
	}
	return append(b[:last:last], pngEnd...)
}

// maxPNGText is the largest text that is inflated, Pillow's limit too.
const maxPNGText = 1 << 20

// pngTexts returns the last texts of a PNG file under each of some keywords (PNG, third edition, 11.3.3), inflated
// where they are compressed. A text that is too long or damaged is left out.
func pngTexts(b []byte, keywords ...string) map[string][]byte {
	last := map[string]pngChunk{}
	for _, c := range pngChunks(b) {
		switch c.name {
		case "tEXt", "zTXt", "iTXt":
			for _, k := range keywords {
				if text, ok := bytes.CutPrefix(c.data, append([]byte(k), 0)); ok {
					last[k] = pngChunk{c.name, text}
				}
			}
		}
	}
	texts := map[string][]byte{}
	for k, c := range last {
		if text, ok := c.text(); ok {
			texts[k] = text
		}
	}
	return texts
}

// text is the text of a chunk behind its keyword.
func (c pngChunk) text() ([]byte, bool) {
	b, packed := c.data, c.name == "zTXt"
	switch c.name {
	case "zTXt": // the method
		if len(b) < 1 || b[0] != 0 {
			return nil, false
		}
		b = b[1:]
	case "iTXt": // whether it is compressed, the method, a language and the keyword in it
		if len(b) < 2 || b[0] != 0 && b[1] != 0 {
			return nil, false
		}
		packed = b[0] != 0
		b = b[2:]
		for range 2 {
			_, behind, ok := bytes.Cut(b, []byte{0})
			if !ok {
				return nil, false
			}
			b = behind
		}
	}
	if !packed {
		return b, true
	}
	r, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, false
	}
	text, err := io.ReadAll(io.LimitReader(r, maxPNGText+1))
	return text, err == nil && len(text) <= maxPNGText
}
