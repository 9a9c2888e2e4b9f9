package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// kindsFolder writes ten images with captions in the form of every kind of data with files, and returns
// the folder and the settings of each kind.
func kindsFolder(t *testing.T) (dir string, kinds map[string][]string) {
	t.Helper()
	dir = t.TempDir()
	put := func(name string, b []byte) {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	var csv, flickr, coco, annotations strings.Builder
	var shard bytes.Buffer
	w := tar.NewWriter(&shard)
	csv.WriteString("filepath,title\n")
	for i := range 10 {
		m := image.NewGray(image.Rect(0, 0, 40, 40))
		m.SetGray(3, 3, color.Gray{Y: uint8(20 * i)})
		var b bytes.Buffer
		check.OK(t, png.Encode(&b, m))
		name, caption := fmt.Sprintf("%d.png", i), fmt.Sprintf("picture %d", i)
		put(name, b.Bytes())
		fmt.Fprintf(&csv, "%s,%s\n", name, caption)
		fmt.Fprintf(&flickr, "%s#0\t%s\n", name, caption)
		fmt.Fprintf(&coco, `,{"id": %d, "file_name": %q}`, i, name)
		fmt.Fprintf(&annotations, `,{"image_id": %d, "caption": %q}`, i, caption)
		for member, body := range map[string][]byte{".png": b.Bytes(), ".txt": []byte(caption)} {
			_ = w.WriteHeader(&tar.Header{Name: fmt.Sprint(i) + member, Size: int64(len(body))})
			_, _ = w.Write(body)
		}
	}
	check.OK(t, w.Close())
	put("pairs.csv", []byte(csv.String()))
	put("captions.token", []byte(flickr.String()))
	put("coco.json", []byte(`{"images": [`+coco.String()[1:]+`], "annotations": [`+annotations.String()[1:]+`]}`))
	put("list.txt", []byte("1.png\n2.png\n3.png\n4.png\n"))
	put("0.tar", shard.Bytes())
	table := check.Get(os.ReadFile("../../data/testdata/parquet/struct.parquet"))(t)
	put("table.parquet", table)
	return dir, map[string][]string{
		"csv":        {"data.csv.train_files=pairs.csv", "data.csv.val_files=pairs.csv"},
		"coco":       {"data.coco.train_file=coco.json", "data.coco.val_file=coco.json"},
		"flickr":     {"data.flickr.file=captions.token", "data.flickr.train_list=list.txt", "data.flickr.val_list=list.txt"},
		"webdataset": {"data.webdataset.train_files={0..0}.tar", "data.webdataset.val_files=*.tar", "data.cache_dir=" + filepath.Join(dir, "indices")},
		"parquet":    {"data.parquet.train_files=table.parquet", "data.parquet.val_files=table.parquet"},
	}
}

// TestDataOfTasks: samples of a downstream task are looked at without the loss that trains on them, and a split
// without one to train on.
func TestDataOfTasks(t *testing.T) {
	dir, flags := photoData(t)
	row := `{"image": "val/000.png", "sentence": "a picture", "label": "neutral"}`
	check.OK(t, os.WriteFile(filepath.Join(dir, "ve.json"), []byte("["+row+"]"), 0o644))
	for _, command := range [][]string{{"check"}, {"stats"}, {"preview", "--out", filepath.Join(dir, "sheet.png")}} {
		must(t, exitDone, append(append([]string{"data"}, command...), "--set", "data.kind=entailment", "--set", "data.root="+dir, "--set", "data.examples.train_files=ve.json")...)
	}
	must(t, exitDone, append(append([]string{"data", "preview", "--split", "val", "--out", filepath.Join(dir, "sheet.png")}, flags...), "--set", "data.captions.train_files=[]")...)
}

// Every command of data, and a run with its evaluation and embeddings, on each kind.
func TestKindsOfData(t *testing.T) {
	dir, kinds := kindsFolder(t)
	tiny := append([]string{"--set", "data.root=" + dir, "--set", "data.vocab_size=64", "--set", "data.drop_last=false", "--set", "train.max_steps=3", "--set", "eval.split=val",
		"--set", "data.cache=memory"}, smallModel...)
	for kind, settings := range kinds {
		t.Run(kind, func(t *testing.T) {
			// smallModel learns a vocabulary of 200; the last setting counts.
			set := append(append([]string{}, tiny...), "--set", "data.kind="+kind)
			set = append(set, sets(settings...)...)
			run := filepath.Join(t.TempDir(), "run")
			for _, x := range []struct {
				args []string
				code int
				want string
			}{
				{append([]string{"data", "check"}, set...), exitFailed, "leak"}, // val is train here
				{append([]string{"data", "stats"}, set...), exitDone, kind},
				{append([]string{"data", "preview", "--out", filepath.Join(t.TempDir(), "a.png")}, set...), exitDone, "images of the train split"},
				{append([]string{"data", "bench", "--seconds", "0.01", "--workers", "2"}, set...), exitDone, "decode"},
				{append([]string{"train", "--out", run}, set...), exitDone, ""},
				{[]string{"eval", "--checkpoint", run}, exitDone, "image to text"},
				{[]string{"embed", "--checkpoint", run, "--split", "val", "--out", filepath.Join(t.TempDir(), "features")}, exitDone, "embeddings of val"},
			} {
				code, stdout, stderr := trainer(t, x.args...)
				if code != x.code || !strings.Contains(stdout, x.want) {
					t.Errorf("%s: code %d, %q\n%s\n%s", x.args[:2], code, x.args, stdout, stderr)
				}
			}
		})
	}
}
