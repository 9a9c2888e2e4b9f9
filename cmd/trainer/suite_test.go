package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/eval/ablation"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run/ablate"
)

const suiteMatrix = `
base = "align.toml"
seeds = [1, 2, 3]
metrics = ["eval/retrieval/first/r_mean"]
baseline = "ridge"
tune = {seeds = [101], set = ["eval.split=val"]}
set = ["data.pairs.image=image.safetensors", "data.pairs.text=text.safetensors", "data.pairs.val_samples=40",
  "data.pairs.test_samples=60", "data.pairs.seed=1", "data.pairs.paired=20", "compute.threads=1"]
[[run]]
name = "ridge"
set = ["model.align.method=ridge"]
[[run]]
name = "cca"
trials = [["model.align.cca.power=8", "model.align.cca.components=1"], ["model.align.cca.shrinkage=0.1"]]
[[run]]
name = "as the first trial"
set = ["model.align.cca.power=8", "model.align.cca.components=1"]
`

const suiteFile = `
title = "Tiny"
[[features]]
out = "image.safetensors"
model = "nowhere/at-all"
images = "images.txt"
[[matrix]]
file = "tiny.toml"
where = "rows"
[[matrix.claim]]
idea = "Closed form"
run = "cca"
`

// A suite chooses settings, also of a run whose first trial is another run, goes on after an interruption, and its table is that of its result files.
func TestSuite(t *testing.T) {
	quickPeak(t)
	const n, w = 200, 12
	random := rand.New(rand.NewPCG(3, 4))
	image, text := make([]float32, n*w), make([]float32, n*w)
	for i := range image {
		image[i] = float32(random.NormFloat64())
		text[i/w*w+(i+w/3)%w] = image[i] + float32(random.NormFloat64())
	}
	dir, root := t.TempDir(), featuresIn(t, w, image, text)
	base := check.Get(filepath.Abs("../../configs/align.toml"))(t)
	check.OK(t, os.WriteFile(filepath.Join(dir, "tiny.toml"), []byte(strings.Replace(suiteMatrix, "align.toml", base, 1)), 0o644))
	file, out := filepath.Join(dir, "suite.toml"), filepath.Join(dir, "out")
	check.OK(t, os.WriteFile(file, []byte(suiteFile), 0o644))
	args := []string{"ablate", "--suite", file, "--out", out, "--set", "data.root=" + root}

	list, _ := must(t, exitDone, append(args, "--dry-run")...)
	contains(t, list, "9 runs into", "2 trials choose the settings first, 2 to be made")

	ctx, cancel := context.WithCancel(context.Background())
	stop := &stopAfter{text: "=== run 3 of 9", stop: cancel}
	if code := execute(ctx, args, io.Discard, stop); code != exitInterrupted {
		t.Fatalf("exit code %d: %s", code, stop.seen.String())
	}
	table, stderr := must(t, exitDone, args...)
	contains(t, stderr, "2 of 9 runs are done already")
	contains(t, table, "# Tiny", "| **Closed form** | rows | ", " (", "ridge ", "`tiny` |")
	again, stderr := must(t, exitDone, args...)
	if again != table || strings.Contains(stderr, "===") {
		t.Errorf("again:\n%s%s", again, stderr)
	}

	var r ablation.SuiteResults
	results := filepath.Join(out, ablate.ResultsFolder)
	check.OK(t, json.Unmarshal(check.Get(os.ReadFile(filepath.Join(results, "tiny.json")))(t), &r))
	f := r.Findings[0]
	if cca := r.Runs[1]; f.Seeds != 3 || f.ByQuery == nil || f.P == nil || cca.Set[len(cca.Set)-1] != "model.align.cca.shrinkage=0.1" {
		t.Errorf("%+v of %+v", f, r.Runs)
	}
	// Ranks of each query give the metric of the log.
	for i, seed := range r.Runs[0].Seeds {
		var q struct{ I2T, T2I []int }
		path := filepath.Join(out, "tiny", "ridge", fmt.Sprintf("seed-%d", seed), ablate.QueriesFile)
		check.OK(t, json.Unmarshal(check.Get(os.ReadFile(path))(t), &q))
		sum := 0.0
		for _, rank := range append(q.I2T, q.T2I...) {
			for _, k := range []int{1, 5, 10} {
				if rank < k {
					sum += 100. / 6 / 60
				}
			}
		}
		if want := r.Runs[0].Values[r.Metrics[0]][i]; len(q.I2T) != 60 || !(math.Abs(sum-want) <= 1e-9) {
			t.Errorf("seed %d: %v of the ranks, %v in the log", seed, sum, want)
		}
	}

	page := write(t, "page.md", "before\n<!-- suite: trainer ablate --suite writes these rows -->\nold\n<!-- end of suite -->\nafter\n")
	from, _ := must(t, exitDone, "ablate", "--suite", file, "--from", results, "--page", page)
	written := string(check.Get(os.ReadFile(page))(t))
	if _, rows, _ := strings.Cut(table, "\n\n"); from != table || !strings.HasPrefix(written, "before\n") ||
		!strings.HasSuffix(written, "-->\nafter\n") || !strings.Contains(written, rows) || strings.Contains(written, "\nold\n") {
		t.Errorf("page:\n%s\ntable of the files:\n%s\ntable of the runs:\n%s", written, from, table)
	}

	fails(t, exitUsage, []string{"ablate", "--suite", file, "--from", dir}, "tiny.json is missing")
	fails(t, exitUsage, []string{"ablate", "--suite", file, "--from", results, "--page", file}, "has no place for the table")
	fails(t, exitUsage, []string{"ablate", "--from", results}, "name its file with --suite")
	fails(t, exitUsage, []string{"ablate", "--suite", file}, "--set data.root=FOLDER")
	fails(t, exitUsage, []string{"ablate", "--suite", file, "--config", file}, "--config")
	fails(t, exitUsage, append(args, "--seeds", "101,"), "tune.seeds: must not be among the seeds of the runs")
	check.OK(t, os.Remove(filepath.Join(root, "image.safetensors")))
	fails(t, exitFailed, args, "features image.safetensors")
}

