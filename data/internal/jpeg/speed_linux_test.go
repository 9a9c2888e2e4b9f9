package jpeg

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// processorTime is what the process has taken, which other programs do not lengthen as they do the time on the wall.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // does not fail for the process itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDecode decodes the .jpg files of the folders below GEOALIGN_PHOTOS, one kind a folder, on one processor;
// bench/peer/jpeg.py runs it in turns with Pillow.
func BenchmarkDecode(b *testing.B) {
	folders, _ := filepath.Glob(filepath.Join(os.Getenv("GEOALIGN_PHOTOS"), "*"))
	if os.Getenv("GEOALIGN_PHOTOS") == "" {
		b.Skip("GEOALIGN_PHOTOS names no folder")
	}
	for _, folder := range folders {
		paths, _ := filepath.Glob(filepath.Join(folder, "*.jpg"))
		if len(paths) == 0 {
			continue
		}
		b.Run(filepath.Base(folder), func(b *testing.B) {
			var d Decoder
			began := processorTime()
			for b.Loop() {
				for _, p := range paths {
					f, err := os.ReadFile(p)
					if err != nil {
						b.Fatal(err)
					}
					cfg, err := DecodeConfig(bytes.NewReader(f))
					if err != nil {
						b.Fatal(err)
					}
					if err := d.Decode(make([]uint8, 3*cfg.Width*cfg.Height), f, cfg.Width, cfg.Height); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric((processorTime()-began).Seconds()*1000/float64(b.N*len(paths)), "ms/image")
		})
	}
}
