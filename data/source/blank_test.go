package source

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/parquet-go/parquet-go"
)

// Captions of which nothing is left are dropped by the rule that is set, and by no other, whatever the kind of data.
func TestBlankCaptions(t *testing.T) {
	texts := []string{"...", "&nbsp;", "___", " ", "a dog"}
	left := map[string][]string{
		data.CleanALBEF:        {"&nbsp;", "___", "a dog"},
		data.CleanNone:         {"...", "&nbsp;", "___", "a dog"},
		data.CleanWhitespace:   {"...", "___", "a dog"},
		data.CleanLower:        {"...", "___", "a dog"},
		data.CleanCanonicalize: {"a dog"},
	}
	dir := t.TempDir()
	file := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		filetest.Write(t, path, b)
		return path
	}
	var csv, flickr strings.Builder
	csv.WriteString("filepath,title\n")
	for i, text := range texts {
		fmt.Fprintf(&csv, "a.jpg,%s\n", text)
		fmt.Fprintf(&flickr, "a.jpg#%d\t%s\n", i, text)
	}
	list, _ := json.Marshal([]map[string]any{{"image": "a.jpg", "caption": texts}})
	coco := map[string][]map[string]any{"images": {{"id": 1, "file_name": "a.jpg"}}}
	for _, text := range texts {
		coco["annotations"] = append(coco["annotations"], map[string]any{"image_id": 1, "caption": text})
	}
	annotations, _ := json.Marshal(coco)
	captions, _ := json.Marshal(map[string]any{"c": texts})
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for name, b := range map[string]string{"a.jpg": "x", "a.json": string(captions)} {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b))})
		if _, err2 := w.Write([]byte(b)); err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
	}
	w.Close()
	shard := file("a.tar", packed.Bytes())
	var table bytes.Buffer
	type row struct {
		Image   []byte   `parquet:"image"`
		Caption []string `parquet:"caption,list"`
	}
	if err := parquet.Write(&table, []row{{[]byte("x"), texts}}); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]func(opt data.Options) (data.Dataset, error){
		"captions": func(opt data.Options) (data.Dataset, error) {
			return LoadCaptions(dir, []string{file("a.json", list)}, opt)
		},
		"coco": func(opt data.Options) (data.Dataset, error) {
			return LoadCOCO(file("coco.json", annotations), dir, opt)
		},
		"csv": func(opt data.Options) (data.Dataset, error) {
			return data.LoadCSV(dir, []string{file("a.csv", []byte(csv.String()))}, plainCSV, opt)
		},
		"flickr": func(opt data.Options) (data.Dataset, error) {
			return LoadFlickr(file("a.token", []byte(flickr.String())), dir, "", opt)
		},
		"parquet": func(opt data.Options) (data.Dataset, error) {
			return data.OpenParquet(dir, []string{file("a.parquet", table.Bytes())}, data.ParquetConfig{Image: "image", Caption: "caption"}, opt)
		},
		"webdataset": func(opt data.Options) (data.Dataset, error) { // an index that is kept is that of one rule
			return data.OpenShards(t.Context(), []string{shard}, data.ShardsConfig{JSONKey: "c", IndexDir: filepath.Join(dir, "indices")}, opt)
		},
	}
	for kind, open := range kinds {
		for rule, want := range left {
			ds, err := open(data.Options{Clean: rule})
			if err != nil {
				t.Fatal(kind, err)
			}
			empty := ds.(interface{ EmptyCaptions() int }).EmptyCaptions()
			if got := ds.Captions(0); !slices.Equal(got, want) || empty != len(texts)-len(want) {
				t.Errorf("%s, %s: %q and %d empty ones, want %q", kind, rule, got, empty, want)
			}
			if c, ok := ds.(interface{ Close() error }); ok {
				c.Close()
			}
		}
	}
}
