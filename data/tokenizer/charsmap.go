package tokenizer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// longestMatch is the rule of SentencePiece for a Precompiled normalizer. A tokenizer.json of others has no
// such field and the rule of Hugging Face tokenizers.
const longestMatch = "longest"

// charsmap replaces strings by others: the precompiled map of a SentencePiece normaliser. It is a
// double array (Aoe 1989, in the layout of Darts-clone) whose values are places in texts.
type charsmap struct {
	units []uint32
	texts []byte // ended by zeros
}

// parseCharsmap reads the size of the double array in bytes (little-endian, as all of it), the
// array and the texts.
func parseCharsmap(b []byte) (*charsmap, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("tokenizer: precompiled_charsmap of %d bytes is cut", len(b))
	}
	size := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(size) > uint64(len(b)) || size%4 != 0 || size == 0 {
		return nil, fmt.Errorf("tokenizer: precompiled_charsmap: an array of %d bytes in %d is not possible", size,
			len(b))
	}
	m := &charsmap{units: make([]uint32, size/4), texts: b[size:]}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	if !utf8.Valid(m.texts) {
		return nil, fmt.Errorf("tokenizer: precompiled_charsmap: its texts are not UTF-8")
	}
	return m, nil
}

// offset is the distance of the children of a unit.
func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// find looks for keys that s starts with: the shortest, or with all the longest.
func (m *charsmap) find(s string, all bool) (text string, length int, ok bool) {
	at := offset(m.units[0])
	for i := range len(s) {
		c := uint32(s[i])
		at ^= c
		if c == 0 || int64(at) >= int64(len(m.units)) {
			break
		}
		unit := m.units[at]
		if unit&(1<<31|0xff) != c {
			break
		}
		at ^= offset(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if int64(at) >= int64(len(m.units)) {
			break
		}
		place := m.units[at] &^ (1 << 31)
		if int64(place) > int64(len(m.texts)) {
			break
		}
		t := m.texts[place:]
		if end := bytes.IndexByte(t, 0); end >= 0 {
			t = t[:end]
		}
		text, length, ok = string(t), i+1, true
		if !all {
			break
		}
	}
	return text, length, ok && utf8.ValidString(text)
}

// longest replaces at every place the longest key that begins there, as SentencePiece does, until the result is longer
// than most.
func (m *charsmap) longest(s string, most int) string {
	var b strings.Builder
	for s != "" && b.Len() <= most {
		text, n, ok := m.find(s, true)
		if !ok {
			_, n = utf8.DecodeRuneInString(s)
			text = s[:n]
		}
		b.WriteString(text)
		s = s[n:]
	}
	return b.String()
}

// wholeCluster is the length in bytes from which a grapheme cluster is not looked for as a whole.
const wholeCluster = 6

// clusters replaces grapheme clusters where a key begins them, else their characters, as
// Hugging Face tokenizers do: the rest of a cluster behind a key is dropped. It ends where the result is longer than
// most.
func (m *charsmap) clusters(s string, most int) string {
	var b strings.Builder
	put := func(part string) bool {
		text, _, ok := m.find(part, false)
		if ok {
			b.WriteString(text)
		}
		return ok
	}
	for state := -1; s != "" && b.Len() <= most; {
		var cluster string
		cluster, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		if len(cluster) < wholeCluster && put(cluster) {
			continue
		}
		for _, r := range cluster {
			if part := string(r); !put(part) {
				b.WriteString(part)
			}
		}
	}
	return b.String()
}
