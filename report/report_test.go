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

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/median"
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
	check.OK(t, Write(&b, d))
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
	if strings.Contains(text, "<section") || strings.Contains(text, "<a ") {
		t.Error("a page of nothing has sections")
	}
	for _, want := range []string{"Left out: ", "has no loss", "was not evaluated", "no graph", "no learned metric", "no features"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	d := sample(9, 3)
	d.Features.Texts, d.Metrics = nil, nil
	text = render(t, d)
	for _, want := range []string{"no text tower", "no learned metric", ">t-SNE<"} {
		if !strings.Contains(text, want) {
			t.Errorf("a model of images: the page lacks %q", want)
		}
	}
	d.Features.OfTexts = true
	text = render(t, d)
	for _, want := range []string{"no image tower", "9 texts of the test split", "Filled dots are texts.", ">t-SNE<"} {
		if !strings.Contains(text, want) {
			t.Errorf("a model of texts: the page lacks %q", want)
		}
	}
	if strings.Contains(text, "no text tower") || strings.Contains(text, "are images") {
		t.Error("a model of texts: the page takes them for images")
	}
	d.Features, d.Pairs = nil, &Features{N: 2, Split: "test", ScoreName: "scan", Score: func(_ []float32, _ int, _ []float32, _ int, dst []float32) error {
		copy(dst, []float32{2, 1, 0, 3})
		return nil
	}}
	if text = render(t, d); strings.Contains(text, "No model was loaded") || !strings.Contains(text, "own pairs") {
		t.Error("a model that compares tokens: the page says that none was loaded, or shows no pairs")
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
	if got := p.above(); !(math.Abs(got-2.5/6) <= 1e-15) {
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
	check.OK(t, WriteAblation(&b, a))
	checkPage(t, b.String())
	for _, want := range []string{`class="best"`, "band c0", `class="err"`, "\u2605", "</svg>x, also x</li>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// A section without curves has no legend of lines, and the page says what was logged too seldom to have some.
func TestAblationPageWithoutCurves(t *testing.T) {
	var b bytes.Buffer
	check.OK(t, WriteAblation(&b, Ablation{Title: "ab", Runs: []Run{{Name: "x"}}}))
	if strings.Contains(b.String(), `class="legend"`) {
		t.Error("a legend of nothing")
	}
	for _, want := range []string{"No run has logged a loss more than once", "No run has logged an evaluation more than once"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
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

// The last evaluation is a table with a column per ranking in the order of the metrics, and
// the charts say which ranking they are of; names without a ranking repeat one of them. Logs
// of earlier versions have these alone.
func TestEvaluations(t *testing.T) {
	page := func(lines ...string) string {
		t.Helper()
		c := check.Get(ReadCurves(strings.NewReader(strings.Join(lines, "\n"))))(t)
		text := render(t, Data{Title: "x", Curves: c})
		checkPage(t, text)
		return text
	}
	line := func(step int, format string, r ...any) string {
		return fmt.Sprintf(`{"step":%d,`+format+`}`, append([]any{step}, r...)...)
	}
	const ranked = `"eval/retrieval/i2t_r10":%[4]d,"eval/retrieval/first/i2t_r1":%[2]d,"eval/retrieval/first/i2t_r5":%[3]d,"eval/retrieval/first/i2t_r10":%[3]d,` +
		`"eval/retrieval/rerank/i2t_r10":%[4]d,"eval/retrieval/chance/i2t_r1":2,"eval/retrieval/chance/i2t_r10":2,"eval/retrieval/first/r_mean":%[2]d`
	text := page(line(5, ranked, 10, 20, 30), line(9, ranked, 11, 21, 31))
	for _, want := range []string{
		"Last evaluation of retrieval, step 9", "<th>pair score</th><th>re-ranked</th><th>chance</th>",
		"<tr><td>image to text, R@10</td><td>21</td><td>31</td><td>2</td></tr>", "<tr><td>image to text, R@1</td><td>11</td><td></td><td>2</td></tr>",
		"<tr><td>mean of recalls, both</td><td>11</td>", "image to text: recall, pair score", "image to text: recall, re-ranked",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, wrong := range []string{"recall, chance", ">image to text: recall<", "<h3>Last evaluation</h3>"} {
		if strings.Contains(text, wrong) {
			t.Errorf("the page has %q", wrong)
		}
	}
	if a, b := strings.Index(text, "R@5</td>"), strings.Index(text, "R@10</td>"); a < 0 || a > b {
		t.Error("R@10 stands before R@5")
	}
	text = page(line(5, `"eval/retrieval/i2t_r1":10`), line(9, `"eval/retrieval/i2t_r1":12`))
	for _, want := range []string{"<h3>Last evaluation</h3>", "<td>retrieval/i2t_r1</td><td>12</td><td>9</td>", ">image to text: recall<"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of an old log lacks %q", want)
		}
	}
	if strings.Contains(text, "P@5") {
		t.Error("the page has a precision that was not measured")
	}
	// Where queries have several right answers there is a precision too, of the pair score alone.
	text = page(line(9, ranked+`,"eval/retrieval/first/i2t_p5":40,"eval/retrieval/first/t2i_p10":8`, 11, 21, 31))
	for _, want := range []string{"<tr><td>image to text, P@5</td><td>40</td><td></td><td></td></tr>", "<tr><td>text to image, P@10</td><td>8</td><td></td><td></td></tr>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// One that went on without re-ranking has no re-ranked numbers of its last evaluation.
	text = page(line(5, ranked, 10, 20, 30), line(9, `"eval/retrieval/first/i2t_r1":11,"eval/retrieval/chance/i2t_r1":2`))
	for _, want := range []string{"Last evaluation of retrieval, step 9", "<th>pair score</th><th>chance</th>", "<tr><td>image to text, R@1</td><td>11</td><td>2</td></tr>", "<tr><td>image to text, R@10</td><td></td><td></td></tr>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of a run that went on without re-ranking lacks %q", want)
		}
	}
	// A run that an earlier version began and this one went on with keeps its first evaluations.
	text = page(line(5, ranked, 10, 20, 30), line(7, `"eval/retrieval/i2t_r10":12`), line(9, ranked, 11, 21, 31))
	if !strings.Contains(text, ">image to text: recall<") || !strings.Contains(text, "recall, pair score") {
		t.Error("evaluations of an earlier version are not drawn")
	}
}

// Numbers of a task that are no shares stand apart from those that are.
func TestEvalGroups(t *testing.T) {
	for name, want := range map[string]string{
		"eval/probe/top1": "linear probe: accuracy", "eval/probe/chance": "linear probe: accuracy", "eval/probe/decay": "linear probe: decay",
		"eval/vqa/accuracy": "vqa", "eval/vqa/reachable": "vqa", "eval/vqa/outside": "vqa: questions whose answer is not a candidate", "eval/vqa/accuracy/outside": "vqa accuracy",
	} {
		if got := evalGroup(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Pairs that are right answers besides the own ones are not drawn as others.
func TestOtherPairs(t *testing.T) {
	f := sample(4, 3).Features
	for _, c := range []struct {
		captions []string
		ids      []int64
		other    int
	}{{nil, nil, 12}, {[]string{"a", "b", "a", "c"}, nil, 10}, {nil, []int64{1, 1, 2, 2}, 8}, {[]string{"a", "b", "a", "c"}, []int64{1, 1, 2, 2}, 6}} {
		f.Captions, f.IDs = c.captions, c.ids
		if p, err := score(f, cosines(f.C)); err != nil || len(p.own) != 4 || len(p.other) != c.other {
			t.Errorf("%v: %d own and %d other pairs (%v), want 4 and %d", c, len(p.own), len(p.other), err, c.other)
		}
	}
}

// The page of a comparison draws every ranking under its name, and neither chance nor the
// names that repeat a ranking.
func TestAblationEvaluations(t *testing.T) {
	c := &Curves{Values: map[string][]Point{}, Last: 2}
	for _, n := range []string{"i2t_r1", "first/i2t_r1", "rerank/i2t_r1", "chance/i2t_r1"} {
		c.Values["eval/retrieval/"+n] = []Point{{1, 10}, {2, 20}}
	}
	var b bytes.Buffer
	check.OK(t, WriteAblation(&b, Ablation{Title: "ab", Runs: []Run{{Name: "x", Seeds: []*Curves{c}}}}))
	checkPage(t, b.String())
	for text, want := range map[string]int{">image to text, R@1, pair score<": 1, ">image to text, R@1, re-ranked<": 1, ">retrieval/i2t_r1<": 0, "chance": 0, "<section": 1} {
		if n := strings.Count(b.String(), text); n != want {
			t.Errorf("%q is there %d times, want %d", text, n, want)
		}
	}
}

// TestCosines: the last histogram is of the cosines of whole rows, whatever their lengths.
func TestCosines(t *testing.T) {
	d := sample(12, 5)
	f := d.Features
	var p pairScores
	for i := range f.N {
		for j := range f.N {
			var dot, x, y float64
			for k := range f.C {
				a, b := float64(f.Images[i*f.C+k]), float64(f.Texts[j*f.C+k])
				dot, x, y = dot+a*b, x+a*a, y+b*b
			}
			cosine := dot / math.Sqrt(x*y)
			if i == j {
				p.own = append(p.own, cosine)
			} else {
				p.other = append(p.other, cosine)
			}
		}
	}
	s, err := pairSection(d)
	if err != nil || len(s.Panels) != 1 {
		t.Fatalf("%d panels, %v", len(s.Panels), err)
	}
	want := fmt.Sprintf("with a probability of %.4f. Median of own pairs %s, of the others %s.", p.above(), short(median.Of(p.own)), short(median.Of(p.other)))
	if got := s.Panels[0].Caption; !strings.HasSuffix(string(got), want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCells: cells of one shade in a row are one piece of a path, and those of 0 none.
func TestCells(t *testing.T) {
	x := [][]float64{{1, 1, 0}, {0, -1, 1}, {0, 0, 0}}
	c := newCanvas(10, 10, "")
	cellsAt(c, 0, 0, 3, 3, func(i, j int) float64 { return x[i][j] })
	got := string(c.done())
	for _, want := range []string{
		`<path fill="` + shade(1) + `" d="M0,0h2v1h-2zM2,1h1v1h-1z"/>`,
		`<path fill="` + shade(-1) + `" d="M1,1h1v1h-1z"/>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
	if n := strings.Count(got, "<path"); n != 2 {
		t.Errorf("%d paths, want one for each of two shades: %s", n, got)
	}
}

// TestThin: where there are too many points, every so many are drawn, each with what belongs
// to it.
func TestThin(t *testing.T) {
	const n, c = MostPoints, 3 // with as many texts
	d := sample(n, c)
	f := d.Features.thin()
	if f.N != n/2 || len(f.Images) != f.N*c || len(f.Texts) != f.N*c || len(f.Labels) != f.N || len(f.Captions) != f.N {
		t.Fatalf("%d points with %d, %d, %d, %d values", f.N, len(f.Images), len(f.Texts), len(f.Labels), len(f.Captions))
	}
	for _, k := range []int{0, 1, 7, f.N - 1} {
		i := 2 * k
		if f.Captions[k] != d.Features.Captions[i] || f.Labels[k] != d.Features.Labels[i] || f.Images[k*c] != d.Features.Images[i*c] || f.Texts[k*c] != d.Features.Texts[i*c] {
			t.Errorf("point %d is not point %d of all", k, i)
		}
	}
}

// TestTitlesOfPictures: metrics and figures of graphs are drawn under their names.
func TestTitlesOfPictures(t *testing.T) {
	d := sample(9, 3)
	var err error
	if d.Curves, err = ReadCurves(strings.NewReader(`{"step":1,"graph/image/centres":3,"graph/lonely":1}` + "\n" + `{"step":2,"graph/image/centres":4,"graph/lonely":2}`)); err != nil {
		t.Fatal(err)
	}
	text := render(t, d)
	for _, title := range []string{"lonely", "centres", "w", "b", "d"} {
		if !strings.Contains(text, `<text class="title" x="4" y="15">`+title) {
			t.Errorf("no picture is titled %s", title)
		}
	}
}

// What there is nothing of is said: the scores of one pair have no others to stand beside, and a contrast with a queue
// no chance level that is known.
func TestPageSaysWhatIsMissing(t *testing.T) {
	text := render(t, Data{Title: "run", Features: &Features{N: 1, C: 2, Images: []float32{1, 0}, Texts: []float32{0, 1}, Captions: []string{"a"}, Split: "val"}})
	if want := "There are no scores of other pairs"; !strings.Contains(text, want) {
		t.Errorf("the page of one pair lacks %q", want)
	}
	curves := &Curves{Values: map[string][]Point{"loss/itc": {{1, 2}, {2, 1}}}, Last: 2}
	for _, queued := range []bool{false, true} {
		if text := render(t, Data{Title: "run", Curves: curves, Batch: 8, Queued: queued}); strings.Contains(text, "chance: ln 8") == queued {
			t.Errorf("with a queue: %v, chance is drawn: %v", queued, !queued)
		}
	}
}
