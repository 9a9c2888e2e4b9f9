package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

const oldFile = `[data]
kind = "captions"
train_files = ["a.json"]
image_root = "pictures"
[model.head]
hidden = 256
`

// Keys of earlier versions are translated: in a user's file and on the command line with a
// notice, in a stored one without.
func TestRenamedKeys(t *testing.T) {
	c, notices, err := parse("x.toml", []byte(oldFile), []string{"data.val_files=v.json"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Data.Captions.TrainFiles, []string{"a.json"}) || !slices.Equal(c.Data.Captions.ValFiles, []string{"v.json"}) ||
		c.Data.Karpathy.ImageRoot != "pictures" || c.Model.Views.Hidden != 256 {
		t.Errorf("%+v", c.Data)
	}
	slices.Sort(notices)
	want := []string{
		"--set data.val_files=v.json: data.val_files is data.captions.val_files since configuration version 2",
		"x.toml:3: data.train_files is data.captions.train_files since configuration version 2",
		"x.toml:4: data.image_root is data.karpathy.image_root since configuration version 2",
		"x.toml:6: model.head.hidden is model.views.hidden since configuration version 2",
	}
	if !slices.Equal(notices, want) {
		t.Errorf("got %q", notices)
	}
	if _, notices, err := ParseStored("x.toml", []byte(oldFile), nil); err != nil || notices != nil {
		t.Errorf("stored: %q, %v", notices, err)
	}
	for text, want := range map[string]string{
		"[data]\ntrain_files = [1]\n": "x.toml:2: data.captions.train_files: must be a list of strings",
		"[data]\ntrain_files = [\"a\"]\n[data.captions]\ntrain_files = [\"b\"]\n": "x.toml:4: data.captions.train_files: is set a second time, as data.train_files (got [\"b\"]); leave one of them out",
		"[data]\ncaptions.train_files = [\"b\"]\ntrain_files = [\"a\"]\n":         "x.toml:3: data.train_files: is data.captions.train_files now, which is set too; leave one of them out",
	} {
		if _, err := Parse("x.toml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// Every rename leads from no key of today to one.
func TestRenamesLeadToKeys(t *testing.T) {
	for _, r := range renames {
		if ofConfig().at[r.old] != nil {
			t.Errorf("%s is a key of today", r.old)
		}
		if ofConfig().at[r.now] == nil && r.now != "" || r.now == "" && r.why == "" {
			t.Errorf("%s leads to %q", r.old, r.now)
		}
		if r.since < 2 || r.since > Version {
			t.Errorf("%s is gone since version %d", r.old, r.since)
		}
	}
}

// A key that is gone is an error where a user writes it, and a notice in a stored file.
func TestRemovedKeys(t *testing.T) {
	defer func(list []rename) { renames = list }(renames)
	renames = append(slices.Clone(renames), rename{2, "train.fast", "", "every step is fast now"})
	text := []byte("[train]\nfast = true\n")
	_, err := Parse("x.toml", text, nil)
	if want := "x.toml:2: train.fast: is gone since configuration version 2; every step is fast now"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, notices, err := parse("x.toml", append([]byte("version = 2\n[compute]\nbackend = \"mkl\"\n"), text...), nil, nil)
	if want := []string{"x.toml:5: train.fast: is gone since configuration version 2: every step is fast now",
		"x.toml:3: compute.backend = \"mkl\" is \"auto\" since configuration version 3: products are built in"}; err != nil || !slices.Equal(notices, want) {
		t.Errorf("a file of an earlier version: got %q, %v", notices, err)
	}
	_, notices, err = ParseStored("x.toml", text, nil)
	if want := "x.toml:2: train.fast: is gone since configuration version 2: every step is fast now"; err != nil || !slices.Equal(notices, []string{want}) {
		t.Errorf("got %q, %v", notices, err)
	}
}

func TestParseStored(t *testing.T) {
	for name, r := range map[string]struct {
		text    string
		sets    []string
		notices []string
		err     string
	}{
		"unknown keys": {"version = 2\nflavour = 1\n[train]\nspeed = 3\n[bells]\nwhistles = true\n", nil, []string{
			"x:2: flavour: is unknown to this version and is not read",
			"x:4: train.speed: is unknown to this version and is not read",
			"x:5: bells: is unknown to this version and is not read"}, ""},
		"a tightened check": {"[train]\nbatch_size = 1\n", nil, []string{
			"x:2: train.batch_size: must be >= 2 (got 1); contrast and matching need another pair as a negative: kept, as the run was made with it"}, ""},
		"an override with a problem":    {"[train]\nbatch_size = 8\n", []string{"train.batch_size=1"}, nil, "--set train.batch_size=1: train.batch_size: must be >= 2 (got 1)"},
		"the same problem, by override": {"[train]\nbatch_size = 1\n", []string{"train.batch_size=1"}, nil, "--set train.batch_size=1: train.batch_size: must be >= 2 (got 1)"},
		"what an override leads to":     {"", []string{"queue.size=8"}, nil, "--set queue.size=8: queue.size: must be 0 or at least train.batch_size (got 8)"},
		"an unknown override":           {"", []string{"train.speed=1"}, nil, "--set train.speed=1: train.speed: unknown key"},
		"no model":                      {"[model.image]\nwidth = 0\n", nil, nil, "x:2: model.image.width: must be > 0 (got 0)"},
		"a wrong type":                  {"[train]\nbatch_size = \"8\"\n", nil, nil, "x:2: train.batch_size: must be an integer"},
		"a later version": {"version = 4\n[train]\nbatch_size = 1\nspeed = 3\n", []string{"x=1"}, nil,
			"x:1: version: made by a newer version of geoalign (configuration version 4, this one reads up to 3); update geoalign: the run folder is untouched"},
		"no version": {"version = \"two\"\n", nil, nil, `x:1: version: must be an integer > 0 (got "two"); write 3, or leave it out`},
		"a library of products": {"version = 2\n[compute]\nbackend = \"onednn\"\ntune = \"on\"\n", nil, []string{
			"x:4: compute.tune: is gone since configuration version 3: the built-in kernels compute every product: leave it out",
			"x:3: compute.backend = \"onednn\" is \"auto\" since configuration version 3: products are built in"}, ""},
		"a decoder of JPEG files": {"version = 2\n[data]\ndecoder = \"turbojpeg\"\n", nil, []string{
			"x:3: data.decoder: is gone since configuration version 3: JPEG files have the pixels of libjpeg-turbo on every machine: leave it out"}, ""},
		"such a library again": {"", []string{"compute.backend=mkl"}, nil,
			`--set compute.backend=mkl: compute.backend: is no longer a backend (got "mkl"); products are built in: leave it out, or write "auto"`},
		"a base": {"base = \"none.toml\"\n", nil, []string{"x:1: base: is unknown to this version and is not read"}, ""},
	} {
		_, notices, err := ParseStored("x", []byte(r.text), r.sets)
		if !slices.Equal(notices, r.notices) {
			t.Errorf("%s: notices %q", name, notices)
		}
		if (err == nil) != (r.err == "") || err != nil && (!strings.HasPrefix(err.Error(), r.err) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: got %v, want %s", name, err, r.err)
		}
	}
}

// A default that changed with a version is what it was in a file of an earlier one, where
// something reads it.
func TestUpgrades(t *testing.T) {
	old := "objective.itm.negative_floor = 0.0\n[model.heads]\nin_image = 768\nin_text = 768\n"
	c, _, err := ParseStored("x", []byte(old), nil)
	if err != nil || Differences(Default(), c) != nil {
		t.Errorf("%v: %+v", err, Differences(Default(), c))
	}
	c, _, err = ParseStored("x", []byte(old+"[model]\nsystem = \"heads\"\n"), nil)
	if c.Model.Heads.InImage != 768 {
		t.Errorf("%+v, %v", c.Model.Heads, err)
	}
	c, _, err = ParseStored("x", []byte("[model.heads]\nin_image = 768\nin_text = 512\n"), nil)
	if c.Model.Heads.InImage != 768 || c.Model.Heads.InText != 512 {
		t.Errorf("one that is not the default: %+v, %v", c.Model.Heads, err)
	}
	// A chain of files is of the earliest version of them.
	dir := folder(t, map[string]string{
		"old.toml": "[model.heads]\nin_image = 768\nin_text = 768\n",
		"new.toml": "base = \"old.toml\"\nversion = 2\n[run]\nname = \"new\"\n",
	})
	if c, err = Load(filepath.Join(dir, "new.toml"), nil); err != nil || c.Model.Heads.InImage != 0 {
		t.Errorf("over an old base: %+v, %v", c.Model.Heads, err)
	}
}

// Negatives had a floor before there was a key for it: the file of a run that lacks the key
// has it, where matching is trained; a user's file has today's default.
func TestKeysThatARunLacks(t *testing.T) {
	for text, want := range map[string]float64{
		"":                                    1e-4,
		"objective.itm.weight = 0":            0,
		"[objective.itm]\nweight = 2":         1e-4,
		"objective.itm.negative_floor = 0.0":  0,
		"objective.itm.negative_floor = 0.25": 0.25,
	} {
		c, notices, err := ParseStored("x", []byte(text), nil)
		if c.Objective.ITM.NegativeFloor != want || err != nil && !strings.Contains(text, "weight") || notices != nil {
			t.Errorf("%q: floor %v, %v, %v, want %v", text, c.Objective.ITM.NegativeFloor, notices, err, want)
		}
	}
	if c, err := Parse("x", []byte("[train]\nmax_steps = 3"), nil); err != nil || c.Objective.ITM.NegativeFloor != 0 {
		t.Errorf("a user's file: floor %v, %v", c.Objective.ITM.NegativeFloor, err)
	}
}

// Class tokens take part in cross attention by default since version 3. Runs and files of earlier versions, and kinds
// that look for the nearest token, keep the words alone.
func TestClassTokensByDefault(t *testing.T) {
	const attends = "[model]\nsystem = \"matching\"\n[model.interaction]\nkind = \"bfan\"\n"
	read := func(text string, sets ...string) bool {
		c, _, _ := parse("x", []byte(text), sets, nil)
		return c.Model.Interaction.ClassTokens
	}
	stored := func(text string) bool {
		c, _, _ := ParseStored("x", []byte(text), nil)
		return c.Model.Interaction.ClassTokens
	}
	for what, r := range map[string]struct{ got, want bool }{
		"a file":                       {read(attends), true},
		"an override":                  {read("", "model.interaction.kind=naaf"), true},
		"a file that says":             {read(attends + "class_tokens = false\n"), false},
		"an override that says":        {read(attends, "model.interaction.class_tokens=false"), false},
		"a file of an earlier version": {read("version = 2\n" + attends), false},
		"another kind":                 {read("", "model.interaction.kind=max_sum"), false},
		"no kind":                      {read(""), false},
		"a run without the key":        {stored(attends), false},
		"a run of an earlier version":  {stored("version = 2\n" + attends), false},
		"a run that says":              {stored("version = 3\n" + attends + "class_tokens = true\n"), true},
	} {
		if r.got != r.want {
			t.Errorf("%s: got %v, want %v", what, r.got, r.want)
		}
	}
}

// TestTemperatureOfSpheres: the default temperature of a sum of cosines is that of one times their number, in new
// configurations that set none. Runs and files of earlier versions keep theirs.
func TestTemperatureOfSpheres(t *testing.T) {
	const ob = "[model]\nsystem = \"clip\"\n[model.head]\ndim = 64\ntopology = \"Ob(8,8)\"\n"
	values := func(c Config) [2]float64 {
		return [2]float64{c.Objective.ITC.Temperature, c.Objective.ITC.TemperatureMax}
	}
	read := func(text string, sets ...string) [2]float64 {
		c, _, _ := parse("x", []byte(text), sets, nil)
		return values(c)
	}
	stored := func(text string) [2]float64 {
		c, _, _ := ParseStored("x", []byte(text), nil)
		return values(c)
	}
	one, eight := [2]float64{0.07, 0.5}, [2]float64{8 * 0.07, 4}
	for what, r := range map[string]struct{ got, want [2]float64 }{
		"a file":                       {read(ob), eight},
		"an override":                  {read("", "model.head.dim=64", "model.head.topology=Multi(8,8)"), eight},
		"the products":                 {read(ob, "objective.itc.score=inner"), eight},
		"a sphere":                     {read(""), one},
		"a file that says":             {read(ob + "[objective.itc]\ntemperature = 0.3\n"), [2]float64{0.3, 0.5}},
		"an override that says":        {read(ob, "objective.itc.temperature=0.3"), [2]float64{0.3, 0.5}},
		"a largest value that says":    {read(ob, "objective.itc.temperature_max=2"), [2]float64{8 * 0.07, 2}},
		"a distance":                   {read(ob, "objective.itc.score=angle"), one},
		"a file of an earlier version": {read("version = 2\n" + ob), one},
		"a run without the key":        {stored(ob), one},
		"a run that says":              {stored("version = 3\n" + ob + "[objective.itc]\ntemperature = 0.3\n"), [2]float64{0.3, 0.5}},
	} {
		if r.got != r.want {
			t.Errorf("%s: got %v, want %v", what, r.got, r.want)
		}
	}
}

// TestAdviceOfSpheres: a temperature for one cosine under a sum of several is told, with the one to set.
func TestAdviceOfSpheres(t *testing.T) {
	for set, want := range map[string]bool{
		"objective.itc.temperature=0.04": true, "objective.itc.temperature=0.041": false, "objective.itc.temperature=0.16": false,
	} {
		c := check.Get(Load("../configs/heads.toml", []string{"model.head.topology=Ob(64,4)", set}))(t)
		got := strings.Join(c.Advice(), "\n")
		if strings.Contains(got, "set objective.itc.temperature = 0.16, 4 times as high") != want {
			t.Errorf("%s: advice %q", set, got)
		}
	}
	c := check.Get(Load("../configs/heads.toml", []string{"model.head.topology=sphere"}))(t)
	if got := c.Advice(); len(got) > 0 {
		t.Errorf("one sphere: %q", got)
	}
}
