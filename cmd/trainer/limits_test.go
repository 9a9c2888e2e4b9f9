package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/model"
)

// settings is how many configurations TestRandomSettings tries: by default as many as fit into
// three seconds.
var settings = flag.Int("settings", 0, "random configurations that TestRandomSettings tries; 0: for three seconds")

// Whatever the keys are set to, validate ends with 0 or 2. What it accepts neither panics nor
// hangs: a dry run with it, asked to stop soon after it begins, ends within ten seconds,
// whatever it ends with.
func TestRandomSettings(t *testing.T) {
	start := check.Get(filepath.Abs(tiny))(t)
	t.Chdir(t.TempDir()) // relative paths among the settings end there
	r := rand.New(rand.NewPCG(7, 7))
	tried, accepted, trained, longest := 0, 0, 0, time.Duration(0)
	for end := time.Now().Add(3 * time.Second); tried < *settings || *settings == 0 && time.Now().Before(end); tried++ {
		args := append([]string{"--config", start, "--quiet"}, strangeSettings(r)...)
		args = append(args, "--out", "run")
		begin := time.Now()
		code, _, stderr := trainer(t, append([]string{"validate"}, args...)...)
		if code != exitDone && code != exitUsage || strings.TrimSpace(stderr) == "" && code != exitDone {
			t.Errorf("%q: code %d: %s", args[3:], code, stderr)
		}
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("%q takes validate %v", args[3:], d)
		}
		if code != exitDone {
			continue
		}
		if accepted++; slow(t, args) {
			continue
		}
		trained++
		longest = max(longest, dryRun(t, args))
	}
	t.Logf("%d settings, %d accepted, %d of them tried with a dry run, the longest of %v", tried, accepted, trained, longest)
	if trained == 0 {
		t.Error("no settings were accepted")
	}
}

// dryRun begins a dry run, asks it to stop as a signal does, and returns how long it took.
func dryRun(t *testing.T, args []string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer time.AfterFunc(200*time.Millisecond, cancel).Stop()
	done := make(chan int, 1)
	var stderr bytes.Buffer
	begin := time.Now()
	go func() {
		done <- execute(ctx, append([]string{"train", "--dry-run"}, args...), &bytes.Buffer{}, &stderr)
	}()
	select {
	case code := <-done:
		if !slices.Contains([]int{exitDone, exitFailed, exitUsage, exitInterrupted}, code) {
			t.Errorf("%q: code %d: %s", args[3:], code, stderr.String())
		}
	case <-time.After(30 * time.Second): // ten, and what other processes take
		t.Fatalf("%q does not end", args[3:])
	}
	d := time.Since(begin)
	if d > 10*time.Second {
		t.Logf("%.1f s: %q: %.200s", d.Seconds(), args[3:], stderr.String())
	}
	return d
}

// validate notes what this machine has no memory for, which is no problem of the
// configuration; a run is refused before it opens its data.
func TestTooLargeForThisMachine(t *testing.T) {
	args := []string{"--config", tiny, "--out", t.TempDir(), "--set", "model.image.mlp=262144", "--set", "model.image.width=65536", "--set", "model.image.depth=12"}
	stdout, stderr := must(t, exitDone, append([]string{"validate"}, args...)...)
	contains(t, stdout, "ok")
	contains(t, stderr, "note: model: training takes at least", "this machine has")
	none := append(args, "--set", "data.kind=captions", "--set", `data.captions.train_files=["/none.json"]`, "--set", `data.captions.val_files=["/none.json"]`)
	fails(t, exitFailed, append([]string{"train"}, none...), "model: training takes at least", "lower")
}

// slow says whether a model is one that this machine can train, but not in no time.
func slow(t *testing.T, args []string) bool {
	t.Helper()
	var sets []string
	for i, a := range args {
		if a == "--set" {
			sets = append(sets, args[i+1])
		}
	}
	cfg := check.Get(config.Load(args[1], append(sets, "run.out=run")))(t)
	f := check.Get(model.Estimate(cfg))(t)
	side := cfg.Model.Image.Size / cfg.Model.Image.Patch
	return (f.Total() > 256<<20 || side > 32) && model.Fits(cfg) == nil // attention grows with the square of the patches
}

