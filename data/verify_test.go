package data

import "testing"

// FuzzCheckCacheFile: whatever a file of a cache holds, it is whole or damaged.
func FuzzCheckCacheFile(f *testing.F) {
	f.Add("shard-00.index", []byte{0, 0, 0, 0})
	f.Add("ab.rgb", append([]byte(cacheMagic), make([]byte, 32)...))
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		if err := CheckCacheFile(name, b); err == nil && len(b) < 4 {
			t.Errorf("%d bytes are whole", len(b))
		}
	})
}
