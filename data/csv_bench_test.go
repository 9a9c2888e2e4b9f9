package data

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	process "github.com/geoalign/geoalign/internal/memory"
)

var csvRows = flag.Int("csvrows", 100_000, "rows of the table of BenchmarkTable")

// BenchmarkTable opens a table of -csvrows rows, draws the order of an epoch and reads the captions of batches of 256 images in that order.
// It tells the time of each and the memory that a row takes, at the peak of opening and behind it:
//
//	go test ./data -run none -bench Table -benchtime 1x -csvrows 10000000
func BenchmarkTable(b *testing.B) {
	path := filepath.Join(b.TempDir(), "pairs.csv")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprintln(w, "filepath,title")
	for i := range *csvRows {
		fmt.Fprintf(w, "%05d/%09d.jpg,\"A photo of thing %d, beside another of %d\"\n", i/10_000, i, i%977, i%101)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		runtime.GC()
		before, peaked := heap(), process.ResetPeak()
		resident := process.Resident()
		begin := time.Now()
		t, err := LoadCSV("", []string{path}, plainCSV, Options{})
		if err != nil {
			b.Fatal(err)
		}
		rows := float64(*csvRows)
		b.ReportMetric(time.Since(begin).Seconds(), "open-s")
		if peaked {
			b.ReportMetric(float64(process.Peak()-resident)/rows, "peak-B/row")
		}
		runtime.GC()
		b.ReportMetric(float64(heap()-before)/rows, "B/row")

		begin = time.Now()
		order := NewOrder(1, t.Len())
		order.At(0)
		b.ReportMetric(time.Since(begin).Seconds(), "shuffle-s")

		const batch, batches = 256, 100
		begin = time.Now()
		for c := range uint64(batch * batches) {
			if len(t.Captions(order.At(c))) != 1 {
				b.Fatal("a caption is missing")
			}
		}
		b.ReportMetric(float64(time.Since(begin).Microseconds())/batches/1000, "batch-ms")
		if err := t.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// heap is the memory that is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
