package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder writes files below a temporary folder, which it returns.
func folder(t *testing.T, list map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range list {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Tables merge along the chain, values and lists replace, and units replace each other
// as between a file and the command line.
func TestBase(t *testing.T) {
	dir := folder(t, map[string]string{
		"root.toml":   "[run]\nname = \"root\"\n[train]\nmax_steps = 9\nbatch_size = 8\n[optimizer]\nno_decay = [\"bias\", \"1d\"]\nlr = 1e-3\n",
		"a/mid.toml":  "base = \"../root.toml\"\n[train]\nmax_epochs = 2\n[optimizer]\nno_decay = [\"1d\"]\n",
		"a/b/it.toml": "base = \"../mid.toml\"\nversion = 2\n[run]\nname = \"it\"\n",
	})
	c, err := Load(filepath.Join(dir, "a", "b", "it.toml"), []string{"optimizer.beta2=0.98"})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Run.Name, want.Train.MaxEpochs, want.Train.BatchSize = "it", 2, 8
	want.Optimizer.NoDecay, want.Optimizer.LR, want.Optimizer.Beta2 = []string{"1d"}, 1e-3, 0.98
	if d := Differences(want, c); d != nil {
		t.Errorf("%+v", d)
	}
	text, err := c.Encode()
	if err != nil || strings.Contains(string(text), "base") {
		t.Errorf("%v: the resolved form has a base:\n%s", err, text)
	}
}

func TestBaseProblems(t *testing.T) {
	dir := folder(t, map[string]string{
		"root.toml":   "[train]\nbatch_size = 1\n\n[optimizer]\nlr = -1\nlrr = 2\n",
		"child.toml":  "base = \"root.toml\"\n[optimizer]\nlr = 1e-3\nbeta1 = \"x\"\n",
		"none.toml":   "\nbase = \"missing.toml\"\n",
		"deep.toml":   "base = \"none.toml\"\n",
		"self.toml":   "base = \"self.toml\"\n",
		"ring1.toml":  "base = \"ring2.toml\"\n",
		"ring2.toml":  "base = \"./ring1.toml\"\n",
		"number.toml": "base = 5\n",
		"broken.toml": "[train\n",
		"onto.toml":   "base = \"broken.toml\"\n[train]\nbatch_size = 1\n",
		"folder.toml": "base = \".\"\n",
		"matrix.toml": "base = \"root.toml\"\nseeds = [1]\n",
		"newer.toml":  "version = 9\n[train]\nbatchsize = 1\n",
		"old.toml":    "base = \"newer.toml\"\n[train]\nbatch_size = 1\n",
	})
	for _, r := range []struct{ file, want string }{
		{"child.toml", "DIR/root.toml:6: optimizer.lrr: unknown key; did you mean optimizer.lr?\n" +
			"DIR/child.toml:4: optimizer.beta1: must be a number (got \"x\")\n" +
			"DIR/root.toml:2: train.batch_size: must be >= 2 (got 1); contrast and matching need another pair as a negative"},
		{"none.toml", `DIR/none.toml:2: base: there is no file DIR/missing.toml (got "missing.toml"); the path starts from the folder of the file that names it`},
		{"deep.toml", `DIR/none.toml:2: base: there is no file DIR/missing.toml (got "missing.toml"); the path starts from the folder of the file that names it: DIR/deep.toml -> DIR/none.toml -> DIR/missing.toml`},
		{"self.toml", `DIR/self.toml:1: base: leads back to a file that it is the base of: DIR/self.toml -> DIR/self.toml (got "self.toml"); take one of these out`},
		{"ring1.toml", `DIR/ring2.toml:1: base: leads back to a file that it is the base of: DIR/ring1.toml -> DIR/ring2.toml -> DIR/ring1.toml (got "./ring1.toml"); take one of these out`},
		{"number.toml", `DIR/number.toml:1: base: must be the name of a TOML file (got 5); write base = "other.toml"`},
		{"onto.toml", `DIR/broken.toml:2: expected '.' or ']'`},
		{"folder.toml", `DIR/folder.toml:1: base: DIR is a folder: give a file (got "."); the path starts from`},
		{"matrix.toml", `DIR/matrix.toml: base: is a key of a matrix of runs, and this must be the configuration of one`},
		{"old.toml", `DIR/newer.toml:1: version: made by a newer version of geoalign (configuration version 9, this one reads up to 3); update geoalign`},
	} {
		_, err := Load(filepath.Join(dir, r.file), nil)
		if err == nil || !strings.HasPrefix(strings.ReplaceAll(err.Error(), dir, "DIR"), r.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", r.file, err, r.want)
		}
		if err != nil && strings.Count(err.Error(), "\n") != strings.Count(r.want, "\n") {
			t.Errorf("%s: more than one problem: %v", r.file, err)
		}
	}
}