// strangeSettings sets one to three keys, mostly to values of their type.
func strangeSettings(r *rand.Rand) (args []string) {
	paths, c := config.Paths(), config.Default()
	for n := 1 + r.IntN(3); n > 0; n-- {
		path := paths[r.IntN(len(paths))]
		v, _ := c.Get(path)
		kind := reflect.TypeOf(v).Kind()
		if r.IntN(12) == 0 {
			kind = []reflect.Kind{reflect.Int, reflect.Float64, reflect.Bool, reflect.String, reflect.Slice, reflect.Struct}[r.IntN(6)]
		}
		var text string
		switch kind {
		case reflect.Int, reflect.Uint64:
			text = fmt.Sprint(strangeNumber(r))
		case reflect.Float64:
			text = []string{"0", "1", "-1", "-0.0", "1e-300", "5e-324", "1e-9", "0.5", "0.999999999", "10", "1e6", "1e9", "1e39", "1e300", "nan", "inf", "-inf", "1e999"}[r.IntN(18)]
		case reflect.Bool:
			text = fmt.Sprint(r.IntN(2) == 0)
		case reflect.String:
			text = strconv.Quote(strangeWord(r))
			if r.IntN(2) == 0 {
				text = strangeWord(r)
			}
		case reflect.Slice:
			text = []string{
				"[]", fmt.Sprintf("[%d]", strangeNumber(r)), fmt.Sprintf("[%d, %d]", strangeNumber(r), strangeNumber(r)), "[[1], [2]]",
				fmt.Sprintf("[%q]", strangeWord(r)), fmt.Sprintf("[%q, 1]", strangeWord(r)), `[{kind = "gssf", weight = 1.0}]`, `[{}, {kind = 3}]`, "[", "[nan]",
			}[r.IntN(10)]
		default:
			text = []string{"{}", "{a = 1}", "", "1979-05-27", "0x10", "1_000", "''", "[x]\ny=1"}[r.IntN(8)]
		}
		args = append(args, "--set", path+"="+text)
	}
	return args
}

// strangeWord is one of the words that some key knows, a path, or no word at all.
func strangeWord(r *rand.Rand) string {
	words := []string{
		"albef", "clip", "moco", "swav", "heads", "scenes", "captions", "karpathy", "folder", "csv", "coco", "flickr", "webdataset", "parquet", "pairs", "regions", "files", "words", "wordpiece", "{split}", "none", "memory", "disk", "auto", "builtin", "plain",
		"fp32", "bf16", "val", "test", "train", "cosine", "inner", "l2", "angle", "gssf", "geodesic", "same", "score", "pair", "id", "constant", "staircase", "step",
		"stop", "skip", "rollback", "sphere", "euclid", "Ob(4,4)", "Multi(8,2)", "Multi(-1,2)", "Ob(1e9,1)", "group", "split", "plusplus", "rows", "strict",
		"same_cluster+soft_entry", "both", "biased", "closest", "exact", "clusters", "heat", "relative", "diag", "block_diag", "dense", "relu", "bias", "1d", "[",
		"", " ", "x", "/", ".", "..", "/dev/zero", "/dev/null", "/proc/self/mem", "missing.json", "a\x00b", "\xff", "\u4e00\u0301", "%s%n", strings.Repeat("long", 2000),
	}
	return words[r.IntN(len(words))]
}

// strangeNumber is small, at a limit, beyond all or below 0.
func strangeNumber(r *rand.Rand) int {
	switch r.IntN(10) {
	case 8:
		return -1 - r.IntN(3)
	case 9:
		return math.MinInt
	case 0:
		return r.IntN(10)
	case 1:
		return 1e9
	case 2:
		return math.MaxInt
	default:
		return 1 << r.IntN(26)
	}
}
