package ablation

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
)

// head is a valid beginning of a matrix file.
const head = "base = \"a.toml\"\nmetrics = [\"loss\"]\n"

func parse(t *testing.T, text string) *Matrix {
	t.Helper()
	return check.Get(Parse("m.toml", []byte(text)))(t)
}

func TestParseErrors(t *testing.T) {
	run := "[[run]]\nname = \"a\"\n"
	for text, want := range map[string][]string{
		"base = [": {"m.toml:1: "},
		head + strings.Repeat("a.", 100000) + "a = 1":          {"m.toml:3: tables and lists lie in each other here, more than 32 deep"},
		"[run]\nname = \"a\"\n":                                {"m.toml: run: is a table, as in the configuration of one run: this must be a matrix of runs; write a matrix with base"},
		head + "seeds = [1.5]\n" + run:                         {"m.toml", "seeds"},
		head + "metricks = []\n" + run:                         {"m.toml:3: metricks: unknown key; did you mean metrics?"},
		head + "[[run]]\nnmae = \"a\"\n":                       {"m.toml:4: run.nmae: unknown key; did you mean name?"},
		head + "[[sweep]]\nkee = \"a\"\n":                      {"m.toml:4: sweep.kee: unknown key; did you mean key?"},
		head + "zzzzzzzz = 1\n" + run:                          {"the keys here are title, base"},
		"metrics = [\"loss\"]\n" + run:                         {"m.toml: base: must name a configuration"},
		head:                                                   {"run: there is nothing to run"},
		head + "[[run]]\n":                                     {"run[1].name: every run needs a name"},
		head + run + "[[run]]\nname = \"A\"\n":                 {`run[2].name: two runs have this name (got "A")`},
		head + "[[run]]\nname = \"a/b\"\n":                     {`run[1].name: must be the name of a folder (got "a/b")`},
		head + "[[run]]\nname = \"..\"\n":                      {"must be the name of a folder"},
		head + run + "start = \"b\"\n":                         {`run[1].start: run "a" starts from a run that is not there (got "b")`},
		head + run + "start = \"a\"\n":                         {"run[1].start: the starts go in a circle: a <- a"},
		head + run + "hidden = true\n":                         {"run: every run is hidden"},
		head + "seeds = [1, 1]\n" + run:                        {"seeds: must be different numbers >= 0 (got 1)"},
		head + "seeds = [-1]\n" + run:                          {"seeds: must be different numbers >= 0 (got -1)"},
		head + "baseline = \"b\"\n" + run:                      {`baseline: is not a run of the table (got "b")`},
		head + "better = {loss = \"up\"}\n" + run:              {"better.loss: must be one of higher, lower, none"},
		head + "better = {lr = \"higher\"}\n" + run:            {"better.lr: is not one of metrics"},
		"base = \"a\"\n" + run:                                 {"metrics: must name at least one"},
		"base = \"a\"\nmetrics = [\"loss\", \"loss\"]\n" + run: {"metrics: is there twice"},
		"base = \"a\"\nmetrics = [\"eval/retrieval/i2t_r2\"]\n" + run: {
			`metrics: unknown metric (got "eval/retrieval/i2t_r2"); did you mean eval/retrieval/i2t_r1?`},
		"base = \"a\"\nmetrics = [\"eval/retrieval/frist/i2t_r10\"]\n" + run:    {"did you mean eval/retrieval/first/i2t_r10?"},
		"base = \"a\"\nmetrics = [\"eval/retrieval/first/loss\"]\n" + run:       {"unknown metric"},
		"base = \"a\"\nmetrics = [\"rsum\"]\n" + run:                            {"unknown metric"},
		head + "[[sweep]]\nvalues = [1]\n":                                      {"sweep[1].key: must name a key"},
		head + "[[sweep]]\nkey = \"a.b\"\n":                                     {"sweep[1].values: every axis needs a key and at least one value"},
		head + "[[sweep]]\nkey = \"a.b\"\nvalues = [1979-05-27]\n":              {"sweep[1].values: must be numbers"},
		head + "[[sweep]]\nkey = \"a\"\nvalues = [1]\naxes = [{key = \"b\"}]\n": {"sweep[1].axes: must not stand beside key"},
		head + "[[sweep]]\nkey = \"a.b\"\nvalues = [1, 1]\n":                    {"two runs have this name"},
		head + run + "start = \"b\"\n[[run]]\nname = \"b\"\nstart = \"a\"\n":    {"run[1].start: the starts go in a circle: a <- b <- a", "run[2].start"},
		head + run + "start = \"c\"\n[[run]]\nname = \"c\"\nstart = \"c\"\n":    {"run[2].start: the starts go in a circle"},
		head + run + "start = \"cosin\"\n[[run]]\nname = \"cosine\"\n":          {`did you mean "cosine"?`},
		head + "[[sweep]]\naxes = [{key = \"a\", values = [" + strings.Repeat("1,",
			40) + "]}, {key = \"b\", values = [" + strings.Repeat("1,", 40) + "]}]\n": {
			"sweep[1].axes: must not make more than 1000 runs (got 1600)"},
	} {
		_, err := Parse("m.toml", []byte(text))
		var errs config.Errors
		if !errors.As(err, &errs) {
			t.Errorf("%q: got %v, want config.Errors", text, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q:\ngot  %v\nwant %s", text, err, w)
			}
		}
	}
}

