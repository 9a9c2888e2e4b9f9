package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/model"
)

// limitsFor is how long settings are tried: more of the same ones in a longer time.
var limitsFor = flag.Duration("limits", 3*time.Second, "time that TestAcceptedSettings tries settings")

// What validate accepts neither panics nor hangs: a dry run with it, asked to stop soon
// after it begins, ends within ten seconds, whatever it ends with.
func TestAcceptedSettings(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	tried, end := 0, time.Now().Add(*limitsFor)
	for time.Now().Before(end) {
		args := append([]string{"--config", tiny, "--quiet", "--out", t.TempDir()}, strangeSettings(r)...)
		if code, _, _ := trainer(t, append([]string{"validate"}, args...)...); code != exitDone || slow(t, args) {
			continue
		}
		tried++
		ctx, cancel := context.WithCancel(t.Context())
		stop := time.AfterFunc(200*time.Millisecond, cancel) // as a signal does
		done := make(chan int, 1)
		var stderr bytes.Buffer
		begin := time.Now()
		go func() {
			done <- execute(ctx, append([]string{"train", "--dry-run"}, args...), &bytes.Buffer{}, &stderr)
		}()
		select {
		case code := <-done:
			if !slices.Contains([]int{exitDone, exitFailed, exitUsage, exitInterrupted}, code) {
				t.Errorf("%q: code %d: %s", args[5:], code, stderr.String())
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%q does not end", args[5:])
		}
		if d := time.Since(begin); d > time.Second {
			t.Logf("%.1f s: %q: %.200s", d.Seconds(), args[5:], stderr.String())
		}
		stop.Stop()
		cancel()
	}
	t.Logf("%d settings", tried)
	if tried == 0 {
		t.Error("no settings were accepted")
	}
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
	cfg, err := config.Load(tiny, sets)
	if err != nil {
		t.Fatal(err)
	}
	f, err := model.Estimate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	side := cfg.Model.Image.Size / cfg.Model.Image.Patch
	return (f.Total() > 256<<20 || side > 32) && model.Fits(cfg) == nil // attention grows with the square of the patches
}

// strangeSettings sets one to three numbers.
func strangeSettings(r *rand.Rand) (args []string) {
	paths := config.Paths()
	for n := 1 + r.IntN(3); n > 0; {
		path := paths[r.IntN(len(paths))]
		v, _ := config.Default().Get(path)
		var text string
		switch reflect.TypeOf(v).Kind() {
		case reflect.Int, reflect.Uint64:
			text = fmt.Sprint(strangeNumber(r))
		case reflect.Float64:
			text = []string{"0", "1", "1e-300", "1e-9", "0.5", "10", "1e6", "1e9", "1e300"}[r.IntN(9)]
		case reflect.Bool:
			text = fmt.Sprint(r.IntN(2) == 0)
		case reflect.Slice:
			if path != "objective.geodesic.layers" {
				continue
			}
			text = fmt.Sprintf("[%d]", strangeNumber(r))
		default:
			continue
		}
		args = append(args, "--set", path+"="+text)
		n--
	}
	return args
}

// strangeNumber is small, at a limit or beyond all.
func strangeNumber(r *rand.Rand) int {
	switch r.IntN(8) {
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
