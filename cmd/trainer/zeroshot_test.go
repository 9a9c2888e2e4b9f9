package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// classFiles writes 40 images of the features in dir and, of each of the first eight as its class,
// two prompts whose mean is its text. It returns the settings of eval.zeroshot. The class of an
// image is that of the row that it is a copy of.
func classFiles(t *testing.T, dir string) []string {
	t.Helper()
	f := check.Get(safetensors.Open(filepath.Join(dir, "text.safetensors")))(t)
	defer f.Close()
	text := check.Get(f.Float32("rows"))(t)
	g := check.Get(safetensors.Open(filepath.Join(dir, "image.safetensors")))(t)
	defer g.Close()
	image := check.Get(g.Float32("rows"))(t)
	const w, classes = 12, 8
	var images, prompts []float32
	var imageLabels, promptLabels strings.Builder
	for i := range 40 {
		images = append(images, image[i%classes*w:][:w]...)
		fmt.Fprintf(&imageLabels, "class %d\n", i%classes)
	}
	for i := range 2 * classes {
		for k, v := range text[i/2*w:][:w] {
			prompts = append(prompts, v+float32(1-2*(i%2))*text[(i/2+9)*w+k])
		}
		fmt.Fprintf(&promptLabels, " class %d \n", i/2)
	}
	for name, x := range map[string][]float32{"class-images": images, "prompts": prompts} {
		out := check.Get(os.Create(filepath.Join(dir, name+".safetensors")))(t)
		if err := safetensors.Write(out, []safetensors.Tensor{{Name: "rows", Shape: []int{len(x) / w, w}, Data: x}}, nil); err != nil {
			t.Fatal(err)
		}
		check.OK(t, out.Close())
	}
	for name, text := range map[string]string{"images.txt": imageLabels.String(), "prompts.txt": promptLabels.String()} {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	return []string{"--set", "eval.zeroshot.image=class-images.safetensors", "--set", "eval.zeroshot.text=prompts.safetensors",
		"--set", "eval.zeroshot.image_labels=images.txt", "--set", "eval.zeroshot.text_labels=prompts.txt"}
}

// TestZeroShot classifies images by prompts during a run, and with eval, of a closed form and of heads.
func TestZeroShot(t *testing.T) {
	data := alignArgs(t, 300)
	dir := strings.TrimPrefix(data[3], "data.root=")
	classes, out := classFiles(t, dir), t.TempDir()
	stdout, stderr := must(t, exitDone, append(append([]string{"train", "--out", out}, data...), classes...)...)
	contains(t, stderr, "zero-shot top-1 100.00", "mean rank of the 5 nearest stored neighbours")
	contains(t, stdout, "zero-shot accuracy", "mean rank of 5 nearest stored neighbours")
	log := check.Get(os.ReadFile(filepath.Join(out, "metrics.jsonl")))(t)
	contains(t, string(log), `"eval/zeroshot/top1":100`, `"eval/zeroshot/top5":100`, `"eval/neighbours/image_rank":`, `"eval/neighbours/text_rank":`)
	page := check.Get(os.ReadFile(filepath.Join(out, "report.html")))(t)
	contains(t, string(page), "zeroshot/top1", "neighbours/text_rank")
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", out, "--task", "zeroshot", "--json")
	if m := parseJSON(t, stdout); m["top1"] != 100.0 || m["classes"] != 8.0 || m["prompts"] != 16.0 || m["images"] != 40.0 || m["chance"] != 12.5 {
		t.Errorf("eval --task zeroshot: %s", stdout)
	}
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", out, "--task", "neighbours", "--json")
	if m := parseJSON(t, stdout); m["kept_rank"] != 3.0 || m["image_rank"].(float64) < 3 || m["image_rank"].(float64) > 8 || m["image_chance_rank"] != 20.0 {
		t.Errorf("eval --task neighbours: %s", stdout)
	}
	heads := append(rotatedFeatures(t, 300, 12), classes...)
	heads[3] = data[3] // the folder with the classes
	_, stderr = must(t, exitDone, append([]string{"train", "--out", t.TempDir(), "--max-steps", "2"}, heads...)...)
	contains(t, stderr, "zero-shot top-1 ", "nearest stored neighbours")

	labels := filepath.Join(dir, "images.txt")
	for _, c := range []struct {
		text  string
		code  int
		texts []string
	}{
		{strings.Repeat("class 0\n", 39), exitUsage, []string{"eval.zeroshot.image_labels: has 39 lines, and ", " has 40 rows"}},
		{strings.Repeat("class 0\n", 39) + "bird\n", exitUsage, []string{`eval.zeroshot.image_labels: has the class "bird" on line 40, and no prompt is of that class`}},
		{"class 0\n\n" + strings.Repeat("class 0\n", 38), exitFailed, []string{"eval.zeroshot.image_labels: ", "line 2: it is empty"}},
	} {
		check.OK(t, os.WriteFile(labels, []byte(c.text), 0o666))
		// A run says so before it begins.
		fails(t, c.code, append(append([]string{"train", "--out", t.TempDir()}, data...), classes...), c.texts...)
	}
	fails(t, exitUsage, append(append([]string{"train", "--out", t.TempDir()}, data...), classes[:2]...), "eval.zeroshot.text: must name a file", "eval.zeroshot.image_labels: must name a text file")
	fails(t, exitUsage, append(append([]string{"train", "--out", t.TempDir()}, data...), append(classes, "--set", "eval.zeroshot.text=none.npy")...), "eval.zeroshot.text: ")
	fails(t, exitUsage, []string{"eval", "--checkpoint", out, "--task", "zeroshot", "--set", "eval.zeroshot.image="}, "eval.zeroshot.image: must name features of images")
	fails(t, exitUsage, []string{"validate", "--config", "../../configs/quickstart.toml", "--set", "eval.zeroshot.image=a.npy"}, "eval.zeroshot.image: must be empty")
}
