package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/configs"
	"github.com/geoalign/geoalign/internal/check"
)

// Every shipped configuration is the same by its name, with and without ending and folder, as from its file.
func TestShippedByName(t *testing.T) {
	repository := check.Get(filepath.Abs(".."))(t)
	t.Chdir(t.TempDir())
	list := configs.List()
	if len(list) < 50 {
		t.Fatalf("%d configurations", len(list))
	}
	root := func(name string) string { return filepath.Join(repository, "configs", name+".toml") }
	for _, s := range list {
		if s.Summary == "" || strings.HasSuffix(s.Summary, ".") || len(s.Summary) > 200 {
			t.Errorf("%s: %q does not sum it up", s.Name, s.Summary)
		}
		want, err := Load(root(s.Name), nil)
		got, errOwn := Load(s.Name, nil)
		if (err == nil) != (errOwn == nil) {
			t.Errorf("%s: %v, and from its file %v", s.Name, errOwn, err)
		} else if d := Differences(want, got); d != nil {
			t.Errorf("%s: %+v", s.Name, d)
		}
	}
	for _, s := range list { // a copy elsewhere has the bases of the original
		text := check.Get(configs.Copy(s.Name))(t)
		want, err := Load(s.Name, nil)
		got, errCopy := Parse("copy.toml", text, nil)
		if (err == nil) != (errCopy == nil) {
			t.Errorf("%s: %v, and its copy %v", s.Name, err, errCopy)
		} else if d := Differences(want, got); d != nil {
			t.Errorf("copy of %s: %+v", s.Name, d)
		}
	}
	a, b := check.Get(Load("quickstart.toml", nil))(t), check.Get(Load("configs/quickstart.toml", nil))(t)
	if d := Differences(a, b); d != nil {
		t.Errorf("%+v", d)
	}
}

// A file here comes before a shipped one of its name, may have a shipped one as its base, and messages name the file
// that is at fault.
func TestShippedAsBase(t *testing.T) {
	dir := folder(t, map[string]string{
		"own.toml":        "base = \"ideas/geodesic\"\n[run]\nname = \"own\"\n",
		"quickstart.toml": "[run]\nname = \"mine\"\n",
		"ideas/x":         "a folder of that name is in no way",
		"ideas/host/x":    "",
		"none.toml":       "base = \"quickstar\"\n",
	})
	t.Chdir(dir)
	c := check.Get(Load("own.toml", nil))(t)
	want := check.Get(Load("ideas/geodesic", []string{"run.name=own"}))(t)
	if d := Differences(want, c); d != nil {
		t.Errorf("%+v", d)
	}
	if c := check.Get(Load("quickstart.toml", nil))(t); c.Run.Name != "mine" {
		t.Errorf("%q: the shipped one hides the file", c.Run.Name)
	}
	_, err := Load("none.toml", nil)
	check.Error(t, err, "none.toml:1: base: there is no file quickstar")
	_, err = Load("quickstar", nil)
	check.Error(t, err, "trainer configs lists them")
	_, err = Load("quickstart", []string{"data.scenes.min_objects=9"})
	check.Error(t, err, "built-in:/quickstart.toml:")
}

// The keys that the heads of the hosts of GSSF name for the published sizes are a configuration, whose learning rate falls
// in steps, with the epochs and the vocabulary of the published code.
func TestPublishedSizes(t *testing.T) {
	files := check.Get(filepath.Glob("../configs/gssf-*.toml"))(t)
	if len(files) < 8 {
		t.Fatalf("%d hosts", len(files))
	}
	assignment := regexp.MustCompile(`((?:[a-z_]+(?:\.[a-z_0-9]+)+ = )+)("[a-z]+"|true|[-0-9.e]*[0-9])`)
	for _, file := range files {
		text := strings.ReplaceAll(string(check.Get(os.ReadFile(file))(t)), "\n# ", " ")
		_, text, _ = strings.Cut(text, "The published sizes, on the files of SCAN")
		text, _, _ = strings.Cut(text, ". ") // what follows is of other data, or of variants
		var sets []string
		for _, m := range assignment.FindAllStringSubmatch(text, -1) {
			for key := range strings.SplitSeq(strings.TrimSuffix(m[1], " = "), " = ") {
				sets = append(sets, key+"="+strings.Trim(m[2], `"`))
			}
		}
		c, err := Load(file, sets)
		if err == nil {
			err = c.Validate()
		}
		check.OK(t, err)
		warm := slices.Contains([]string{"gssf-esa", "gssf-vseinf"}, c.Run.Name)
		if c.Schedule.Kind != "step" || c.Train.MaxEpochs < 20 || c.Model.Text.GRU.Embedding != 300 || !c.Data.Regions.ValWords ||
			(c.Objective.Hinge.WarmupEpochs > 0) != warm {
			t.Errorf("%s: %q", file, sets)
		}
	}
}
