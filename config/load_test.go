package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

func TestLoadReportsEveryProblem(t *testing.T) {
	text := `[train]
batch_sise = 4
batch_size = "32"
max_steps = 1e6
[model.image]
size = 100
[optimiser]
lr = 1
[data]
flip = "yes"
[data.captions]
train_files = ["a", 3]
`
	_, err := Parse("x.toml", []byte(text), []string{
		"train.log_every=5", "queue=3", "nonsense", "momentum.enabled=maybe", "model.image.size=x", "objective.geodesic.layers=16,b"})
	want := strings.TrimSpace(`
x.toml:2: train.batch_sise: unknown key; did you mean train.batch_size?
x.toml:3: train.batch_size: must be an integer (got "32"); leave out the quotes
x.toml:4: train.max_steps: must be an integer (got 1e+06); write 1000000
x.toml:7: optimiser: unknown key; did you mean optimizer?
x.toml:10: data.flip: must be true or false (got "yes")
x.toml:12: data.captions.train_files: must be a list of strings, item 2 is not one (got ["a", 3]); write ["a", "b"]
--set train.log_every=5: train.log_every: unknown key; did you mean train.log_every_steps?
--set queue=3: queue: is a section and has no value of its own; name one of its keys, such as queue.size
--set nonsense: must have the form dotted.path=value; for example --set train.batch_size=64
--set momentum.enabled=maybe: momentum.enabled: must be true or false (got "maybe")
--set model.image.size=x: model.image.size: must be an integer (got "x")
--set objective.geodesic.layers=16,b: objective.geodesic.layers: must be a list of integers, item 2 is not one (got [16, "b"]); write [16, 256]`)
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	var e *Error
	if !errors.As(err, &e) || e.Path != "train.batch_sise" || e.Hint != "did you mean train.batch_size?" {
		t.Errorf("errors.As gives %+v", e)
	}
}

