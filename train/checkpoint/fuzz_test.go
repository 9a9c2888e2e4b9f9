package checkpoint

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/identity"
)

// FuzzState reads any text as a state.json, with a checksum that fits so that it does not end
// there: it gives an error with words, or a manifest that can be and whose counters decode or
// say why not.
func FuzzState(f *testing.F) {
	dir := f.TempDir()
	s := check.Get(NewStore(dir, Retention{}))(f)
	check.OK(f, s.Save(20, snapshot(20)))
	for _, path := range []string{filepath.Join(dir, folderName(20), manifestName),
		filepath.Join("testdata", "version1", manifestName)} {
		b := check.Get(os.ReadFile(path))(f)
		f.Add(b)
		f.Add(bytes.Replace(b, []byte("{"), []byte("{\"version\": 2,"), 1))
		f.Add(bytes.ReplaceAll(b, []byte("20"), []byte("-1e400")))
	}
	f.Add([]byte(`{"version": 3, "checksum": "00000000", "step": 20, "files": {"../x": {"bytes": -1, "crc32c": ""}}, "parts": {"run": {"counters": []}}}`))
	f.Add([]byte(`{"version": 9223372036854775808}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		if at := bytes.Index(b, []byte(identity.SealKey)); at >= 0 &&
			len(b) >= at+len(identity.SealKey)+len(identity.SealZero)+1 {
			b = bytes.Clone(b)
			copy(b[at+len(identity.SealKey):], identity.SealZero)
			_ = identity.Seal(b) // one without a place for it is refused below
		}
		m, err := parseManifest(folderName(20), b)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		if m.Step != 20 || m.Files == nil || m.Parts == nil {
			t.Errorf("accepted: %+v", m)
		}
		for name, info := range m.Files {
			if filepath.Base(name) != name || info.Bytes < 0 {
				t.Errorf("accepted the file %q of %d bytes", name, info.Bytes)
			}
		}
		c := Checkpoint{manifest: m}
		for name := range m.Parts {
			if err := c.Counters(name, &newGauge().count); err != nil && err.Error() == "" {
				t.Error("an error without words")
			}
		}
	})
}
