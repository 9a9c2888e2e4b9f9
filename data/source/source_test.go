package source_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// letters is a tokenizer of one token per byte.
type letters struct{}

// SepID is the token that ends a text.
func (letters) SepID() int32 { return 3 }

func (letters) Encode(s string, n int) []int32 {
	ids := []int32{2}
	for i := 0; i < len(s) && len(ids) < n; i++ {
		ids = append(ids, int32(s[i]))
	}
	return ids
}

func (letters) PadID() int32 { return 0 }

// folder writes small data of every kind into one folder.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, b []byte) {
		path := filepath.Join(dir, name)
		filetest.Write(t, path, b)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.png", "classes/train/cat/1.png", "classes/train/dog/1.png", "classes/val/cat/2.png"} {
		put(name, b.Bytes())
	}
	put("list.json", []byte(`[{"image": "a.png", "caption": ["A picture.", "A square."]}]`))
	put("all.json", []byte(`{"images": [{"filename": "a.png", "split": "train", "sentences": [{"raw": "A picture."}]}, {"filename": "a.png", "split": "val", "sentences": [{"raw": "A square."}]}]}`))
	rows := func(w int) []byte {
		var b bytes.Buffer
		x := make([]float32, 20*w)
		for i := range x {
			x[i] = float32(i)
		}
		if err := safetensors.Write(&b, []safetensors.Tensor{{Name: "x", Shape: []int{20, w}, Data: x}}, nil); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	put("image_class_labels.txt", []byte("1 1\n2 101\n"))
	put("images.txt", []byte("1 ../a.png\n2 ../a.png\n"))
	put("pairs.tsv", []byte("filepath\ttitle\na.png\tA picture.\na.png\tA square.\n"))
	put("rte.tsv", []byte("sentence1\tsentence2\tlabel\nA picture.\tA square.\tentailment\n"))
	put("coco.json", []byte(`{"images": [{"id": 7, "file_name": "a.png"}], "annotations": [{"image_id": 7, "caption": "A picture."}]}`))
	put("captions.token", []byte("a.png#0\tA picture.\na.png#1\tA square.\n"))
	put("val.txt", []byte("a.png\n"))
	var shard bytes.Buffer
	w := tar.NewWriter(&shard)
	for _, m := range []struct {
		name string
		body []byte
	}{{"1.png", b.Bytes()}, {"1.txt", []byte("A picture.")}} {
		_ = w.WriteHeader(&tar.Header{Name: m.name, Size: int64(len(m.body))})
		_, _ = w.Write(m.body)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	put("shard-0.tar", shard.Bytes())
	table, err := os.ReadFile("../testdata/parquet/struct.parquet")
	if err != nil {
		t.Fatal(err)
	}
	put("table.parquet", table)
	for split, n := range map[string]int{"train": 4, "dev": 2} {
		err := features.WriteArray(filepath.Join(dir, split+"_ims.npy"), []int{n, 3}, func(emit func([]float32) error) error {
			for i := range 2 {
				x := make([]float32, n*3)
				for k := range x {
					x[k] = float32(i + k + 1)
				}
				if err := emit(x); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		put(split+"_caps.txt", []byte("A picture.\nA square.\nA cat.\nA dog.\n"))
	}
	put("image.safetensors", rows(3))
	put("text.safetensors", rows(5))
	return dir
}

// configOf is a configuration of data of a kind in a folder that folder wrote.
func configOf(kind, root string) config.Config {
	cfg := config.Default()
	cfg.Model.Image.Size = 16
	d := &cfg.Data
	d.Kind, d.Root = kind, root
	switch kind {
	case "captions":
		d.Captions.TrainFiles, d.Captions.ValFiles = []string{"list.json"}, []string{"list.json"}
	case "csv":
		d.CSV.TrainFiles, d.CSV.ValFiles = []string{"pairs.tsv"}, []string{"pairs.tsv"}
	case "coco":
		d.COCO.TrainFile, d.COCO.ValFile = "coco.json", "coco.json"
	case "flickr":
		d.Flickr.File, d.Flickr.ValList = "captions.token", "val.txt"
	case "webdataset":
		d.WebDataset.TrainFiles, d.WebDataset.ValFiles = []string{"shard-{0..0}.tar"}, []string{"shard-*.tar"}
	case "parquet":
		d.Parquet.TrainFiles, d.Parquet.ValFiles = []string{"table.parquet"}, []string{"table.parquet"}
	case "karpathy":
		d.Karpathy.File = "all.json"
	case "folder":
		d.Root = filepath.Join(root, "classes")
	case "pairs":
		d.Pairs.Image, d.Pairs.Text, d.Pairs.ValSamples, d.Pairs.TestSamples = "image.safetensors", "text.safetensors", 4, 0
	case "reid":
		d.ReID.Layout = "cub"
	case "regions":
		d.Regions.Test = ""
	case "sentence_pairs":
		d.SentencePairs.Task, d.SentencePairs.TrainFiles, d.SentencePairs.ValFiles = "rte", []string{"rte.tsv"}, []string{"rte.tsv"}
	case "sentences":
		d.Sentences.TrainFiles, d.Sentences.ValFiles, d.Sentences.Sentence, d.Sentences.Positive = []string{"pairs.tsv"}, []string{"val.txt"}, "title", "filepath"
	case "scenes":
		d.Scenes.ValSamples, d.Scenes.TestSamples = 10, 10
	}
	if d.ReadsExamples() {
		d.Examples.Source, d.Scenes.ValSamples, d.Scenes.TestSamples = source.ExamplesOfScenes, 10, 10
	}
	return cfg
}

// Every kind opens: its training stream makes a sample of all its columns, its splits
// are there as galleries, and its captions where it has some.
func TestKinds(t *testing.T) {
	root := folder(t)
	splits := map[string]string{"captions": "[train val]", "folder": "[train val]", "karpathy": "[train val test]", "pairs": "[train val]", "scenes": "[val test]",
		"coco": "[train val]", "csv": "[train val]", "flickr": "[train val]", "parquet": "[train val]", "regions": "[train val]", "sentence_pairs": "[train val]", "sentences": "[train val]", "webdataset": "[train val]",
		"reid": "[train test]", "entailment": "[val test]", "grounding": "[val test]", "nlvr": "[val test]", "vqa": "[val test]"}
	for _, kind := range source.Kinds() {
		cfg := configOf(kind, root)
		if cfg.Data.ReadsExamples() {
			splits[kind] = splits["scenes"]
		}
		stream, err := source.Stream(t.Context(), cfg.Source(), source.Options{Tokenizer: letters{}})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		columns := stream.Columns()
		if err := stream.Sample(0, batch.New(1, columns...).Row(0)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if _, text := batch.Find(columns, batch.Tokens); text != (kind != "pairs") {
			t.Errorf("%s: columns %v", kind, columns)
		}
		names, err := source.Finite(cfg.Source())
		if got, _ := json.Marshal(names); err != nil || strings.NewReplacer(`"`, "", ",", " ").Replace(string(got)) != splits[kind] {
			t.Errorf("%s: splits %v, want %s", kind, names, splits[kind])
		}
		if kind == "sentence_pairs" { // which has no images
			continue
		}
		split := "val"
		if kind == "reid" { // whose collections have none
			split = "test"
		}
		set, err := source.Galleries(t.Context(), cfg.Source(), split, source.Options{})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		texts, err := set.Texts(&data.Texts{Tokenizer: letters{}, Tokens: 4})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range []data.Gallery{set.Images(), texts} {
			if err := data.LoadRows(t.Context(), g, 0, g.Len(), batch.New(g.Len(), g.Columns()...), 2); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		captions, err := source.Texts(t.Context(), cfg.Source(), source.Options{})
		if (err != nil) != (kind == "pairs") || kind != "pairs" && len(captions) == 0 {
			t.Errorf("%s: %d captions (%v)", kind, len(captions), err)
		}
		// Without a tokenizer there is no text, and no column of it.
		if stream, err = source.Stream(t.Context(), cfg.Source(), source.Options{}); err != nil || slices.ContainsFunc(stream.Columns(), func(c data.Column) bool { return c.Name == batch.Tokens }) {
			t.Errorf("%s: text without a tokenizer (%v)", kind, err)
		}
	}
}

// With PerCaption every caption is a sample.
func TestPerCaption(t *testing.T) {
	cfg := configOf("captions", folder(t))
	for per, want := range map[bool]int{false: 1, true: 2} {
		if s, err := source.Stream(t.Context(), cfg.Source(), source.Options{PerCaption: per}); err != nil || s.EpochSamples() != want {
			t.Errorf("%v: %v samples, %v", per, s, err)
		}
	}
}

// The geometric term of alignment heads reads neighbours of the sides that it is on for; nothing
// else does.
func TestNeighbours(t *testing.T) {
	cfg := configOf("pairs", folder(t))
	cfg.Model.System, cfg.Data.CacheDir = "heads", t.TempDir()
	g := &cfg.Objective.Geometric
	g.Neighbours, g.Pool, g.Weight = 3, 2, 0.5
	for modalities, want := range map[string][]string{"both": {batch.ImageNeighbours, batch.TextNeighbours}, "image": {batch.ImageNeighbours}, "text": {batch.TextNeighbours}} {
		g.Modalities = modalities
		s, err := source.Stream(t.Context(), cfg.Source(), source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range s.Columns() {
			if c.Type == batch.Int32 && c.Name != batch.IDs {
				got = append(got, c.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", modalities, got, want)
		}
		b := batch.New(1, s.Columns()...)
		if err := s.Sample(3, b.Row(0)); err != nil {
			t.Fatal(err)
		}
		for _, name := range want {
			if c, _ := b.Column(name); !slices.Equal(c.Shape, []int{3}) {
				t.Errorf("%v, want 3 rows", c)
			}
		}
	}
	if list, err := os.ReadDir(cfg.Data.CacheDir); err != nil || len(list) != 2 {
		t.Errorf("%d files of lists (%v)", len(list), err)
	}
	g.Weight = 0
	if s, err := source.Stream(t.Context(), cfg.Source(), source.Options{}); err != nil || len(s.Columns()) != 3 {
		t.Errorf("columns without the term: %v", err)
	}
}

// A file that a kind lacks is told by its key before anything is read.
func TestInputsOfKinds(t *testing.T) {
	root := folder(t)
	for _, c := range []struct {
		kind   string
		change func(d *source.Data)
		want   string
	}{
		{"csv", func(d *source.Data) { d.CSV.TrainFiles = []string{"pairs.tsv", "none.csv"} }, "data.csv.train_files: there is no such file: " + filepath.Join(root, "none.csv")},
		{"webdataset", func(d *source.Data) { d.WebDataset.TrainFiles = []string{"shard-{0..1}.tar"} }, "data.webdataset.train_files: there is no such file: " + filepath.Join(root, "shard-1.tar")},
		{"webdataset", func(d *source.Data) { d.WebDataset.ValFiles = []string{"val-*.tar"} }, "data.webdataset.val_files: there is no such file: " + filepath.Join(root, "val-*.tar")},
		{"parquet", func(d *source.Data) { d.Parquet.ValFiles = []string{"none.parquet"} }, "data.parquet.val_files: there is no such file"},
		{"coco", func(d *source.Data) { d.COCO.ValFile = "none.json" }, "data.coco.val_file: there is no such file"},
		{"coco", func(d *source.Data) { d.COCO.TrainImages = "none" }, "data.coco.train_images: there is no such folder"},
		{"flickr", func(d *source.Data) { d.Flickr.ValList = "none.txt" }, "data.flickr.val_list: there is no such file"},
		{"flickr", func(d *source.Data) { d.Flickr.File = "none.token" }, "data.flickr.file: there is no such file"},
		{"flickr", func(d *source.Data) { d.Flickr.ImageRoot = "none" }, "data.flickr.image_root: there is no such folder"},
	} {
		cfg := configOf(c.kind, root)
		if err := source.CheckInputs(source.Inputs(cfg.Source(), source.Splits...)); err != nil {
			t.Errorf("%s: %v", c.kind, err)
		}
		c.change(&cfg.Data)
		if err := source.CheckInputs(source.Inputs(cfg.Source(), source.Splits...)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.kind, err, c.want)
		}
	}
	for _, kind := range []string{"csv", "coco", "flickr", "webdataset", "parquet"} {
		if _, err := source.Eval(t.Context(), configOf(kind, root).Source(), "test", source.Options{}); err == nil || !strings.Contains(err.Error(), "data."+kind+".test_") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestCheckSplitOfScenes: whatever is made of scenes, their training split has no end.
func TestCheckSplitOfScenes(t *testing.T) {
	for _, kind := range []string{"scenes", "regions", source.VQAKind} {
		cfg := config.Default()
		cfg.Data.Kind, cfg.Data.Regions.Source, cfg.Data.Examples.Source = kind, source.RegionsOfScenes, source.ExamplesOfScenes
		if err := source.CheckSplit(cfg.Source(), "train"); err == nil || !strings.Contains(err.Error(), "has val, test, as its train split has no end") {
			t.Errorf("%s: %v", kind, err)
		}
		if err := source.CheckSplit(cfg.Source(), "test"); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestInputsOfExamples: ranges and patterns stand for files, and what a task reads beside its samples is told by its key.
func TestInputsOfExamples(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"train-0.json", "train-1.json", "refs.p"} {
		filetest.Write(t, filepath.Join(root, name), "")
	}
	for _, c := range []struct {
		kind   string
		change func(c *config.Config)
		want   string // empty: all is there
	}{
		{"entailment", func(c *config.Config) {}, ""},
		{"nlvr", func(c *config.Config) { c.Data.Examples.TrainFiles = []string{"train-{0..1}.json"} }, ""},
		{"nlvr", func(c *config.Config) { c.Data.Examples.TrainFiles = []string{"train-{0..2}.json"} }, "data.examples.train_files: there is no such file: " + filepath.Join(root, "train-2.json")},
		{"entailment", func(c *config.Config) { c.Data.Examples.ValFiles = []string{"val*.json"} }, "data.examples.val_files: there is no such file: " + filepath.Join(root, "val*.json")},
		{"entailment", func(c *config.Config) { c.Data.Examples.ImageRoot = "images" }, "data.examples.image_root: there is no such folder"},
		{"grounding", func(c *config.Config) { c.Data.Grounding.Refs = "refs.p" }, ""},
		{"grounding", func(c *config.Config) { c.Data.Grounding.Refs = "none.p" }, "data.grounding.refs: there is no such file"},
		{"grounding", func(c *config.Config) { c.Data.Grounding.Detections = "dets.json" }, "data.grounding.detections: there is no such file"},
		{"vqa", func(c *config.Config) { c.Data.VQA.GenomeRoot = "vg" }, "data.vqa.genome_root: there is no such folder"},
		{"vqa", func(c *config.Config) { c.Eval.VQA.Candidates = "answers.txt" }, "eval.vqa.candidates: there is no such file"},
		{"vqa", func(c *config.Config) { c.Eval.VQA.Candidates, c.Eval.VQA.Generate = "answers.txt", true }, ""},
		{"vqa", func(c *config.Config) {
			c.Data.Examples.Source, c.Eval.VQA.Candidates = source.ExamplesOfScenes, "answers.txt"
		}, "eval.vqa.candidates: there is no such file"},
	} {
		cfg := config.Default()
		cfg.Data.Kind, cfg.Data.Root, cfg.Data.Examples.TrainFiles = c.kind, root, []string{"train-*.json"}
		c.change(&cfg)
		err := source.CheckInputs(source.Inputs(cfg.Source(), source.Splits...))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.kind, err, c.want)
		}
	}
}

func TestSourceRefuses(t *testing.T) {
	root := folder(t)
	cfg := configOf("captions", root)
	if !source.Unnamed(cfg.Source(), "test") || source.Unnamed(cfg.Source(), "val") || source.Unnamed(configOf("karpathy", root).Source(), "test") || !source.Unnamed(configOf("pairs", root).Source(), "test") {
		t.Error("splits that a configuration may leave out")
	}
	_, err := source.Eval(t.Context(), cfg.Source(), "test", source.Options{})
	if _, ok := errors.AsType[section.Errors](err); !ok || !strings.Contains(err.Error(), "data.captions.test_files: must name at least one file") {
		t.Errorf("got %v", err)
	}
	cfg.Data.Captions.TrainFiles = []string{"none.json"}
	if _, err := source.Stream(t.Context(), cfg.Source(), source.Options{}); err == nil || !strings.Contains(err.Error(), "relative paths start from data.root") {
		t.Errorf("got %v", err)
	}
	classes, pairs := configOf("folder", root), configOf("pairs", root)
	for want, f := range map[string]func() error{
		`has no folder "test", only train and val: make it, or`: func() error {
			_, err := source.Eval(t.Context(), classes.Source(), "test", source.Options{})
			return err
		},
		"has no images and captions":             func() error { _, err := source.Eval(t.Context(), pairs.Source(), "val", source.Options{}); return err },
		"no captions to learn a vocabulary from": func() error { _, err := source.Texts(t.Context(), pairs.Source(), source.Options{}); return err },
		"data.pairs.test_samples": func() error {
			_, err := source.Galleries(t.Context(), pairs.Source(), "test", source.Options{})
			return err
		},
		"must divide the 4 images of the split": func() error {
			c := pairs
			c.Eval.Folds = 3
			_, err := source.Galleries(t.Context(), c.Source(), "val", source.Options{})
			return err
		},
		"must divide the 10 images of the split": func() error {
			c := configOf("scenes", root)
			c.Eval.Folds = 3
			_, err := source.Eval(t.Context(), c.Source(), "val", source.Options{})
			return err
		},
		"data.kind: is not a kind of data (got \"x\"": func() error {
			_, err := source.Stream(t.Context(), configOf("x", root).Source(), source.Options{})
			return err
		},
		"use one of captions, coco, csv, ": func() error { _, err := source.Finite(configOf("x", root).Source()); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