// The quotes are to be left out only where they are there and what is in them does without.
func TestQuotesHint(t *testing.T) {
	const quotes = "; leave out the quotes"
	for _, r := range []struct{ set, want string }{
		{`train.batch_size="64"`, `train.batch_size: must be an integer (got "64")` + quotes},
		{`train.batch_size="big"`, `train.batch_size: must be an integer (got "big")`},
		{`train.batch_size=64 steps`, `train.batch_size: must be an integer (got "64 steps")`},
		{`data.flip='true'`, `data.flip: must be true or false (got "true")` + quotes},
		{`data.flip=True`, `data.flip: must be true or false (got "True")`},
		{`optimizer.lr="1e-4"`, `optimizer.lr: must be a number (got "1e-4")` + quotes},
		{`optimizer.lr=fast`, `optimizer.lr: must be a number (got "fast")`},
		{`train.batch_size=99999999999999999999`, `train.batch_size: is beyond the integers of 64 bits (got "99999999999999999999"); the nearest is 9223372036854775807`},
		{`run.seed=18446744073709551615`, `run.seed: is beyond the integers of 64 bits (got "18446744073709551615"); the nearest is 9223372036854775807`},
	} {
		_, err := Parse("", nil, []string{r.set})
		if want := "--set " + r.set + ": " + r.want; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestFileProblems(t *testing.T) {
	rows := []struct{ text, want string }{
		{"[train\nbatch_size = 4", "x.toml:2: expected '.' or ']'"},
		{"[train]\nbatch_size = 4\nbatch_size = 5", "x.toml:3: Key 'train.batch_size' has already been defined"},
		{"train = 5", "x.toml:1: train: must be a table (got 5); write [train] and its keys below"},
		{"[[train]]\nbatch_size = 4", "train: must be a table (got an array of tables)"},
		{"[train.batch_size]\nx = 1", "train.batch_size: must be an integer (got a table)"},
		{"[run]\nname = 5", "x.toml:2: run.name: must be a string (got 5); write it in quotes"},
		{"[run]\nseed = -1", "x.toml:2: run.seed: must be >= 0 (got -1)"},
		{"[run]\nseed = 1.5", "x.toml:2: run.seed: must be an integer (got 1.5)"},
		{"[optimizer]\nlr = \"1e-4\"", `x.toml:2: optimizer.lr: must be a number (got "1e-4"); leave out the quotes`},
		{"[optimizer]\nno_decay = \"bias\"", `x.toml:2: optimizer.no_decay: must be a list of strings (got "bias"); write ["a", "b"]`},
		{"[optimizer]\nlr = nan", "x.toml:2: optimizer.lr: must be a finite number (got NaN)"},
		{"[train]\n\nbatch_size = 1", "x.toml:3: train.batch_size: must be >= 2 (got 1)"},
		{"batch_size = 4", "x.toml:1: batch_size: unknown key; did you mean train.batch_size?"},
		{"base = \"a.toml\"\n[[run]]\nname = \"b\"", "x.toml: base: is a key of a matrix of runs, and this must be the configuration of one; check a matrix with trainer ablate --config FILE --dry-run"},
		{"zzzzqqqq = 4", "x.toml:1: zzzzqqqq: unknown key; docs/config.md lists the keys"},
		{"[data.sceens]\nmin_objects = 1", "data.sceens: unknown key; did you mean data.scenes?"},
		{"[data]\nrand_augment_ops = 1", "data.rand_augment_ops: unknown key; did you mean data.randaugment_ops?"},
		{"[train]\nBatch_Size = 4", "train.Batch_Size: unknown key; did you mean train.batch_size?"},
	}
	for _, r := range rows {
		_, err := Parse("x.toml", []byte(r.text), nil)
		if err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%q:\ngot  %v\nwant %s", r.text, err, r.want)
		}
	}
}

func TestLoadMissingFile(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.toml"), nil)
	if err == nil || !strings.Contains(err.Error(), "none.toml") || !strings.Contains(err.Error(), "--config") {
		t.Errorf("got %v", err)
	}
}

// A file whose keys lie thousands of tables deep is refused before it takes memory for them.
func TestLoadDeep(t *testing.T) {
	_, err := Parse("a.toml", []byte("version = 2\n"+strings.Repeat("a.", 100000)+"a = 1\n"), nil)
	if err == nil || !strings.Contains(err.Error(), "a.toml:2: tables and lists lie in each other here, more than 32 deep") {
		t.Errorf("got %v", err)
	}
}

func TestOverrides(t *testing.T) {
	rows := []struct {
		set  string
		want any
	}{
		{"train.batch_size=8", 8},
		{" train.batch_size = 8 ", 8},
		{"run.seed=7", uint64(7)},
		{"optimizer.lr=1e-3", 1e-3},
		{"optimizer.lr=.5", 0.5},
		{"optimizer.lr=1", 1.0},
		{"data.flip=false", false},
		{"run.name=flick", "flick"},
		{"run.name=2024", "2024"},
		{"run.name=true", "true"},
		{`run.name="a b"`, "a b"},
		{"data.root=/data/flickr8k", "/data/flickr8k"},
		{"data.root=a#b", "a#b"},
		{"data.root=a=b", "a=b"},
		{"data.root=", ""},
		{"data.root=1\nrun.name=2", "1\nrun.name=2"},
		{"data.captions.train_files=a.json", []string{"a.json"}},
		{"data.captions.train_files=a.json, b.json", []string{"a.json", "b.json"}},
		{`data.captions.train_files=["a.json", "b,c.json"]`, []string{"a.json", "b,c.json"}},
		{`data.captions.train_files="b,c.json"`, []string{"b,c.json"}},
		{"optimizer.no_decay=[]", []string(nil)},
	}
	for _, r := range rows {
		c, err := Parse("", nil, []string{r.set})
		if err != nil {
			t.Errorf("%q: %v", r.set, err)
			continue
		}
		path, _, _ := strings.Cut(strings.TrimSpace(r.set), "=")
		got, ok := c.Get(strings.TrimSpace(path))
		if !ok || !reflect.DeepEqual(got, r.want) {
			t.Errorf("%q: got %#v, want %#v", r.set, got, r.want)
		}
	}
}

// Reset writes the defaults of all keys so that they are read back.
func TestResetIsReadBack(t *testing.T) {
	var sets []string
	for _, path := range Paths() {
		sets = append(sets, Reset(path))
	}
	c, err := Parse("", []byte("[run]\nseed = 7\n[objective.geodesic]\nlayers = [3]\n"), sets)
	if err != nil {
		t.Fatal(err)
	}
	if list := c.NotDefault(); list != nil {
		t.Errorf("reset keys are not the defaults: %v", list)
	}
}

// Override writes any text so that it is read back, as a list of one too.
func TestOverrideIsReadBack(t *testing.T) {
	for _, text := range []string{"runs/a", "2024", "true", `a"b\c`, "a=b, c", "a#b", " a ", "bell\a tab\t line\n", "h\u00e9 \u2603", "[\"x\"]"} {
		c, err := Parse("", nil, []string{Override("init.checkpoint", text), Override("data.captions.train_files", text)})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := c.Data.Captions.TrainFiles; c.Init.Checkpoint != text || len(got) != 1 || got[0] != text {
			t.Errorf("%q became %q and %q", text, c.Init.Checkpoint, got)
		}
	}
}

func TestLastOverrideWins(t *testing.T) {
	c, err := Parse("x.toml", []byte("[train]\nbatch_size = 4"), []string{"train.batch_size=8", "train.batch_size=16"})
	if err != nil || c.Train.BatchSize != 16 {
		t.Errorf("got %d, %v", c.Train.BatchSize, err)
	}
}

// A layer that sets a length in one unit replaces what lower layers said in
// another; two units in one layer are a mistake.
func TestUnitsReplaceLowerLayers(t *testing.T) {
	rows := []struct {
		file       string
		sets       []string
		steps      int
		epochs     float64
		warmup     int
		wantErrors string
	}{
		{"", nil, 0, 30, 2000, ""},
		{"[train]\nmax_steps = 9", nil, 9, 0, 2000, ""},
		{"[train]\nmax_steps = 9\nmax_epochs = 0", nil, 9, 0, 2000, ""},
		{"[train]\nmax_steps = 9", []string{"train.max_epochs=2"}, 0, 2, 2000, ""},
		{"[schedule]\nwarmup_percent = 5", nil, 0, 30, 0, ""},
		{"[train]\nmax_steps = 0", nil, 0, 30, 2000, ""},
		{"[train]\nmax_epochs = 0", nil, 0, 0, 2000, "one duration must be > 0"},
		{"[train]\nmax_steps = 9\nmax_epochs = 1", nil, 9, 1, 2000, "must not be set together with train.max_steps"},
	}
	for _, r := range rows {
		c, err := Parse("x.toml", []byte(r.file), r.sets)
		if (r.wantErrors == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), r.wantErrors) {
			t.Errorf("%q %q: %v", r.file, r.sets, err)
		}
		if c.Train.MaxSteps != r.steps || c.Train.MaxEpochs != r.epochs || c.Schedule.WarmupSteps != r.warmup {
			t.Errorf("%q %q: got %d steps, %g epochs, warm-up %d", r.file, r.sets, c.Train.MaxSteps, c.Train.MaxEpochs, c.Schedule.WarmupSteps)
		}
	}
}

