package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// geodesicArgs is a tiny run with geodesic scores. Its queue of 24 is full after 3
// updates, so graphs are begun before steps 3, 7, 11, 15 and 19.
func geodesicArgs(out string, more ...string) []string {
	return tinyArgs(out, append([]string{"--set", "objective.itc.score=geodesic", "--set", "queue.size=24",
		"--set", "objective.geodesic.layers=[2, 6]", "--set", "objective.geodesic.period_steps=4", "--set", "objective.geodesic.entries=4",
		"--set", "train.log_every_steps=1"}, more...)...)
}

// beside lets a rebuild go on beside two steps: begun before step 7 it is switched in
// before step 9, and the checkpoint after 8 updates falls in between.
var beside = []string{"--set", "objective.geodesic.lag_steps=2"}

// graphOf reads what a checkpoint, the newest one of a run, says of its graphs.
func graphOf(t *testing.T, dir string) (g struct {
	Begun   int
	Pending *struct{ Begun int }
}) {
	t.Helper()
	counters(t, dir, "graph", &g)
	return g
}

// counters reads those of a part of a checkpoint, of the newest one of a run.
func counters(t *testing.T, dir, part string, v any) {
	t.Helper()
	c := check.Get(checkpoint.Load(dir))(t)
	defer c.Close()
	check.OK(t, c.Counters(part, v))
}

// The figures of the graphs are in the log from the step that first reads one.
func TestGeodesicRunLogsItsGraphs(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, geodesicArgs(dir, "--quiet")...)
	for i, r := range rows(t, dir) {
		if loss := r.Values["loss/itc"]; !(loss > 0) {
			t.Errorf("step %d: loss/itc is %v", r.Step, loss)
		}
		for _, m := range []string{"image", "text"} {
			for figure, limits := range map[string][2]float64{
				"centres": {2, 6}, "components": {2, 6}, "usage_entropy": {0.01, 1.8}, "mean_path": {0.01, 12.6}, "unreachable": {0, 1}, "truncated": {0, 1},
			} {
				v, ok := r.Values["graph/"+m+"/"+figure]
				if ok != (i >= 3) || ok && !(v >= limits[0] && v <= limits[1]) {
					t.Errorf("step %d: %s of the graph over the %s queue is %v (logged: %t)", r.Step, figure, m, v, ok)
				}
			}
		}
	}
	if g := graphOf(t, dir); g.Begun != 19 || g.Pending != nil {
		t.Errorf("graphs of the last checkpoint: %+v", g)
	}
}

// The score reaches the parameters: a geodesic run ends elsewhere than one by cosines,
// and elsewhere with other settings of the geodesic.
func TestGeodesicSettingsMatter(t *testing.T) {
	var seen [][]byte
	for _, set := range [][]string{
		nil, {"objective.itc.score=cosine"}, {"objective.geodesic.gradient=strict"}, {"objective.geodesic.gradient=soft_entry"},
		{"objective.geodesic.lag_steps=2"}, {"objective.geodesic.mix=0.5"}, {"objective.geodesic.layers=[6]"},
	} {
		dir := t.TempDir()
		args := geodesicArgs(dir, "--quiet", "--max-steps", "10", "--set", "train.eval_every_steps=0")
		args = append(args, sets(set...)...)
		must(t, exitDone, args...)
		model := tensorFiles(t, dir)["model"]
		if slices.ContainsFunc(seen, func(m []byte) bool { return bytes.Equal(m, model) }) {
			t.Errorf("%v ends like an earlier run", set)
		}
		seen = append(seen, model)
	}
}

// A run that goes on from any checkpoint ends with the same bits and the same log,
// whether a rebuild is a part of its step or was going on when the checkpoint was made.
func TestGeodesicRunsResumeExactly(t *testing.T) {
	for name, set := range map[string][]string{"in the step": nil, "beside the steps": beside} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			whole := filepath.Join(dir, "whole")
			must(t, exitDone, geodesicArgs(whole, append(set, "--quiet", "--set", "train.save_every_steps=1", "--set", "train.keep_last=0", "--max-steps", "12")...)...)
			want, pending := tensorFiles(t, whole), 0
			// Just before a rebuild, while one goes on, and just before its switch.
			for _, step := range []int{7, 8, 9} {
				parts := filepath.Join(dir, strconv.Itoa(step))
				must(t, exitDone, geodesicArgs(parts, append(set, "--quiet", "--max-steps", "12", "--resume", filepath.Join(whole, "checkpoints", checkpointName(step)))...)...)
				for g, b := range tensorFiles(t, parts) {
					if !bytes.Equal(b, want[g]) {
						t.Errorf("from step %d: %s.safetensors differs", step, g)
					}
				}
				if graphOf(t, filepath.Join(whole, "checkpoints", checkpointName(step))).Pending != nil {
					pending++
				}
			}
			if (pending > 0) != (set != nil) {
				t.Errorf("%d checkpoints hold a rebuild", pending)
			}
		})
	}
}

func checkpointName(step int) string { return fmt.Sprintf("step-%08d", step) }

// The same with runs that are interrupted; see TestKilledRunsEndTheSame for killed ones.
func TestInterruptedGeodesicRunsEndTheSame(t *testing.T) {
	dir := t.TempDir()
	whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
	must(t, exitDone, geodesicArgs(whole, append(beside, "--quiet")...)...)
	stops := 0
	for _, step := range []int{2, 8, 15} {
		if interrupted(t, parts, step, geodesicArgs(parts, beside...)...) == exitInterrupted {
			stops++
		}
	}
	if stops == 0 {
		t.Error("no run was interrupted")
	}
	must(t, exitDone, geodesicArgs(parts, append(beside, "--quiet")...)...)
	sameRun(t, parts, whole)
}