// stopAfter cancels when a text was written.
type stopAfter struct {
	text string
	stop func()
	seen strings.Builder
}

func (s *stopAfter) Write(p []byte) (int, error) {
	s.seen.Write(p)
	if strings.Contains(s.seen.String(), s.text) {
		s.stop()
	}
	return len(p), nil
}

// The table of docs/verdict.md is that of docs/results, whose findings follow from the values of every seed.
func TestVerdictPage(t *testing.T) {
	s := check.Get(ablate.OpenSuite("../../configs/suite/verdict.toml", "../../docs/results", ablate.Options{}))(t)
	page := string(check.Get(os.ReadFile("../../docs/verdict.md"))(t))
	if !strings.Contains(page, "\n"+ablation.SuiteTable(s.Results)+"\n") {
		t.Errorf("docs/verdict.md has other rows than docs/results: write them with\n" +
			"trainer ablate --suite configs/suite/verdict.toml --from docs/results --page docs/verdict.md")
	}
	for i, r := range s.Results {
		if len(r.Findings) != len(s.Suite.Matrices[i].Claims) {
			t.Errorf("%s: %d findings of %d claims", r.Matrix, len(r.Findings), len(s.Suite.Matrices[i].Claims))
		}
		for _, f := range r.Findings {
			got, ok := r.Find(f.Claim)
			if !ok || got.Seeds != f.Seeds || got.Effect != f.Effect || got.BySeed != nil && *got.BySeed != *f.BySeed ||
				got.P != nil && *got.P != *f.P {
				t.Errorf("%s: %s: %+v, and of the values of the seeds %+v", r.Matrix, f.Idea, f, got)
			}
		}
	}
}
