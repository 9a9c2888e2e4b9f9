package explain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
)

// ContributionsPage is the name of the page of a split.
const ContributionsPage = "contributions.html"

// DefaultPairs is how many pairs of a split are explained unless asked otherwise.
const DefaultPairs = 200

// Contributions are what class tokens, patches and words add to the scores of the right pairs of a
// split. A share is of what is above 0 in one pair; means are over the pairs.
type Contributions struct {
	Folder     string         `json:"folder"`
	Checkpoint string         `json:"checkpoint"`
	Step       int            `json:"step"`
	Split      string         `json:"split"`
	Pairs      int            `json:"pairs"`
	Score      string         `json:"score"`
	Mean       float64        `json:"mean"`             // score of a pair
	Formula    string         `json:"formula"`          // of patches
	Block      int            `json:"block"`            // of the image tower, from 0 on
	Layer      int            `json:"layer"`            // of the text tower
	Tokens     []Contribution `json:"tokens,omitempty"` // scores of class tokens or spheres
	Rows       int            `json:"rows"`             // of patches, 0 of regions
	Columns    int            `json:"columns"`
	Patches    []float64      `json:"patches,omitempty"` // mean share of each, row by row from the top left
	Regions    []Contribution `json:"regions,omitempty"` // instead of patches: mean share by number, from 0 on
	Words      []Contribution `json:"words"`             // mean share, the largest first
	Places     []Contribution `json:"places"`            // mean share of each token place of a text, in their order
	Files      []string       `json:"files"`

	tokens bool
	system string
}

// Contribution is one class token, word or place: mean and standard deviation over the pairs that
// have it.
type Contribution struct {
	Name   string  `json:"name"`
	Mean   float64 `json:"mean"`
	Spread float64 `json:"spread"`
	Pairs  int     `json:"pairs"`
}

// tally adds up numbers by name, in the order in which names come.
type tally struct {
	names []string
	at    map[string]*moments
}

// moments are a number of values with their sum and sum of squares.
type moments struct {
	n        int
	sum, sq2 float64
}

func (t *tally) add(name string, v float64) {
	m := t.at[name]
	if m == nil {
		if t.at == nil {
			t.at = map[string]*moments{}
		}
		m = &moments{}
		t.at[name], t.names = m, append(t.names, name)
	}
	m.n, m.sum, m.sq2 = m.n+1, m.sum+v, m.sq2+v*v
}

func (t *tally) list() (out []Contribution) {
	for _, name := range t.names {
		m := t.at[name]
		mean := m.sum / float64(m.n)
		out = append(out, Contribution{name, mean, math.Sqrt(max(m.sq2/float64(m.n)-mean*mean, 0)), m.n})
	}
	return out
}

// WriteContributions explains at most n right pairs of a split (empty: eval.split; 0: DefaultPairs), images at
// even distances with the first text of each, and writes a page with charts to the folder dir. progress is
// told how much is done and may be nil. It ends early with the error of ctx.
func WriteContributions(ctx context.Context, t *run.Trained, split string, n int, o Options, dir string,
	progress func(phase string, done, total int)) (*Contributions, error) {
	cfg := t.Config
	if err := Explainable(cfg); err != nil {
		return nil, err
	}
	if cfg.Has(section.ImagesAlone) {
		return nil, console.Argument("model.system %q has no texts, so a split has no pairs: explain two images with --image and --with", cfg.Model.System)
	}
	if err := onePicture(cfg); err != nil {
		return nil, err
	}
	set, err := openPairs(ctx, t, split, progress)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil { // before the work
		return nil, fmt.Errorf("%w: choose another folder with --out", err)
	}
	x, err := New(t, o)
	if err != nil {
		return nil, err
	}
	var said Explanation
	x.describe(&said)
	c := &Contributions{Folder: dir, Checkpoint: said.Checkpoint, Step: said.Step, Split: t.SplitName(split),
		Score: said.Score, Formula: said.Formula, Block: said.Block, Layer: said.Layer, tokens: said.tokens,
		system: said.System}
	total := set.Len()
	if n <= 0 {
		n = DefaultPairs
	}
	n = min(n, total)
	var tokens, common, places, regions, scores tally
	for i := range n {
		if progress != nil {
			progress("explaining pairs", i, n)
		}
		if err := x.add(ctx, set, i*total/n, c, &tokens, &common, &places, &regions, &scores); err != nil {
			return nil, err
		}
	}
	if progress != nil {
		progress("explaining pairs", n, n)
	}
	if c.Pairs == 0 {
		return nil, errors.New("no pair of the split has a text of which something is left")
	}
	for i := range c.Patches {
		c.Patches[i] /= float64(c.Pairs)
	}
	c.Mean = scores.list()[0].Mean
	c.Tokens, c.Words, c.Places, c.Regions = tokens.list(), common.list(), places.list(), regions.list()
	slices.SortFunc(c.Places, func(a, b Contribution) int { return words.Natural(a.Name, b.Name) })
	slices.SortStableFunc(c.Words, func(a, b Contribution) int { return cmp.Compare(b.Mean, a.Mean) })
	return c, c.write()
}

