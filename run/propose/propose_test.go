package propose_test

import (
	"archive/tar"
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/run/propose"
)

// shard is a tar file with members of a text each.
func shard(t *testing.T, members ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		check.OK(t, w.WriteHeader(&tar.Header{Name: members[i], Mode: 0o644, Size: int64(len(members[i+1]))}))
		check.Get(w.Write([]byte(members[i+1])))(t)
	}
	check.OK(t, w.Close())
	return b.String()
}

// TestLook: what is found in data of each kind, and that a configuration with it has no problem.
func TestLook(t *testing.T) {
	rows := []struct {
		name  string
		files map[string]string
		look  string // below the folder
		root  string // that is found, below the folder
		kind  string
		sets  []string // besides kind and root
		note  string
	}{
		{"csv with the usual names", map[string]string{"captions.csv": "image,caption\na.jpg,A dog runs.\n", "a.jpg": ""}, "captions.csv", ".", "csv",
			[]string{`csv.train_files=["captions.csv"]`, `csv.image="image"`, `csv.caption="caption"`, `split.val=5`, `split.test=5`}, ""},
		{"csv by what cells look like, images in a folder", map[string]string{"x.csv": "key,src,words\n1,a.jpg,\"A dog, it runs.\"\n", "img/a.jpg": ""}, "x.csv", "img", "csv",
			[]string{`csv.train_files=["../x.csv"]`, `csv.image="src"`, `csv.caption="words"`, `split.val=5`, `split.test=5`}, ""},
		{"csv with semicolons and splits", map[string]string{"train.csv": "filename;text\na.jpg;Ein Hund, er rennt.\n", "val.csv": "", "test.csv": "", "a.jpg": ""}, "", ".", "csv",
			[]string{`csv.train_files=["train.csv"]`, `csv.image="filename"`, `csv.caption="text"`, `csv.separator=";"`, `csv.val_files=["val.csv"]`, `csv.test_files=["test.csv"]`}, ""},
		{"tsv", map[string]string{"p.tsv": "title\tfilepath\nA dog runs.\tphotos\\a.jpg\n", "photos/a.jpg": ""}, "p.tsv", ".", "csv",
			[]string{`csv.train_files=["p.tsv"]`, `csv.image="filepath"`, `csv.caption="title"`, `split.val=5`, `split.test=5`}, ""},
		{"images that are nowhere", map[string]string{"captions.csv": "image,caption\nb.jpg,A dog runs.\n"}, "captions.csv", ".", "csv",
			[]string{`csv.train_files=["captions.csv"]`, `csv.image="image"`, `csv.caption="caption"`, `split.val=5`, `split.test=5`}, "no image b.jpg was found"},
		{"captions", map[string]string{"train.json": `[{"image": "i/a.jpg", "caption": "A dog"}]`, "val.json": "[]", "i/a.jpg": ""}, "", ".", "captions",
			[]string{`captions.train_files=["train.json"]`, `captions.val_files=["val.json"]`}, ""},
		{"one list of captions", map[string]string{"all.json": `[{"image": "a.jpg", "caption": ["A dog"]}]`, "a.jpg": ""}, "all.json", ".", "captions",
			[]string{`captions.train_files=["all.json"]`, `split.val=5`, `split.test=5`}, ""},
		{"karpathy", map[string]string{"dataset_x.json": `{"dataset": "x", "images": [{"filepath": "val2014", "filename": "a.jpg", "sentences": [{"raw": "A dog"}], "split": "train"}]}`, "images/val2014/a.jpg": ""}, "", "images", "karpathy",
			[]string{`karpathy.file="../dataset_x.json"`}, ""},
		{"coco", map[string]string{"annotations/captions_train2017.json": `{"info": {}, "images": [{"id": 1, "file_name": "a.jpg"}], "annotations": []}`, "annotations/captions_val2017.json": "{}", "train2017/a.jpg": "", "val2017/b.jpg": ""}, "", ".", "coco",
			[]string{`coco.train_file="annotations/captions_train2017.json"`, `coco.train_images="train2017"`, `coco.val_file="annotations/captions_val2017.json"`, `coco.val_images="val2017"`}, ""},
		{"coco by its file", map[string]string{"annotations/captions_train2017.json": `{"images": [{"id": 1, "file_name": "a.jpg"}]}`, "images/a.jpg": ""},
			"annotations/captions_train2017.json", ".", "coco", []string{`coco.train_file="annotations/captions_train2017.json"`}, ""},
		{"a column whose name has a line in it", map[string]string{"x.csv": "image,caption,\"a\nb\"\na.jpg,A dog runs.,1\n", "a.jpg": ""}, "x.csv", ".", "csv",
			[]string{`csv.train_files=["x.csv"]`, `csv.image="image"`, `csv.caption="caption"`, `split.val=5`, `split.test=5`}, ""},
		{"flickr", map[string]string{"Flickr8k.token.txt": "a.jpg#0\tA dog .\n", "Flickr_8k.trainImages.txt": "a.jpg", "Flickr_8k.devImages.txt": "b.jpg", "Flicker8k_Dataset/a.jpg": ""}, "", "Flicker8k_Dataset", "flickr",
			[]string{`flickr.file="../Flickr8k.token.txt"`, `flickr.train_list="../Flickr_8k.trainImages.txt"`, `flickr.val_list="../Flickr_8k.devImages.txt"`}, ""},
		{"shards", map[string]string{"x-train-0.tar": shard(t, "0.jpg", "x", "0.txt", "A dog"), "x-train-1.tar": "", "x-val-0.tar": ""}, "", ".", "webdataset",
			[]string{`webdataset.train_files=["x-train-0.tar", "x-train-1.tar"]`, `webdataset.val_files=["x-val-0.tar"]`}, ""},
		{"a shard with captions in json", map[string]string{"0.tar": shard(t, "0.jpg", "x", "0.json", `{"id": 3, "text": "A dog"}`, "1.jpg", "y")}, "0.tar", ".", "webdataset",
			[]string{`webdataset.train_files=["0.tar"]`, `webdataset.json_key="text"`}, "no file has the name of another split"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range r.files {
				filetest.Write(t, filepath.Join(dir, name), text)
			}
			p := check.Get(propose.Look(filepath.Join(dir, r.look)))(t)
			want := append([]string{"data.kind=\"" + r.kind + "\"", "data.root=\"" + filepath.ToSlash(filepath.Join(dir, r.root)) + "\""}, r.sets...)
			for i, s := range want[2:] {
				want[i+2] = "data." + s
			}
			if got := strings.Join(p.Sets(), "\n"); got != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
			}
			if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, r.note) || r.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, r.note)
			}
			text := p.Text("photos", []string{"What it is of."}, 20, "enough")
			cfg := check.Get(config.Parse("my.toml", []byte(text), nil))(t)
			if same := check.Get(config.Load("photos", append(p.Sets(), "data.tokens=20", "train.eval_every_steps=0")))(t); cfg.Data.Kind != r.kind || cfg.Data.Root != same.Data.Root || cfg.Data.Tokens != 20 {
				t.Errorf("%s", text)
			}
		})
	}
}

