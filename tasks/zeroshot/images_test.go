package zeroshot_test

import (
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks/probe"
	"github.com/geoalign/geoalign/tasks/zeroshot"
)

// classFolder writes a folder of small images for each class of a split.
func classFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"train/cat/1", "train/dog/1", "val/cat/2"} {
		path := filepath.Join(dir, "classes", name+".png")
		check.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		f := check.Get(os.Create(path))(t)
		check.OK(t, errors.Join(png.Encode(f, image.NewGray(image.Rect(0, 0, 8, 8))), f.Close()))
	}
	return dir
}

// classFolderConfig is a configuration over the class folder of classFolder(t), with further files.
func classFolderConfig(t *testing.T, write map[string]string) config.Config {
	t.Helper()
	dir := classFolder(t)
	for name, text := range write {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	cfg := config.Default()
	cfg.Data.Kind, cfg.Data.Root, cfg.Model.Image.Size = "folder", dir, 8
	cfg.Eval.ZeroShot.Images, cfg.Eval.ZeroShot.ImagesSplit = "classes", "train"
	return cfg
}

// TestZeroShotImages: classes of a folder beside the data, their names and their prompts.
func TestZeroShotImages(t *testing.T) {
	cfg := classFolderConfig(t, map[string]string{"names.txt": "\ufeffhouse cat\nhot_dog\n", "tab.txt": "dog\thound\ncat\thouse cat\ndog\tmutt\n", "templates.txt": "a {}.\n{}!\n"})
	z := &cfg.Eval.ZeroShot
	for _, c := range []struct {
		classes, templates string
		names, prompts     []string
		class              []int32
	}{
		{"", "", []string{"cat", "dog"}, []string{"a photo of a cat.", "a photo of a dog."}, []int32{0, 1}},
		{"names.txt", "templates.txt", []string{"house cat", "hot_dog"}, []string{"a house cat.", "house cat!", "a hot_dog.", "hot_dog!"}, []int32{0, 0, 1, 1}},
		{"tab.txt", "", []string{"house cat", "hound"}, []string{"a photo of a house cat.", "a photo of a hound.", "a photo of a mutt."}, []int32{0, 1, 1}},
	} {
		z.Classes, z.TemplatesFile = c.classes, c.templates
		got := check.Get(openZeroShot(cfg))(t)
		if !slices.Equal(got.Classes, c.names) || !slices.Equal(got.PromptTexts, c.prompts) || !slices.Equal(got.PromptClass, c.class) || !slices.Equal(got.ImageClass, []int32{0, 1}) || got.Images.Len() != 2 {
			t.Errorf("%q: %+v", c.classes, got)
		}
	}
	z.Classes, z.ImagesSplit = "", "val"
	if got, err := openZeroShot(cfg); err != nil || !slices.Equal(got.ImageClass, []int32{0}) || len(got.Classes) != 2 {
		t.Errorf("a split with an image of one class: %+v %v", got, err)
	}
	z.Images, z.ImagesSplit = filepath.Join(cfg.Data.Root, "classes/train"), zeroshot.AllImages
	if got, err := openZeroShot(cfg); err != nil || got.Images.Len() != 2 {
		t.Errorf("all of a folder that is not divided: %+v %v", got, err)
	}
	// The split that is evaluated is that of the images.
	z.Images = ""
	cfg.Data.Root = filepath.Join(cfg.Data.Root, "classes")
	set := check.Get(source.Eval(t.Context(), cfg.Source(), "val", source.Options{}))(t)
	if got, err := cfg.Eval.ZeroShot.OpenImages(cfg.Source(), set); err != nil || !slices.Equal(got.ImageClass, []int32{0}) {
		t.Errorf("%+v %v", got, err)
	}
}

// TestZeroShotImagesErrors: each says the key, the place and what to do.
func TestZeroShotImagesErrors(t *testing.T) {
	base := classFolderConfig(t, map[string]string{
		"short.txt": "cat\n", "long.txt": "cat\ndog\nbird\n", "mixed.txt": "cat\tkitten\ndog\n", "unknown.txt": "cat\tkitten\nbird\tbird\n", "lack.txt": "cat\tkitten\n", "blank.txt": "cat\n...\n",
		"plain.txt": "a {}\na photo\n", "twice.txt": "{} {}\n", "empty.txt": "",
	})
	for _, c := range []struct {
		set  func(z *zeroshot.Eval)
		want []string
	}{
		{func(z *zeroshot.Eval) { z.Classes = "short.txt" }, []string{"eval.zeroshot.classes: has 1 lines, and the images have 2 classes", "in this order: cat, dog"}},
		{func(z *zeroshot.Eval) { z.Classes = "long.txt" }, []string{"eval.zeroshot.classes: has 3 lines, and the images have 2 classes"}},
		{func(z *zeroshot.Eval) { z.Classes = "mixed.txt" }, []string{"has no tab on line 2"}},
		{func(z *zeroshot.Eval) { z.Classes = "unknown.txt" }, []string{`names the class "bird" on line 2, which no image has`, "the classes are cat, dog"}},
		{func(z *zeroshot.Eval) { z.Classes = "lack.txt" }, []string{`has no name for the class "dog"`}},
		{func(z *zeroshot.Eval) { z.Classes = "blank.txt" }, []string{`gives class 2 the name "..."`}},
		{func(z *zeroshot.Eval) { z.Classes = "none.txt" }, []string{"eval.zeroshot.classes: there is no such file"}},
		{func(z *zeroshot.Eval) { z.TemplatesFile = "plain.txt" }, []string{`eval.zeroshot.templates_file: line 2 has no place for the name of a class (got "a photo"): write {} there`}},
		{func(z *zeroshot.Eval) { z.TemplatesFile = "twice.txt" }, []string{"line 1 has 2 places"}},
		{func(z *zeroshot.Eval) { z.TemplatesFile = "empty.txt" }, []string{"eval.zeroshot.templates_file: is empty"}},
		{func(z *zeroshot.Eval) { z.Images = "none" }, []string{"eval.zeroshot.images: there is no such folder"}},
		{func(z *zeroshot.Eval) { z.ImagesSplit = zeroshot.AllImages }, []string{"is divided into folders by split"}},
		{func(z *zeroshot.Eval) { z.ImagesSplit = "test" }, []string{"eval.zeroshot.images and images_split: "}},
	} {
		cfg := base
		c.set(&cfg.Eval.ZeroShot)
		_, err := openZeroShot(cfg)
		for _, want := range c.want {
			check.Error(t, err, want)
		}
	}
	cfg := base
	list := filepath.Join(cfg.Data.Root, "list.json")
	check.OK(t, os.WriteFile(list, []byte(`[{"image": "classes/val/cat/2.png", "caption": "A picture."}]`), 0o644))
	cfg.Data.Kind, cfg.Data.Captions.ValFiles, cfg.Eval.ZeroShot.Images = "captions", []string{"list.json"}, ""
	set := check.Get(source.Eval(t.Context(), cfg.Source(), "val", source.Options{}))(t)
	if _, err := cfg.Eval.ZeroShot.OpenImages(cfg.Source(), set); err == nil || !strings.Contains(err.Error(), `eval.zeroshot.images: must name a folder of classes, as data.kind "captions" has no classes`) {
		t.Error(err)
	}
}

// TestCLIPTemplates reads the templates of a real file, as docs/zeroshot.md says, where it is there.
func TestCLIPTemplates(t *testing.T) {
	b, err := os.ReadFile("../../../shared/data/tokenizers/clip_prompts.md")
	if err != nil {
		t.Skip("no templates here")
	}
	_, section, _ := strings.Cut(string(b), "## CIFAR10\n")
	_, section, _ = strings.Cut(section, "templates = [")
	section, _, _ = strings.Cut(section, "]")
	var lines []string
	for line := range strings.Lines(section) {
		if line = strings.Trim(line, " ',\n"); line != "" {
			lines = append(lines, line)
		}
	}
	cfg := classFolderConfig(t, map[string]string{"clip.txt": strings.Join(lines, "\n")})
	cfg.Eval.ZeroShot.TemplatesFile = "clip.txt"
	z, err := openZeroShot(cfg)
	if err != nil || len(lines) != 18 || len(z.PromptTexts) != 36 || !slices.Contains(z.PromptTexts, "a black and white photo of the dog.") {
		t.Errorf("%d templates: %+v %v", len(lines), z, err)
	}
}

// TestOpenTextProbe: labels are classes in the order of their names.
func TestOpenTextProbe(t *testing.T) {
	dir := t.TempDir()
	write := func(name, labels string) string {
		var text strings.Builder
		text.WriteString("text_a\ttext_b\tlabel\n")
		for l := range strings.FieldsSeq(labels) {
			text.WriteString("a\tb\t" + l + "\n")
		}
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o644))
		return name
	}
	cfg := config.Default()
	cfg.Data.Root = dir
	cfg.Eval.TextProbe = probe.EvalTexts{Train: write("train.tsv", "yes no yes"), Test: write("test.tsv", "no yes")}
	p, err := cfg.Eval.TextProbe.Open(cfg.Source())
	if err != nil || !slices.Equal(p.Classes, []string{"no", "yes"}) || !slices.Equal(p.TrainLabel, []int32{1, 0, 1}) || !slices.Equal(p.TestLabel, []int32{0, 1}) || !reflect.DeepEqual(p.Test[0], data.TextPair{A: "a", B: "b", Label: "no"}) {
		t.Errorf("%+v %v", p, err)
	}
	for _, c := range []struct{ train, test, want string }{
		{"yes no", "no maybe", `eval.textprobe.test: has the label "maybe" in entry 1, which no training pair has`},
		{"yes yes", "yes", "has one label, yes, in all its pairs"},
		{"1 4.5", "1", "has the label 4.5 in entry 1, which is a number on a scale"},
	} {
		write("train.tsv", c.train)
		write("test.tsv", c.test)
		check.Fails(cfg.Eval.TextProbe.Open(cfg.Source()))(t, c.want)
	}
	cfg.Eval.TextProbe.Test = "none.tsv"
	check.Fails(cfg.Eval.TextProbe.Open(cfg.Source()))(t, "eval.textprobe.test: there is no such file")
	cfg.Eval.TextProbe.Train = ""
	if _, err := cfg.Eval.TextProbe.Open(cfg.Source()); !errors.As(err, new(config.Errors)) {
		t.Error(err)
	}
}

// openZeroShot is OpenZeroShotImages of the folder that a configuration names.
func openZeroShot(cfg config.Config) (*zeroshot.Inputs, error) {
	set, err := cfg.Eval.ZeroShot.Folder(cfg.Source())
	if err != nil {
		return nil, err
	}
	return cfg.Eval.ZeroShot.OpenImages(cfg.Source(), set)
}