// add explains the pair of an image of a split with its first text.
func (x *Explainer) add(ctx context.Context, set *run.Split, image int, c *Contributions, tokens, words, places,
	regions, scores *tally) error {
	if err := x.fill(set, image); err != nil {
		return err
	}
	text := set.Eval.Text(set.Eval.ImageTexts(image)[0])
	if strings.TrimSpace(text) == "" {
		return nil
	}
	x.setText(text) // clean already
	r, err := x.Pair(ctx)
	if err == nil {
		err = r.finite()
	}
	if err != nil {
		return err
	}
	c.Pairs++
	scores.add("", r.Score)
	each := shares(r.Image.Values)
	if x.t.Config.Has(section.Regions) {
		for i, s := range each {
			regions.add(fmt.Sprint(i), s)
		}
	} else {
		c.Rows, c.Columns = r.Image.Rows, r.Image.Columns
		if c.Patches == nil {
			c.Patches = make([]float64, len(each))
		}
		for i, s := range each {
			c.Patches[i] += s
		}
	}
	of := explain.Shares(r.Words)
	share := map[string]float64{} // of the words of this text, each once
	var order []string
	for i, w := range r.Words {
		if w.Special {
			continue
		}
		if _, ok := share[w.Text]; !ok {
			order = append(order, w.Text)
		}
		share[w.Text] += of[i]
	}
	for _, w := range order {
		words.add(w, share[w])
	}
	for i, w := range x.words {
		if !w.special {
			places.add(fmt.Sprint(w.places[0]), of[i])
		}
	}
	for k := range x.groups() {
		g, err := x.Group(ctx, k)
		if err != nil {
			return err
		}
		tokens.add(fmt.Sprint(k), g.Score)
	}
	return nil
}

// shares are the shares of what is above 0.
func shares(values []float64) []float64 {
	out, sum := explain.Positive(values), 0.0
	for _, v := range out {
		sum += v
	}
	if sum > 0 {
		for i := range out {
			out[i] /= sum
		}
	}
	return out
}

// Bars of a chart: words that few texts have say little, and more than these are not read.
const (
	leastTexts = 3
	mostBars   = 30
)

// write writes the page.
func (c *Contributions) write() error {
	p := pages.Contributions{Title: filepath.Base(c.Folder), Tokened: c.tokens,
		Patches: explain.Map{Values: c.Patches, Rows: c.Rows, Columns: c.Columns}}
	p.Title = fmt.Sprintf("%s of the %s split", words.Count(c.Pairs, "right pair"), c.Split)
	p.Facts = []pages.Fact{{Name: "system", Value: c.system}, {Name: "step", Value: fmt.Sprint(c.Step)},
		{Name: "mean score (" + c.Score + ")", Value: fmt.Sprintf("%.3f", c.Mean)}}
	if c.Formula != FormulaTerms {
		p.Facts = append(p.Facts, pages.Fact{Name: "image block", Value: fmt.Sprint(c.Block)},
			pages.Fact{Name: "text layer", Value: fmt.Sprint(c.Layer)})
	}
	bars := func(list []Contribution, name func(Contribution) string) (out []pages.Bar) {
		for _, x := range list {
			out = append(out, pages.Bar{Name: name(x), Mean: x.Mean, Spread: x.Spread})
		}
		return out
	}
	p.Tokens = bars(c.Tokens, func(x Contribution) string { return x.Name })
	p.Regions = bars(c.Regions, func(x Contribution) string { return x.Name })
	p.Places = bars(c.Places, func(x Contribution) string { return x.Name })
	var common []Contribution
	for _, w := range c.Words {
		if w.Pairs >= min(leastTexts, c.Pairs) {
			common = append(common, w)
		}
	}
	if len(common) > mostBars {
		p.Notes = append(p.Notes, fmt.Sprintf("The %d words with the largest shares are drawn, of %d that stand in %d "+
			"texts or more.", mostBars, len(common), leastTexts))
		common = common[:mostBars]
	}
	p.Words = bars(common, func(x Contribution) string { return fmt.Sprintf("%s (%d)", x.Name, x.Pairs) })
	var b bytes.Buffer
	if err := pages.WriteContributions(&b, p); err != nil {
		return err
	}
	c.Files = []string{ContributionsPage}
	if err := files.Replace(filepath.Join(c.Folder, ContributionsPage), b.Bytes()); err != nil {
		return fmt.Errorf("%w: choose another folder with --out", err)
	}
	return nil
}
