package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute"
)

func engine(t *testing.T) *compute.Engine {
	t.Helper()
	e, err := compute.New(compute.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// numbersOf reads the rows of the tables of a text, without headings: the numbers of each by its first cell.
func numbersOf(t *testing.T, text string) map[string][]float64 {
	t.Helper()
	rows := map[string][]float64{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) < 2 || strings.Contains(cells[1], "-:") || strings.ContainsAny(cells[1], "Kc") {
			continue
		}
		for _, cell := range cells[1:] {
			v, err := strconv.ParseFloat(strings.TrimSuffix(cell, " %"), 64)
			if err != nil {
				t.Fatal(err)
			}
			rows[cells[0]] = append(rows[cells[0]], v)
		}
	}
	return rows
}

func contains(t *testing.T, file, want string) {
	t.Helper()
	if svg, err := os.ReadFile(file); err != nil || !strings.Contains(string(svg), want) {
		t.Errorf("picture without %q: %v, %.80s", want, err, svg)
	}
}

func TestGrow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "grow.svg")
	var out bytes.Buffer
	g := growth{engine: engine(t), channels: 32, batch: 16, repeats: 1, points: []int{256, 2048}, clusters: []int{8},
		at: 512}
	if err := g.run(&out, file); err != nil {
		t.Fatal(err)
	}
	rows := numbersOf(t, out.String())
	for n, k := range map[string]float64{"256": 64, "2048": 256, "512": 8} {
		if r := rows[n]; len(rows) != 3 || len(r) != 9 || r[0] != k || !(slices.Min(r) >= 0) {
			t.Errorf("rows %v, want K %v for N %s", rows, k, n)
		}
	}
	contains(t, file, "growing graph, N = 512")
}

// TestGradients holds what docs/geomm.md says of eq. 3 against the ops: the literal gradient lies along the row's own
// centre, so that those of many rows have as many directions as there are centres, and it does not point to the
// positive.
func TestGradients(t *testing.T) {
	const clusters, positive, centre, set = 16, 0, 2, 4
	file := filepath.Join(t.TempDir(), "gradients.svg")
	var out bytes.Buffer
	d := directions{engine: engine(t), channels: 64, rows: 256, batch: 32, pool: 1024, clusters: clusters, aligned: .7,
		temperature: .07}
	if err := d.run(&out, file); err != nil {
		t.Fatal(err)
	}
	get := numbersOf(t, out.String())
	if s := get["strict"]; s[centre] != 1 || s[set] > clusters {
		t.Errorf("strict: cosine %v with the own centre, effective rank %v; want 1 and at most %d", s[centre], s[set],
			clusters)
	}
	if d := get["same_cluster+straight_through"]; d[positive] < .5 || d[set] < 2*clusters {
		t.Errorf("same_cluster+straight_through: cosine %v to the positive, effective rank %v", d[positive], d[set])
	}
	if get["strict"][positive] >= get["soft_entry"][positive] || get["soft_entry"][positive] >= get[cosine][positive] {
		t.Errorf("cosines to the positive in %s", &out)
	}
	contains(t, file, "straight_through")
}

// TestStepComputesScores: what is timed includes the scores, although neither gradient depends on them: the cosine's
// two products, and none of N rows in the geodesic's forward pass.
func TestStepComputesScores(t *testing.T) {
	const b, n, c, k = 4, 512, 16, 8
	d := directions{engine: engine(t), channels: c, pool: n, clusters: k}
	queue := newMixture(c, 1).rows(n, 2)
	graph, err := d.build(queue)
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string][2]int64{cosine: {2, 2}, "straight_through": {1, 2}, "strict": {0, 1}} {
		s, err := newStep(stepOptions{engine: d.engine, batch: b, channels: c, size: n, mode: mode}, queue, graph)
		if err != nil {
			t.Fatal(err)
		}
		const product = 2 * b * n * c
		if f := s.machine.FLOPs(); f < want[0]*product || f > want[1]*product {
			t.Errorf("%s: %d floating-point operations, want %d to %d", mode, f, want[0]*product, want[1]*product)
		}
	}
}

func TestEffectiveRank(t *testing.T) {
	for _, r := range []struct {
		rows []float32
		want float64
	}{
		{[]float32{1, 0, 0, 1, 0, 0}, 1}, // one direction
		{[]float32{3, 0, 0, 0, 3, 0, 0, 0, 3}, 3},
		{[]float32{0, 0, 0}, 0},
		// Singular values 3 and 1: exp(-(3/4 ln 3/4 + 1/4 ln 1/4)) = 4/3^(3/4).
		{[]float32{3, 0, 0, 0, 1, 0}, 4 / math.Pow(3, .75)},
	} {
		if got := effectiveRank(r.rows, 3); !(math.Abs(got-r.want) <= 1e-9) {
			t.Errorf("%v: %v, want %v", r.rows, got, r.want)
		}
	}
}

// TestPool: rows have length 1 and depend on the seed alone, and cosines are those that the comments promise.
func TestPool(t *testing.T) {
	const c = 256
	m := newMixture(c, 1)
	x := m.rows(5000, 2)
	if !slices.Equal(x, m.rows(5000, 2)) || slices.Equal(x, m.rows(5000, 3)) {
		t.Error("rows do not follow from the seed")
	}
	if n := dot(x, x) / 5000; !(math.Abs(n-1) <= 1e-5) {
		t.Errorf("mean square length %v", n)
	}
	for _, aligned := range []float64{.3, .95} {
		if got := meanCosine(x, beside(x, c, aligned, 4), c); !(math.Abs(got-aligned) <= .01) {
			t.Errorf("cosine %v, want %v", got, aligned)
		}
	}
}
