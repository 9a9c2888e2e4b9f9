package main

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute"
)

// table runs the command and returns the cells of its rows, without headings, and what
// else it printed.
func table(t *testing.T, args ...string) (rows [][]string, text string) {
	t.Helper()
	var out bytes.Buffer
	if err := run(args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); strings.HasPrefix(line, "| ") && cells[0] != "N" && cells[0] != "gradient" && !strings.HasPrefix(cells[0], "--") {
			rows = append(rows, cells)
		}
	}
	return rows, out.String()
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, " %"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestGrow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "grow.svg")
	rows, text := table(t, "-grow", "-points", "256,2048", "-clusters", "8,32", "-at", "512", "-channels", "32", "-batch", "16", "-repeats", "1", "-threads", "1", "-out", file)
	want := [][2]string{{"256", "64"}, {"2048", "256"}, {"512", "8"}, {"512", "32"}}
	if len(rows) != len(want) {
		t.Fatalf("rows of %s", text)
	}
	for i, r := range rows {
		if r[0] != want[i][0] || r[1] != want[i][1] || len(r) != 10 {
			t.Errorf("row %d is %v, want N and K %v", i, r, want[i])
		}
		for _, cell := range r[2:] {
			if v := number(t, cell); v < 0 || math.IsInf(v, 0) {
				t.Errorf("row %v", r)
			}
		}
	}
	if !strings.Contains(text, "1 thread") || !strings.Contains(text, "gradient same_cluster+straight_through") {
		t.Errorf("no machine or options in %s", text)
	}
	svg, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(svg), "<svg") || !strings.Contains(string(svg), "growing graph, N = 512") {
		t.Errorf("picture: %v, %.80s", err, svg)
	}
}

// TestGradients holds what the analysis of eq. 3 in docs/geomm.md says against the ops:
// the literal gradient lies along the row's own centre, so that those of many rows have
// as many directions as there are centres, and it does not point to the positive.
func TestGradients(t *testing.T) {
	const clusters = 16
	file := filepath.Join(t.TempDir(), "gradients.svg")
	rows, text := table(t, "-gradients", "-rows", "256", "-of", "32", "-pool", "1024", "-k", "16", "-channels", "64", "-out", file, "-threads", "1")
	if len(rows) != len(modes) {
		t.Fatalf("rows of %s", text)
	}
	get := map[string][]float64{}
	for i, r := range rows {
		if r[0] != modes[i] || len(r) != 7 {
			t.Fatalf("row %v, want %s", r, modes[i])
		}
		for _, cell := range r[1:] {
			get[r[0]] = append(get[r[0]], number(t, cell))
		}
	}
	const positive, centre, set = 0, 2, 4
	if s := get["strict"]; s[centre] != 1 || s[set] > clusters {
		t.Errorf("strict: cosine %v with the own centre, effective rank %v; want 1 and at most %d", s[centre], s[set], clusters)
	}
	if d := get["same_cluster+straight_through"]; d[positive] < .5 || d[set] < 2*clusters {
		t.Errorf("same_cluster+straight_through: cosine %v to the positive, effective rank %v", d[positive], d[set])
	}
	if get["strict"][positive] >= get["soft_entry"][positive] || get["soft_entry"][positive] >= get[cosine][positive] {
		t.Errorf("cosines to the positive in %s", text)
	}
	if svg, err := os.ReadFile(file); err != nil || !strings.Contains(string(svg), "straight_through") {
		t.Errorf("picture: %v, %.80s", err, svg)
	}
}