func TestEncodeRoundTrip(t *testing.T) {
	want := Default()
	want.Run.Name = `odd "name" # not a comment`
	want.Run.Seed = 1<<63 - 1
	want.Data.Captions.TrainFiles = []string{"a.json", `b\c.json`}
	want.Optimizer.LR = 1.0 / 3
	want.Optimizer.NoDecay = nil
	want.Train.MaxEpochs, want.Train.MaxSteps = 0, 123
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	for _, p := range Paths() {
		if !strings.Contains(string(text), p[strings.LastIndexByte(p, '.')+1:]+" = ") {
			t.Errorf("%s is missing from the encoded file", p)
		}
	}
}

func TestAdvice(t *testing.T) {
	c := Default()
	c.Train.MaxSteps, c.Train.MaxEpochs = 100, 0
	got := strings.Join(c.Advice(), "\n")
	for _, want := range []string{"in_batch_weight is 0", "queue.start_steps is 0", "schedule.warmup_steps (2000)", "images are augmented"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
	c.Init.Checkpoint, c.Schedule.WarmupSteps = "runs/a", 10
	c.Data.Flip, c.Data.CropScaleMin, c.Data.RandAugmentOps = false, 1, 0
	if got := c.Advice(); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	c.Objective.ITC.Score, c.Data.ColorJitter = "geodesic", 0.8
	got = strings.Join(c.Advice(), "\n")
	for _, want := range []string{"before the queue of 65536 entries is full", "data.color_jitter = 0"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
	c.Objective.ITC.Weight = 0
	if got := strings.Join(c.Advice(), "\n"); !strings.Contains(got, "objective.itc.weight is 0: the geodesic of the score is left out") {
		t.Errorf("a geodesic that nothing reads: %s", got)
	}
	c.Objective.ITC.Weight = 1
	// The graph of a step spans what was pushed before it: the last of 1025 steps of 64 has one.
	c.Train.BatchSize, c.Train.AccumulateSteps = 64, 1
	for steps, want := range map[int]bool{1024: true, 1025: false} {
		c.Train.MaxSteps = steps
		if got := strings.Contains(strings.Join(c.Advice(), "\n"), "before the queue"); got != want {
			t.Errorf("%d steps: advice about the queue %t, want %t", steps, got, want)
		}
	}
}

// The configurations that are shipped must be valid.
func TestShippedConfigs(t *testing.T) {
	for _, pattern := range []string{"../configs/*.toml", "../configs/*/*.toml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			switch filepath.Base(filepath.Dir(f)) {
			case "ablation", "suite": // which trainer ablate reads
				continue
			}
			c, err := Load(f, nil)
			if err != nil {
				t.Error(err)
			}
			for _, u := range c.Unread() {
				t.Errorf("%s: nothing reads %s, which is read with %s", f, u.Path, u.With)
			}
		}
	}
}

