package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// sample is the data of a small run; pairs lie near each other.
func sample(n, c int) Data {
	r := rand.New(rand.NewPCG(1, 2))
	f := &Features{N: n, C: c, Split: "test", Attribute: "shape"}
	for i := range n {
		for k := range c {
			v := float32(r.NormFloat64())
			if k == i%3 {
				v += 6
			}
			f.Images = append(f.Images, v)
			f.Texts = append(f.Texts, v+float32(r.NormFloat64())/10)
		}
		f.Labels = append(f.Labels, []string{"circle", "<square>", "star"}[i%3])
		f.Captions = append(f.Captions, fmt.Sprintf("caption %d & \x01 more", i))
	}
	var log strings.Builder
	for s := 1; s <= 40; s++ {
		fmt.Fprintf(&log, `{"step":%d,"loss":%g,"loss/itc_in_batch":%g,"loss/odd<part>":1,"lr":1e-5,"temperature":0.07,"grad_norm":%d,"graph/image/seconds":0.01,"graph/text/seconds":0.02,"eval/retrieval/i2t_r1":%d}`+"\n", s, 4/float64(s), 3.2, s*s, s)
	}
	curves, err := ReadCurves(strings.NewReader(log.String()))
	if err != nil {
		panic(err)
	}
	return Data{Title: "a <run>", Curves: curves, Batch: 32, Features: f, Metrics: []Metric{
		{Name: "w", Form: Diag, C: 2, Weights: []float32{1, 2}},
		{Name: "b", Form: BlockDiag, C: 4, Blocks: 2, Weights: []float32{1, 0, 0, 1, 1, .5, 0, 1}},
		{Name: "d", Form: Dense, C: 2, Weights: []float32{1, 0, float32(math.NaN()), 1}},
	}, Settings: []Setting{{"a.b", "1", "2"}}}
}

func render(t *testing.T, d Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	pictures = regexp.MustCompile(`(?s)<svg .*?</svg>`)
	address  = regexp.MustCompile(`(?i)https?://|src=|@import|url\(|<script|<link`)
)

// checkPage checks that every picture is well-formed XML with finite numbers, and that
// nothing outside the page is named.
func checkPage(t *testing.T, text string) {
	t.Helper()
	if m := address.FindString(text); m != "" {
		t.Errorf("the page names something outside: %q", m)
	}
	for _, svg := range pictures.FindAllString(text, -1) {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in %.300s", err, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("not finite: %.300s", svg)
		}
	}
}

func TestPage(t *testing.T) {
	text := render(t, sample(40, 5))
	checkPage(t, text)
	for _, want := range []string{"a &lt;run&gt;", "chance: ln 32", "odd&lt;part&gt;", "time to rebuild", "R@1", ">PCA<", ">t-SNE<", "own pairs", "block 1", "1 weights are no finite", "&lt;square&gt; (13)", "a.b"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := len(pictures.FindAllString(text, -1)); n < 15 {
		t.Errorf("%d pictures", n)
	}
	if again := render(t, sample(40, 5)); again != text {
		t.Error("equal data made another page")
	}
}

func TestPageWithoutData(t *testing.T) {
	text := render(t, Data{Title: "empty"})
	checkPage(t, text)
	if n := strings.Count(text, `class="missing"`); n != 7 {
		t.Errorf("%d sections say what is missing, want all 7", n)
	}
	d := sample(9, 3)
	d.Features.Texts, d.Metrics = nil, nil
	text = render(t, d)
	for _, want := range []string{"no text tower", "no learned metric", ">t-SNE<"} {
		if !strings.Contains(text, want) {
			t.Errorf("a model of images: the page lacks %q", want)
		}
	}
}

func TestSizeOfPage(t *testing.T) {
	if n := len(render(t, sample(1200, 8))); n > 700_000 {
		t.Errorf("%d bytes", n)
	}
}

func TestWrongLengths(t *testing.T) {
	for name, change := range map[string]func(*Data){
		"images": func(d *Data) { d.Features.Images = d.Features.Images[1:] },
		"texts":  func(d *Data) { d.Features.Texts = d.Features.Texts[1:] },
		"labels": func(d *Data) { d.Features.Labels = d.Features.Labels[1:] },
		"metric": func(d *Data) { d.Metrics[1].Blocks = 3 },
		"scorer": func(d *Data) {
			d.Features.Score = func([]float32, int, []float32, int, []float32) error { return errors.New("no") }
		},
	} {
		d := sample(6, 3)
		change(&d)
		if err := Write(io.Discard, d); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOwnScore(t *testing.T) {
	d := sample(12, 3)
	d.Features.ScoreName = "distance"
	d.Features.Score = func(x []float32, n int, y []float32, m int, dst []float32) error {
		for i := range dst {
			dst[i] = float32(i)
		}
		return nil
	}
	if text := render(t, d); !strings.Contains(text, ">distance<") || !strings.Contains(text, ">cosine<") {
		t.Error("one of both histograms is missing")
	}
}

// Own 3 beats 1 and 2 and ties with 3: 2.5 of 3; own 0 beats none.
func TestAbove(t *testing.T) {
	p := pairScores{own: []float64{3, 0}, other: []float64{1, 2, 3}}
	if got := p.above(); math.Abs(got-2.5/6) > 1e-15 {
		t.Errorf("got %v, want 2.5/6", got)
	}
}

func TestAblationPage(t *testing.T) {
	curves := func(values ...float64) *Curves {
		c := &Curves{Values: map[string][]Point{}, Last: len(values)}
		for i, v := range values {
			c.Values["loss"] = append(c.Values["loss"], Point{float64(i + 1), v})
		}
		return c
	}
	a := Ablation{Title: "ab", Runs: []Run{{"x", []*Curves{curves(1, 2), curves(3, 6)}, []string{"also x"}}, {"y", nil, nil}},
		Tables: []Table{{Head: []string{"run", "v"}, Rows: []Line{{[]Cell{{Text: "x"}, {Text: "1.0", Best: true}}}}}},
		Bars:   []Bars{{"v", []Bar{{"x", 2, 0.5, 0, true}, {"y", -1, math.NaN(), 1, false}}}}}
	k := a.Runs[0].over("loss", false)
	if k.points[1] != (Point{2, 4}) || k.low[1].Value != 2 || k.high[1].Value != 6 {
		t.Errorf("mean and range: %+v", k)
	}
	var b bytes.Buffer
	if err := WriteAblation(&b, a); err != nil {
		t.Fatal(err)
	}
	checkPage(t, b.String())
	for _, want := range []string{`class="best"`, "band c0", `class="err"`, "\u2605", "</svg>x, also x</li>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// A section without curves has no legend of lines.
func TestAblationPageWithoutCurves(t *testing.T) {
	var b bytes.Buffer
	if err := WriteAblation(&b, Ablation{Title: "ab", Runs: []Run{{Name: "x"}}}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), `class="legend"`) {
		t.Error("a legend of nothing")
	}
}

func TestTicks(t *testing.T) {
	for _, x := range []struct {
		lo, hi float64
		want   string
	}{{0, 10, "0 5 10"}, {0, 0.0015, "0 0.0005 0.0010 0.0015"}, {0, 20000, "0 5k 10k 15k 20k"}, {-1e-6, 1e-6, "-1e-6 -5e-7 0 5e-7 1e-6"}} {
		got := strings.Join(tickTexts(axis{lo: x.lo, hi: x.hi, pixels: 1}.ticks(4), false), " ")
		if got != x.want {
			t.Errorf("%g to %g: %s, want %s", x.lo, x.hi, got, x.want)
		}
	}
}