// TestStepComputesScores wants the scores too in what is timed, although neither gradient
// depends on them: the cosine's two products, and none of N rows in the geodesic's
// forward pass.
func TestStepComputesScores(t *testing.T) {
	e, err := compute.New(compute.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const b, n, c, k = 4, 512, 16, 8
	d := directions{engine: e, channels: c, pool: n, clusters: k}
	queue := newMixture(c, 1).rows(n, 2)
	graph, err := d.build(queue)
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string][2]int64{cosine: {2, 2}, "straight_through": {1, 2}, "strict": {0, 1}} {
		s, err := newStep(stepOptions{engine: e, batch: b, channels: c, size: n, mode: mode}, queue, graph)
		if err != nil {
			t.Fatal(err)
		}
		const product = 2 * b * n * c
		if f := s.machine.FLOPs(); f < want[0]*product || f > want[1]*product {
			t.Errorf("%s: %d floating-point operations, want %d to %d", mode, f, want[0]*product, want[1]*product)
		}
		kinds := ""
		for _, x := range s.machine.Profile().Kinds {
			kinds += x.Kind + ","
		}
		if forward := map[bool]string{true: "pool similarity,", false: "geodesic,"}[mode == cosine]; !strings.Contains(kinds, forward) {
			t.Errorf("%s: no %q in %s", mode, forward, kinds)
		}
	}
}

func TestEffectiveRank(t *testing.T) {
	for _, r := range []struct {
		rows []float32
		want float64
	}{
		{[]float32{1, 0, 0, 1, 0, 0}, 1}, // one direction
		{[]float32{1, 0, 0, 0, -1, 0}, 2},
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

func TestVectors(t *testing.T) {
	f := []float32{0, 1}
	if g := tangent([]float32{2, 5}, f); g[0] != 2 || g[1] != 0 {
		t.Errorf("tangent %v", g)
	}
	for _, r := range []struct {
		x, y []float32
		want float64
	}{{[]float32{3, 4}, []float32{4, 3}, .96}, {[]float32{2, 0}, []float32{-5, 0}, -1}, {[]float32{0, 0}, f, 0}} {
		if got := cosineOf(r.x, r.y); !(math.Abs(got-r.want) <= 1e-9) {
			t.Errorf("cosine of %v and %v is %v, want %v", r.x, r.y, got, r.want)
		}
	}
}

// TestPool checks lengths, the cosines that the comments promise, and that rows depend on
// the seed alone.
func TestPool(t *testing.T) {
	const c = 256
	m := newMixture(c, 1)
	x, again, other := m.rows(5000, 2), m.rows(5000, 2), m.rows(5000, 3)
	if !bytes.Equal(floatBytes(x), floatBytes(again)) || bytes.Equal(floatBytes(x), floatBytes(other)) {
		t.Error("rows do not follow from the seed")
	}
	for i := range 5000 {
		if n := dot(x[i*c:][:c], x[i*c:][:c]); !(math.Abs(n-1) <= 1e-5) {
			t.Fatalf("row %d has square length %v", i, n)
		}
	}
	for _, aligned := range []float64{.3, .7, .95} {
		if got := meanCosine(x, beside(x, c, aligned, 4), c); !(math.Abs(got-aligned) <= .01) {
			t.Errorf("cosine %v, want %v", got, aligned)
		}
	}
}

func floatBytes(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		u := math.Float32bits(v)
		b = append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	return b
}

func TestBadInput(t *testing.T) {
	for _, r := range []struct {
		args string
		want string
	}{
		{"", "want one of -grow and -gradients"},
		{"-grow -gradients", "want one of -grow and -gradients"},
		{"-grow more", "no argument besides"},
		{"-grow -points 4096,x", `-points: "x" is no number above 0`},
		{"-grow -clusters 0", `-clusters: "0" is no number above 0`},
		{"-grow -points 16", "a pool of 16 points does not hold the batch of 32"},
		{"-grow -repeats 0", "-batch and -repeats must be > 0"},
		{"-grow -points 64 -clusters 128 -at 64", "geodesic: "},
		{"-gradients -of 1", "-of must be > 1"},
		{"-gradients -aligned 1", "-aligned must lie between 0 and 1"},
		{"-gradients -out x.gif", "-out must end in .svg, .png or .pdf"},
	} {
		err := run(strings.Fields(r.args), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%q: error %v, want %q", r.args, err, r.want)
		}
	}
}
