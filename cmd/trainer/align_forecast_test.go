package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestAlignForecast compares files of features before anything is fitted.
func TestAlignForecast(t *testing.T) {
	data := rotatedFeatures(t, 300, 12)
	dir := strings.TrimPrefix(data[3], "data.root=")
	image, text := filepath.Join(dir, "image.safetensors"), filepath.Join(dir, "text.safetensors")
	page := filepath.Join(t.TempDir(), "page.html")
	stdout, _ := must(t, exitDone, "align-forecast", image, text, "--rows", "200", "--out", page)
	contains(t, stdout, "300 pairs, of which 200 were looked at", "mutual k-NN  1.000", "CKA          1.000", "nearly same: ", "page: "+page)
	drawn := check.Get(os.ReadFile(page))(t)
	contains(t, string(drawn), "<svg", "mutual k-NN", "nearly the same", "looked at")

	// Of a configuration only the training pairs are looked at.
	config := append([]string{"align-forecast", "--json", "--shuffles", "20"}, data...)
	stdout, _ = must(t, exitDone, config...)
	m := parseJSON(t, stdout)
	if m["pairs"] != 220.0 || m["likeness"] != "nearly same" || m["cka"].(map[string]any)["value"].(float64) < 0.999 {
		t.Errorf("the training pairs of a configuration: %s", stdout)
	}
	other := strings.TrimPrefix(rotatedFeatures(t, 300, 7)[3], "data.root=") // another rotation of another draw
	stdout, _ = must(t, exitDone, "align-forecast", filepath.Join(other, "image.safetensors"), text, "--json")
	if m := parseJSON(t, stdout); m["likeness"] != "unlike" {
		t.Errorf("features that have nothing to do with each other: %s", stdout)
	}

	for _, c := range []struct {
		args  []string
		texts []string
	}{
		{[]string{image}, []string{"needs two files, IMAGE and TEXT, or --config"}},
		{[]string{image, text, "--config", "../../configs/align.toml"}, []string{"or --config alone"}},
		{[]string{image, text, "--rows", "100000"}, []string{"--rows must be between 4 and 5000"}},
		{[]string{image, text, "--neighbours", "0"}, []string{"--neighbours must be between 1 and --rows less 2"}},
		{[]string{image, text, "--shuffles", "0"}, []string{"--shuffles must be between 19"}},
		{[]string{image, image, "--shuffles", "2"}, []string{"as of fewer no share can be below 5 % (got 2)"}},
		{[]string{image, text, "--out", "a.png"}, []string{"--out must name an .html file"}},
		{[]string{"--config", "../../configs/quickstart.toml"}, []string{`data.kind: must be "pairs" for a forecast`}},
		{[]string{"image.jpg", text}, []string{"data.pairs.image: must end in .npy"}},
	} {
		fails(t, exitUsage, append([]string{"align-forecast"}, c.args...), c.texts...)
	}
	for _, none := range []string{filepath.Join(dir, "none.npy"), "none.npy"} {
		if stderr := fails(t, exitUsage, []string{"align-forecast", none, text}, "data.pairs.image: there is no such file: "+none); strings.Contains(stderr, "data.root") {
			t.Errorf("advice that has no effect on files that are named: %s", stderr)
		}
	}
	odd := filepath.Join(t.TempDir(), "\a'\".safetensors") // whatever a file may be called
	check.OK(t, os.Link(image, odd))
	must(t, exitDone, "align-forecast", odd, text, "--shuffles", "19")
	fails(t, exitFailed, []string{"align-forecast", image, text, "--out", filepath.Join(dir, "none", "page.html")}, "choose another file with --out")
}

// TestAlignForecastCaptions: captions of one image are near each other whatever the image is, which is nothing that
// both spaces have in common.
func TestAlignForecastCaptions(t *testing.T) {
	const images, each, w = 80, 5, 12
	r := rand.New(rand.NewPCG(3, 4))
	var image, text []float32
	table := "image_row\ttext_row\n"
	for i := range images {
		about := make([]float64, w)
		for k := range w {
			image, about[k] = append(image, float32(r.NormFloat64())), r.NormFloat64()
		}
		for range each {
			table += fmt.Sprintf("%d\t%d\n", i, len(text)/w)
			for _, v := range about {
				text = append(text, float32(v+r.NormFloat64()/2))
			}
		}
	}
	dir := featuresIn(t, w, image, text)
	check.OK(t, os.WriteFile(filepath.Join(dir, "pairs.tsv"), []byte(table), 0o666))
	args := append([]string{"align-forecast", "--json"}, alignArgs(t, 10)...)
	stdout, _ := must(t, exitDone, append(args, "--set", "data.root="+dir, "--set", "data.pairs.index=pairs.tsv", "--set", "data.pairs.val_samples=0", "--set", "data.pairs.test_samples=0")...)
	if m := parseJSON(t, stdout); m["likeness"] != "unlike" || m["pairs"] != 80.0 || m["looked"] != 80.0 {
		t.Errorf("captions that know nothing of their images: %s", stdout)
	}
}