func TestSweeps(t *testing.T) {
	m := parse(t, head+`
[[sweep]]
key = "queue.size"
values = [128, 256]
start = "warm"
set = ["optimizer.lr=1"]

[[sweep]]
name = "geo"
group = "grid"
axes = [{key = "a.layers", values = [[256], [16, 256]]}, {key = "b.init", values = ["x/y", true, 0.5]}]

[[run]]
name = "warm"
`)
	var got [][]string
	for _, r := range m.Runs {
		got = append(got, append([]string{r.Name, r.Group, r.Start}, r.Set...))
	}
	want := [][]string{
		{"warm", "", ""},
		{"size=128", "size", "warm", "optimizer.lr=1", "queue.size=128"},
		{"size=256", "size", "warm", "optimizer.lr=1", "queue.size=256"},
		{"geo layers=256,init=x-y", "grid", "", "a.layers=[256]", `b.init="x/y"`},
		{"geo layers=256,init=true", "grid", "", "a.layers=[256]", "b.init=true"},
		{"geo layers=256,init=0.5", "grid", "", "a.layers=[256]", "b.init=0.5"},
		{"geo layers=16-256,init=x-y", "grid", "", "a.layers=[16, 256]", `b.init="x/y"`},
		{"geo layers=16-256,init=true", "grid", "", "a.layers=[16, 256]", "b.init=true"},
		{"geo layers=16-256,init=0.5", "grid", "", "a.layers=[16, 256]", "b.init=0.5"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Starts come before what goes on from them, the seeds one after another.
func TestPlan(t *testing.T) {
	m := parse(t, head+`seeds = [4, 2]
[[run]]
name = "c"
start = "b"
[[run]]
name = "b"
start = "a"
[[run]]
name = "a"
[[run]]
name = "alone"
`)
	for _, c := range []struct {
		only []string
		want string
	}{
		{nil, "a4 b4 c4 alone4 a2 b2 c2 alone2"},
		{[]string{"b"}, "a4 b4 a2 b2"},
		{[]string{"al*", "a"}, "a4 alone4 a2 alone2"},
	} {
		jobs := check.Get(m.Plan(c.only))(t)
		var got []string
		for _, j := range jobs {
			got = append(got, j.Run.Name+string(rune('0'+j.Seed)))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v: got %s, want %s", c.only, s, c.want)
		}
	}
	for _, g := range []string{"x*", "["} {
		check.Fails(m.Plan([]string{g}))(t, g)
	}
}

func TestDirections(t *testing.T) {
	m := parse(t, `base = "a"
metrics = ["eval/retrieval/rsum", "eval/retrieval/first/i2t_mean_rank", "eval/retrieval/rerank/i2t_r1", "eval/retrieval/i2t_mean_rank", "loss/itc", "seconds", "graph/image/entropy", "lr", "itm_accuracy"]
better = {lr = "lower"}
[[run]]
name = "a"
`)
	list, err := m.Columns()
	if err != nil {
		t.Fatal(err)
	}
	want := []Column{{"eval/retrieval/rsum", "rsum", "higher"},
		{"eval/retrieval/first/i2t_mean_rank", "i2t_mean_rank (pair score)", "lower"},
		{"eval/retrieval/rerank/i2t_r1", "i2t_r1 (re-ranked)", "higher"}, {"eval/retrieval/i2t_mean_rank", "i2t_mean_rank", "lower"},
		{"loss/itc", "loss/itc", "lower"}, {"seconds", "seconds", "lower"}, {"graph/image/entropy", "graph/image/entropy", "none"}, {"lr", "lr", "lower"}, {"itm_accuracy", "itm_accuracy", "higher"}}
	if !slices.Equal(list, want) {
		t.Errorf("got %v", list)
	}
}

// The example of the documentation is a matrix file.
func TestDocumentedExample(t *testing.T) {
	page := check.Get(os.ReadFile("../../docs/ablate.md"))(t)
	_, rest, _ := strings.Cut(string(page), "```toml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no example")
	}
	if m := parse(t, text); len(m.Runs) != 3+2+4 || m.Runs[8].Name != "layers=16-256,neighbours=8" {
		t.Errorf("%+v", m.Runs)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(head + "[[run]]\nname = \"a\"\n[[sweep]]\nkey = \"x\"\nvalues = [[1, 2], \"s\"]\nstart = \"a\"\n")
	f.Add(head + "[[run]]\nname = \"a\"\nstart = \"b\"\n[[run]]\nname = \"b\"\nstart = \"a\"\n")
	f.Add("base = 3")
	f.Fuzz(func(t *testing.T, text string) {
		defer budgettest.Within(t, len(text))()
		m, err := Parse("m.toml", []byte(text))
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		jobs, err := m.Plan(nil)
		if err != nil || len(jobs) != len(m.Runs)*len(m.Seeds) {
			t.Errorf("%d jobs of %d runs and %d seeds: %v", len(jobs), len(m.Runs), len(m.Seeds), err)
		}
	})
}

// TestManyUnknownNames: of a file that is not a matrix few names are told, and what they are like is not looked for of
// all.
func TestManyUnknownNames(t *testing.T) {
	var keys, starts strings.Builder
	starts.WriteString("base = \"a.toml\"\n")
	for i := range 20_000 {
		fmt.Fprintf(&keys, "key%d = 1\n", i)
		if i < mostRuns {
			fmt.Fprintf(&starts, "[[run]]\nname = \"run%d\"\nstart = \"no%d\"\n", i, i)
		}
	}
	for name, text := range map[string]string{"keys": keys.String(), "starts": starts.String()} {
		done := budgettest.Within(t, len(text))
		_, err := Parse("x.toml", []byte(text))
		done()
		if err == nil || name == "keys" && strings.Count(err.Error(), "\n") != mostUnknown ||
			strings.Count(err.Error(), "did you mean") > mostUnknown {
			t.Errorf("%s: %.2000v", name, err)
		}
	}
	over := starts.String() + "[[run]]\nname = \"one more\"\n"
	if _, err := Parse("x.toml", []byte(over)); err == nil ||
		!strings.Contains(err.Error(), "run: must be at most 1000, those of sweeps included (got 1001)") {
		t.Errorf("%.500v", err)
	}
}
