package data

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/geoalign/geoalign/data/transform"
)

// BenchmarkShards is how many training samples a second are made of 6,000 JPEGs of 64 pixels in shards, against those of the same
// files one by one. The two are measured in turn, a tenth of a second each, and what is told is the median of the ratios of
// neighbouring turns, which other programs on the machine hardly change:
//
//	go test ./data -run none -bench 'Shards$' -benchtime 100x
func BenchmarkShards(b *testing.B) {
	const side, images, each = 64, 6000, 1000
	dir := b.TempDir()
	jpegs, _ := benchJPEGs(b, 200, side, side)
	var items []File
	var shards []string
	for k := 0; k < images; k += each {
		shards = append(shards, filepath.Join(dir, fmt.Sprintf("%d.tar", k)))
		f, err := os.Create(shards[len(shards)-1])
		if err != nil {
			b.Fatal(err)
		}
		w := tar.NewWriter(f)
		for i := k; i < k+each; i++ {
			name, image, caption := fmt.Sprintf("%06d", i), jpegs[i%len(jpegs)], fmt.Sprintf("picture %d", i)
			items = append(items, File{Path: filepath.Join(dir, name+".jpg"), ID: int64(i), Captions: []string{caption}})
			err := os.WriteFile(items[i].Path, image, 0o644)
			for ext, body := range map[string][]byte{".jpg": image, ".txt": []byte(caption)} {
				err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name + ext, Size: int64(len(body)), Mode: 0o644}), second(w.Write(body)))
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), f.Close()); err != nil {
			b.Fatal(err)
		}
	}
	packed, err := OpenShards(b.Context(), shards, ShardsConfig{Shuffle: 1000}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer packed.Close()
	cfg := TrainConfig{Seed: 1, Transform: transform.Train{Input: transform.Input{Mean: [3]float32{.5, .5, .5}, Std: [3]float32{.5, .5, .5}}, Size: side, ScaleMin: 0.5, Flip: true}}
	var streams []*Train
	for _, ds := range []Dataset{NewFiles(items, Options{}), packed} {
		s := trainOf(b, ds, cfg)
		streams = append(streams, s)
	}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			var speeds [2][]float64
			var ratios []float64
			var at [2]uint64
			for turn := 0; b.Loop(); turn++ {
				for _, k := range []int{turn % 2, 1 - turn%2} { // who goes first takes turns too
					speed, end := turnOf(b, streams[k], workers, at[k])
					speeds[k], at[k] = append(speeds[k], speed), end
				}
				ratios = append(ratios, speeds[1][turn]/speeds[0][turn])
			}
			for _, list := range [][]float64{speeds[0], speeds[1], ratios} {
				slices.Sort(list)
			}
			middle := len(ratios) / 2
			b.ReportMetric(speeds[0][middle], "files/s")
			b.ReportMetric(speeds[1][middle], "shards/s")
			b.ReportMetric(ratios[middle], "ratio")
		})
	}
}

// turnOf makes samples from a position on, and returns how many a second and the position behind them.
func turnOf(b *testing.B, s Stream, workers int, from uint64) (speed float64, end uint64) {
	b.Helper()
	const batch = 32
	l, err := NewLoader(s, LoaderConfig{BatchSize: batch, Columns: s.Columns()[:1], Workers: workers, Prefetch: 2, DropLast: true})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	l.Start(from)
	begin, n := time.Now(), -batch // the first one makes the memory
	for ; n <= 0 || time.Since(begin) < 100*time.Millisecond; n += batch {
		x := nextOf(b, l)
		if l.Recycle(x); n < 0 {
			begin = time.Now()
		}
	}
	return float64(n) / time.Since(begin).Seconds(), l.Position()
}