// The settings of the commands in the comments of shipped configurations are valid over these, and each is read.
func TestShippedCommands(t *testing.T) {
	files, err := filepath.Glob("../configs/*.toml")
	if err != nil {
		t.Fatal(err)
	}
	named, setting := regexp.MustCompile(`--config configs/(\S+)`), regexp.MustCompile(`--set (\S+)`)
	commands := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n#", " ")) {
			var sets []string
			for _, m := range setting.FindAllStringSubmatch(line, -1) {
				sets = append(sets, m[1])
			}
			if !strings.HasPrefix(line, "#") || sets == nil {
				continue
			}
			commands++
			of := f
			if m := named.FindStringSubmatch(line); m != nil {
				of = "../configs/" + m[1]
			}
			c, err := Load(of, sets)
			if err != nil {
				t.Errorf("%s: %s%v", f, line, err)
			}
			for _, u := range c.Unread() {
				if slices.ContainsFunc(sets, func(set string) bool { return strings.HasPrefix(set, u.Path+"=") }) {
					t.Errorf("%s: %snothing reads %s, which is read with %s", f, line, u.Path, u.With)
				}
			}
		}
	}
	if commands < 20 {
		t.Errorf("%d commands with settings in %d files: the test does not find them", commands, len(files))
	}
}

// Each of the ideas changes its host in nothing but the idea.
func TestIdeasShareAHost(t *testing.T) {
	host, err := Load("../configs/ideas/host.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, section := range map[string]string{"geodesic": "objective.", "geometric": "objective.geometric.", "gssf": "objective.", "multi": "model.head.topology"} {
		c, err := Load("../configs/ideas/"+name+".toml", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.Run.Name != name {
			t.Errorf("%s is named %s", name, c.Run.Name)
		}
		for _, d := range Differences(host, c) {
			if d.Path != "run.name" && !strings.HasPrefix(d.Path, section) {
				t.Errorf("%s: %s is %v, of the host %v", name, d.Path, d.Now, d.Was)
			}
		}
	}
}

// Any text either parses or gives errors with a message; what parses survives
// being written and read again.
func FuzzParse(f *testing.F) {
	f.Add("[train]\nbatch_size = 4\n", "run.name=x")
	f.Add("[[train]]\nx = [1, {a = 2}]\n", "data.captions.train_files=[1]")
	f.Add("train.batch_size = 1979-05-27T07:32:00Z\n", "optimizer.lr=inf")
	f.Add("a.b.c.d = '''x'''\n\"\" = 1", "=")
	f.Add("[data.captions]\ntrain_files = [[1], \"a\"]\n[model.image]\nsize = 0x10", "run.seed=0b1\n[x]")
	f.Fuzz(func(t *testing.T, text, set string) {
		defer budgettest.WithinBytes(t, len(text)+len(set), 64<<20)() // the schema is made anew for each of several readings
		c, err := Parse("x.toml", []byte(text), []string{set})
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("error without a message")
			}
			return
		}
		out, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("y.toml", out, nil)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestAdviceOfAnUntrainedMetric: negatives by a metric that no contrast trains are those of where it starts.
func TestAdviceOfAnUntrainedMetric(t *testing.T) {
	for _, x := range []struct {
		change func(o *Objective)
		want   bool
	}{
		{func(o *Objective) { o.ITM.Negatives = "gssf" }, true},
		{func(o *Objective) { o.ITM.Negatives, o.ITC.Score = "gssf", "gssf" }, false},
		{func(o *Objective) {
			o.ITM.Negatives, o.ITC.Score, o.ITC.Weight, o.ITC.InBatchWeight = "gssf", "gssf", 0, 0
		}, true},
		{func(o *Objective) { o.ITM.Negatives, o.ITM.Weight = "gssf", 0 }, false},
		{func(*Objective) {}, false},
	} {
		c := Default()
		x.change(&c.Objective)
		if got := strings.Contains(strings.Join(c.Advice(), "\n"), "nothing trains its metric"); got != x.want {
			t.Errorf("%+v: advice %v, want %v", c.Objective.ITM, got, x.want)
		}
	}
}

// TestAdviceFitsTheSystem gives no note about what a system does not read.
func TestAdviceFitsTheSystem(t *testing.T) {
	c := Default()
	c.Objective.ITC.Weight = 0
	if got := strings.Join(c.Advice(), "\n"); !strings.Contains(got, "nothing reads the queue") {
		t.Errorf("no note about a queue that nothing reads: %s", got)
	}
	c.Objective.Geometric.Weight = 1
	if got := strings.Join(c.Advice(), "\n"); strings.Contains(got, "nothing reads the queue") {
		t.Errorf("the geometric term reads the queue: %s", got)
	}
	c.Model.System = "heads"
	if got := strings.Join(c.Advice(), "\n"); strings.Contains(got, "images are augmented") {
		t.Errorf("heads read no images: %s", got)
	}
}
