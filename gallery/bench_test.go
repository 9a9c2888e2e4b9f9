package gallery

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
)

// BenchmarkOpen opens a gallery of 100,000 rows of 256 numbers whose files are known, or are to be read, and waits for
// their check. With an index it opens that of the rows too.
//
//	go test ./gallery -run '^$' -bench Open -benchtime 10x
func BenchmarkOpen(b *testing.B) {
	const n, c = 100_000, 256
	b.Setenv("XDG_CACHE_HOME", b.TempDir())
	dir := b.TempDir()
	writeShards(b, dir, c, n/2, n/2)
	e := check.Get(compute.New(compute.Options{}))(b)
	defer e.Close()
	open := func(index bool) {
		g, v := viewed(b, dir)
		if index {
			check.OK(b, v.UseIndex(b.Context(), e, IndexOptions{}))
		}
		check.OK(b, g.Wait(b.Context()))
		check.OK(b, g.Close())
	}
	for _, index := range []bool{false, true} {
		if index {
			open(true) // builds it
		}
		for _, known := range []bool{true, false} {
			b.Run(fmt.Sprintf("index=%v/known=%v", index, known), func(b *testing.B) {
				if known {
					time.Sleep(2100 * time.Millisecond)
					open(index)
				}
				for b.Loop() {
					if !known {
						b.StopTimer()
						now := time.Now()
						for _, f := range []string{"images-00000.safetensors", "images-00001.safetensors"} {
							check.OK(b, os.Chtimes(dir+"/"+f, now, now))
						}
						b.StartTimer()
					}
					open(index)
				}
			})
		}
	}
}