// TestLookParquet: columns of a table by their names.
func TestLookParquet(t *testing.T) {
	p := check.Get(propose.Look(filepath.Join("..", "..", "data", "testdata", "parquet", "struct.parquet")))(t)
	if got := strings.Join(p.Sets()[2:], " "); got != `data.parquet.train_files=["struct.parquet"] data.parquet.image="image" data.parquet.caption="caption"` {
		t.Error(got)
	}
}

// TestLookRefuses: what is not a list of images with captions is told, with what to do.
func TestLookRefuses(t *testing.T) {
	rows := []struct{ name, text, want string }{
		{"x.csv", "a.jpg,A dog runs.\n", `the first line holds an image`},
		{"x.csv", "a,b\n1,2\n", "no column holds names of images among a, b: call it image"},
		{"x.csv", "image,b\na.jpg,2\n", "no column holds captions among image, b"},
		{"x.csv", "", "is empty"},
		{"x.json", "[1, 2]", `want a list of {"image", "caption"}`},
		{"x.json", `{"images": [{"name": "a"}]}`, "has images of another form"},
		{"x.json", `{"a": 1}`, "has no images"},
		{"x.json", `{`, "has no images"},
		{"x.json", `{"images": 3}`, "has no list of images"},
		{"x.tar", "no tar file", "x.tar"},
		{"x.tar", shard(t, "0.jpg", "x", "1.jpg", "y"), "neither a .txt nor a .json member"},
		{"x.tar", shard(t, "0.jpg", "x", "0.json", `{"words": "x"}`), "has no caption under caption, captions, text"},
		{"x.parquet", "no table", "x.parquet"},
		{"x.token", "no captions", "image.jpg#0"},
		{"x.jpg", "", "none of the files that list images with captions"},
	}
	for _, r := range rows {
		check.Fails(propose.Look(filetest.Temp(t, r.name, r.text)))(t, r.want)
	}
	check.Fails(propose.Look(filepath.Join(t.TempDir(), "none")))(t, "no such file")
	check.Fails(propose.Look(t.TempDir()))(t, "holds no list of images with captions", "trainer embed --images")
}