// Layers and period may change on resume, which is told. With other layers the graphs of
// the checkpoint are left aside and made anew at the first step; a changed period counts
// from the last rebuild.
func TestGeodesicChangesOnResume(t *testing.T) {
	first := t.TempDir()
	must(t, exitDone, geodesicArgs(first, "--quiet", "--max-steps", "8")...)
	from := filepath.Join(first, "checkpoints", checkpointName(8))
	for _, r := range []struct {
		set, told string
		centres   float64 // at most, in the first step
		begun     int     // after 11 updates, the last rebuild
	}{
		{"objective.geodesic.layers=[4]", "objective.geodesic.layers = [4] (was [2 6])", 4, 8},
		{"objective.geodesic.layers=[2, 3, 12]", "objective.geodesic.layers = [2 3 12] (was [2 6])", 12, 8},
		{"objective.geodesic.period_steps=2", "objective.geodesic.period_steps = 2 (was 4)", 6, 9},
		{"objective.geodesic.period_steps=100", "objective.geodesic.period_steps = 100 (was 4)", 6, 7},
		{"objective.geodesic.gradient=soft_entry", `objective.geodesic.gradient = "soft_entry" (was "same_cluster+straight_through+soft_entry")`, 6, 7},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		_, stderr := must(t, exitDone, geodesicArgs(dir, "--max-steps", "11", "--resume", from, "--set", r.set, "--set", "train.save_every_steps=1")...)
		contains(t, stderr, "changed since the checkpoint: "+r.told, "going on from step 8", "step 11/11")
		list := rows(t, dir)
		for _, row := range list[len(list)-3:] {
			if c := row.Values["graph/image/centres"]; c < 2 || c > r.centres {
				t.Errorf("%s: step %d has %v centres", r.set, row.Step, c)
			}
		}
		if g := graphOf(t, dir); g.Begun != r.begun {
			t.Errorf("%s: the graphs of the end are %+v, want them begun at step %d", r.set, g, r.begun)
		}
	}
	// From a run by cosines, which has no graphs, and back.
	cosine := filepath.Join(t.TempDir(), "run")
	_, stderr := must(t, exitDone, geodesicArgs(cosine, "--max-steps", "10", "--resume", from, "--set", "objective.itc.score=cosine")...)
	contains(t, stderr, `objective.itc.score = "cosine" (was "geodesic")`, "no use for these parts of the checkpoint, and its own checkpoints will not hold them: graph")
	_, stderr = must(t, exitDone, geodesicArgs(cosine, "--max-steps", "12")...)
	contains(t, stderr, `objective.itc.score = "geodesic" (was "cosine")`, "step 12/12")
	if g := graphOf(t, cosine); g.Begun != 10 {
		t.Errorf("graphs after a run by cosines: %+v", g)
	}
}

// A run that ends before its queue is full goes by cosines throughout and logs no graph.
func TestGeodesicOfAQueueThatNeverFills(t *testing.T) {
	dir := t.TempDir()
	set := []string{"--quiet", "--max-steps", "6", "--set", "queue.size=64"}
	must(t, exitDone, geodesicArgs(dir, set...)...)
	for _, r := range rows(t, dir) {
		for name := range r.Values {
			if strings.HasPrefix(name, "graph/") {
				t.Errorf("step %d logs %s", r.Step, name)
			}
		}
	}
	var queue struct{ Filled int }
	counters(t, dir, "queue", &queue)
	if g := graphOf(t, dir); g.Begun != -1 || queue.Filled != 48 {
		t.Errorf("queue %+v, graphs %+v", queue, g)
	}
	cosine := t.TempDir()
	must(t, exitDone, geodesicArgs(cosine, append(set, "--set", "objective.itc.score=cosine")...)...)
	x, y := rows(t, dir), rows(t, cosine)
	for i := range x {
		// The columns stand in another order, and sums over them are rounded otherwise.
		if a, b := x[i].Values["loss/itc"], y[i].Values["loss/itc"]; !(a-b < 1e-3 && b-a < 1e-3) {
			t.Errorf("step %d: loss/itc is %v, by cosines %v", x[i].Step, a, b)
		}
	}
}

// Settings that do not fit are refused with their path before anything starts.
func TestGeodesicSettingsThatDoNotFit(t *testing.T) {
	for _, r := range []struct{ set, want string }{
		{"objective.geodesic.layers=[2, 25]", "objective.geodesic.layers: must not end in more clusters than queue.size"},
		{"objective.geodesic.layers=[6, 2]", "objective.geodesic.layers: must grow from the top layer to the bottom one"},
		{"objective.geodesic.layers=[]", "objective.geodesic.layers: must name at least the number of bottom centres"},
		{"objective.geodesic.lag_steps=4", "objective.geodesic.lag_steps: must be below objective.geodesic.period_steps"},
		{"objective.geodesic.period_steps=0", "objective.geodesic.period_steps: must be > 0"},
		{"objective.geodesic.gradient=exact", "objective.geodesic.gradient: "},
		{"objective.geodesic.mix=0", "objective.geodesic.mix: must be above 0"},
		{"queue.size=0", "queue.size: must be > 0"},
	} {
		args := append([]string{"validate"}, geodesicArgs("", "--set", r.set)[1:]...)
		args = slices.DeleteFunc(args, func(a string) bool { return a == "--out" || a == "" })
		fails(t, exitUsage, args, r.want)
	}
}
