package config

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/encoders"
)

// updateTags rewrites testdata/tags.txt.
var updateTags = flag.Bool("update", false, "rewrite testdata/tags.txt")

// TestTags: what a checkpoint fixes and what changes nothing is a decision about each key, which testdata/tags.txt
// lists, one on a line. A key without its tag would let a run go on as another one.
func TestTags(t *testing.T) {
	const path = "testdata/tags.txt"
	var got []string
	var c Config
	for _, f := range c.leaves() {
		for _, name := range []string{"fixed", "change"} {
			if v := f.tag.Get(name); v != "" {
				got = append(got, fmt.Sprintf("%s %s %s", f.path, name, v))
			}
		}
	}
	if *updateTags {
		if err := os.WriteFile(path, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(want)) {
		if line = strings.TrimSpace(line); !slices.Contains(got, line) {
			t.Errorf("%s is no more", line)
		}
	}
	for _, line := range got {
		if !strings.Contains("\n"+string(want), "\n"+line+"\n") {
			t.Errorf("%s is new: if it is meant, go test ./config -run TestTags -update", line)
		}
	}
}

// pathsOf lists the keys of conflicts.
func pathsOf(conflicts []Conflict) (list []string) {
	for _, c := range conflicts {
		list = append(list, c.Path)
	}
	return list
}

func TestConflicts(t *testing.T) {
	old, now := small(), small()
	now.Run.Name, now.Run.Seed, now.Train.KeepLast = "x", 1, 5
	now.Model.Image.Depth, now.Model.Image.Heads, now.Model.Image.MLP = 3, 6, 4*768 // what 0 stands for
	old.Model.Text.MLP, now.Model.Text.MLP = 0, 4*now.Model.Text.Width
	now.Objective.Geometric.Weight = 1
	for use, want := range map[Fixed][]string{
		FixedMeaning: {"model.image.heads"},
		FixedModel:   {"model.image.depth", "model.image.heads"},
		FixedRun:     {"objective.geometric.weight", "run.seed", "model.image.depth", "model.image.heads"},
	} {
		if got := pathsOf(Conflicts(old, now, use)); !slices.Equal(got, want) {
			t.Errorf("%d: got %v, want %v", use, got, want)
		}
	}
	silent, harmless := []string{}, []string{}
	for _, d := range Differences(old, now) {
		if d.Silent {
			silent = append(silent, d.Path)
		}
		if d.Harmless {
			harmless = append(harmless, d.Path)
		}
	}
	if fmt.Sprint(silent, harmless) != "[run.name] [run.name train.keep_last]" {
		t.Errorf("silent %v, harmless %v", silent, harmless)
	}
}

// TestTextConflicts: a run of texts alone takes over a text tower of the same structure, whatever stands beside it.
func TestTextConflicts(t *testing.T) {
	old, now := small(), small()
	old.Model.System, old.Model.Head.Dim, old.Model.Image.Heads, old.Model.Text.FusionLayers = "albef", 64, 2, 3
	now.Model.System, now.Model.Text.Style, now.Model.Text.Pool, now.Model.Text.FusionLayers = "simcse", encoders.StyleBERT, "mean", 0
	paths := func() []string { return pathsOf(TextConflicts(old, now)) }
	if got := paths(); got != nil {
		t.Errorf("conflicts %v, want none", got)
	}
	old.Model.System = "clip"
	if got := paths(); !slices.Equal(got, []string{"model.text.style"}) {
		t.Errorf("conflicts with the tower of clip-mtob %v", got)
	}
	old.Model.Text.Style, now.Model.Text.Heads = encoders.StyleBERT, 2*now.Model.Text.Heads
	if got := paths(); !slices.Equal(got, []string{"model.text.heads"}) {
		t.Errorf("conflicts with other heads %v", got)
	}
}

// TestImageConflicts: a classifier takes over an image tower of the same structure, whatever stands beside it and whatever keys of other
// structures say.
func TestImageConflicts(t *testing.T) {
	old, now := small(), small()
	old.Model.System, old.Model.Head.Dim, old.Model.Text.Heads = "albef", 64, 2
	now.Model.System, now.Model.Image.Style, now.Model.Image.Pool = "classes", encoders.StyleViT, "mean"
	paths := func() []string { return pathsOf(ImageConflicts(old, now)) }
	if got := paths(); got != nil {
		t.Errorf("conflicts %v, want none", got)
	}
	old.Model.System = "clip"
	if got := paths(); !slices.Equal(got, []string{"model.image.style"}) {
		t.Errorf("conflicts with the tower of clip-mtob %v", got)
	}
	old.Model.Image.Style, now.Model.Image.Heads = encoders.StyleViT, 2*now.Model.Image.Heads
	if got := paths(); !slices.Equal(got, []string{"model.image.heads"}) {
		t.Errorf("conflicts with other heads %v", got)
	}
	old.Model.Image.Style, now.Model.Image.Style = encoders.StyleResNet, encoders.StyleResNet // which has none
	if got := paths(); got != nil {
		t.Errorf("conflicts of residual networks %v", got)
	}

	old.Model.Image.Style = encoders.StyleViT
	now.Model.Image = old.Model.Image
	for _, one := range []string{"Ob(16,4)", "Multi(64,1)"} { // of one class token
		old.Model.Head.Dim, old.Model.Head.Topology = 64, one
		if got := paths(); got != nil {
			t.Errorf("conflicts with a tower of one class token, %s: %v", one, got)
		}
	}
	old.Model.Head.Topology = "Multi(16,4)"
	list := ImageConflicts(old, now)
	if len(list) != 1 || list[0].Path != "model.head.topology" || !list[0].NoValue || list[0].Now != "sphere" ||
		list[0].With != `"Multi(16,4)", which gives the image tower 4 class tokens, and model.system "classes" reads one` {
		t.Errorf("conflicts with a tower of several class tokens %+v", list)
	}
}
