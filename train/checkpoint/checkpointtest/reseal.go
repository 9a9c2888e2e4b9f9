// Package checkpointtest helps tests to change what a checkpoint holds.
package checkpointtest

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	checksum   = regexp.MustCompile(`"checksum": "[0-9a-f]{8}"`)
)

// Reseal makes the sizes and checksums in the state.json of the step folder dir those of
// its files and of itself, as if the run had saved what a test has changed.
func Reseal(t testing.TB, dir string) {
	t.Helper()
	path := filepath.Join(dir, "state.json")
	text := read(t, path)
	entries := check.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		b := read(t, filepath.Join(dir, e.Name()))
		entry := regexp.MustCompile(`"` + regexp.QuoteMeta(e.Name()) +
			`": \{\s*"bytes": \d+,\s*"crc32c": "[0-9a-f]{8}"\s*\}`)
		size := regexp.MustCompile(`"` + regexp.QuoteMeta(e.Name()) + `": \d+`) // of versions 1 and 2
		text = size.ReplaceAll(text, fmt.Appendf(nil, `"%s": %d`, e.Name(), len(b)))
		text = entry.ReplaceAll(text, fmt.Appendf(nil, `"%s": {"bytes": %d, "crc32c": "%08x"}`, e.Name(), len(b),
			crc32.Checksum(b, castagnoli)))
	}
	if at := checksum.FindIndex(text); at != nil {
		copy(text[at[0]:at[1]], `"checksum": "00000000"`)
		copy(text[at[0]:at[1]], fmt.Sprintf(`"checksum": "%08x"`, crc32.Checksum(text, castagnoli)))
	}
	check.OK(t, os.WriteFile(path, text, 0o666))
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b := check.Get(os.ReadFile(path))(t)
	return b
}
