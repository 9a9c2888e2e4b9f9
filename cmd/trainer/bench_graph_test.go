package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// geodesicSets make the contrast of tiny geodesic.
var geodesicSets = []string{"objective.itc.score=geodesic", "objective.geodesic.layers=4,8", "objective.geodesic.period_steps=20"}

// TestBenchGraphsCompared sets a geodesic step beside the cosine's.
func TestBenchGraphsCompared(t *testing.T) {
	quickPeak(t)
	file := filepath.Join(t.TempDir(), "cosine.json")
	args := []string{"bench", "--config", tiny, "--steps", "2", "--warmup", "0"}
	stdout, _ := must(t, exitDone, append(args, "--save", file)...)
	if strings.Contains(stdout, "graph rebuild") {
		t.Errorf("cosines with a graph: %s", stdout)
	}
	args = append(args, "--compare", file)
	args = append(args, sets(geodesicSets...)...)
	stdout, stderr := must(t, exitDone, args...)
	contains(t, stdout, "graph rebuild", "s each (the first", "every 20 steps", "one graph rebuild ms", "a step takes ", "of the peak memory that it did before")
	contains(t, stderr, "note: score differs: cosine in "+file+", geodesic now")
}

// TestBenchGraphsVary makes a table of both scores, in turns.
func TestBenchGraphsVary(t *testing.T) {
	quickPeak(t)
	scores := "objective.itc.score=cosine,geodesic"
	stdout, _ := must(t, exitDone, "bench", "--config", tiny, "--steps", "1", "--warmup", "0", "--set", "objective.geodesic.layers=4,8",
		"--vary", scores, "--vary", scores)
	if n := strings.Count(stdout, "graph rebuild s\n"); n != 2 {
		t.Errorf("%d tables with rebuilds: %s", n, stdout)
	}
	stdout, _ = must(t, exitDone, "bench", "--config", tiny, "--steps", "1", "--warmup", "0", "--vary", "batch=4,8")
	if strings.Contains(stdout, "rebuild") {
		t.Errorf("cosines with rebuilds: %s", stdout)
	}
}

// TestBenchAgainst measures in turns and checks the figures against the ratios of turns.
func TestBenchAgainst(t *testing.T) {
	args := []string{"bench", "--config", tiny, "--steps", "3", "--warmup", "0", "--set", geodesicSets[0], "--set", geodesicSets[1],
		"--against", "objective.itc.score=cosine"}
	stdout, _ := must(t, exitDone, args...)
	contains(t, stdout, "tiny against itself with objective.itc.score=cosine, in turns", "step of the other", "ratio of step times", "median of 3 turns", "graph rebuild")
	if strings.Contains(stdout, "that of the other") {
		t.Errorf("cosines with graphs: %s", stdout)
	}
	stdout, _ = must(t, exitDone, append(args, "--json")...)
	m := parseJSON(t, stdout)
	pairs := m["ratios"].([]any)
	if len(pairs) != 3 {
		t.Fatalf("got %s", stdout)
	}
	below, above := 0, 0
	for _, p := range pairs {
		if p.(float64) <= m["ratio"].(float64) {
			below++
		}
		if p.(float64) >= m["ratio"].(float64) {
			above++
		}
	}
	if below < 2 || above < 2 || m["ratio_lower_quartile"].(float64) > m["ratio"].(float64) || m["ratio_higher_quartile"].(float64) < m["ratio"].(float64) {
		t.Errorf("ratio %v of %v", m["ratio"], pairs)
	}
	for _, r := range []struct {
		args []string
		want string
	}{
		{[]string{"--against", "compute.threads=1"}, "no compute key can differ"},
		{[]string{"--against", "queue.sise=8"}, "did you mean queue.size?"},
		{[]string{"--against", "queue.size=128", "--vary", "batch=4,8"}, "goes with neither --compare nor --vary"},
	} {
		code, _, stderr := trainer(t, append([]string{"bench", "--config", tiny, "--steps", "1"}, r.args...)...)
		if code == exitDone || !strings.Contains(stderr, r.want) {
			t.Errorf("%v: code %d, %s", r.args, code, stderr)
		}
	}
}
