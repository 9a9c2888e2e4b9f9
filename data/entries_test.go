package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func plain(s string) string { return s }

// BenchmarkEntries is what the identity of a list costs, for a million captions: five of each of 200,000 images in memory, and a
// table with a row for each, whose rows are read from the file.
func BenchmarkEntries(b *testing.B) {
	const images, captions = 200_000, 5
	items := make([]File, images)
	table := filepath.Join(b.TempDir(), "table.csv")
	f, err := os.Create(table)
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprintln(f, "path,caption")
	for i := range items {
		items[i] = File{Path: fmt.Sprintf("images/%08d.jpg", i), ID: int64(i)}
		for k := range captions {
			text := fmt.Sprintf("a picture of some %d things with a number of words of it %d", i, k)
			items[i].Captions = append(items[i].Captions, text)
			fmt.Fprintf(f, "%s,%s\n", items[i].Path, text)
		}
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	list := NewFiles(items, Options{})
	rows, err := LoadCSV("", []string{table}, CSVConfig{Image: "path", Caption: "caption"}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for name, ds := range map[string]Dataset{"list": list, "table": rows} {
		e, _ := EntriesOf(ds)
		b.Run(name+"/sum", func(b *testing.B) {
			for b.Loop() {
				if _, err := e.Sum(context.Background(), plain); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/samples", func(b *testing.B) {
			for b.Loop() {
				if _, err := e.Samples(context.Background(), plain); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("table/open", func(b *testing.B) {
		for b.Loop() {
			rows, err := LoadCSV("", []string{table}, CSVConfig{Image: "path", Caption: "caption"}, Options{})
			if err != nil {
				b.Fatal(err)
			}
			rows.Close()
		}
	})
}
