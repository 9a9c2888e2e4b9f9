package table

import (
	"bytes"
	"testing"
)

// TestPages: of a file whose images lie in many pages as many are kept as are wanted, each is read once in their order, and
// with an index of pages one for each image that is wanted out of it.
func TestPages(t *testing.T) {
	const images = 6 // in pages of one row
	for _, name := range []string{"lists", "index"} {
		in, size, err := open("../testdata/parquet/" + name + ".parquet")
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		p, err := OpenParquet(in, size)
		if err != nil {
			t.Fatal(err)
		}
		content, _, err := p.Picture("image")
		if err != nil {
			t.Fatal(err)
		}
		groups := p.Groups()
		c := Pages{Most: 2}
		get := func(row int) []byte {
			for g, rows := range groups {
				if row < int(rows) {
					b, err := c.Get(content, g, row)
					if err != nil || len(b) == 0 {
						t.Errorf("%s: row %d: %d bytes, %v", name, row, len(b), err)
					}
					return b
				}
				row -= int(rows)
			}
			t.Fatalf("%s has no row %d", name, row)
			return nil
		}
		var all [][]byte
		for i := range images {
			all = append(all, get(i))
			if c.rows > 3 || c.rows != len(c.pages) {
				t.Errorf("%s: %d rows in %d pages are kept", name, c.rows, len(c.pages))
			}
		}
		if c.reads > images {
			t.Errorf("%s: %d pages are read, want at most %d", name, c.reads, images)
		}
		for _, i := range []int{5, 0, 3, 1} { // backwards
			if !bytes.Equal(get(i), all[i]) {
				t.Errorf("%s: row %d is another image", name, i)
			}
		}
		if name == "index" && c.reads > images+4 {
			t.Errorf("with an index of pages %d are read for 4 images", c.reads-images)
		}
		c.Close()
	}
}
