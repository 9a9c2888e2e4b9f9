package ablation

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/stricttoml"
	"github.com/geoalign/geoalign/internal/words"
)

// Matrix is the content of a matrix file. Parse checks it and makes the sweeps runs.
type Matrix struct {
	Title string `toml:"title"` // heading of the table; empty: none
	// configuration that every run starts from, relative to the matrix file
	Base     string            `toml:"base"`
	Seeds    []int64           `toml:"seeds"`    // run.seed of the repetitions; empty: 1
	Set      []string          `toml:"set"`      // overrides of every run
	Metrics  []string          `toml:"metrics"`  // columns of the table
	Baseline string            `toml:"baseline"` // run that the others are compared with; empty: none
	Better   map[string]string `toml:"better"`   // metric -> higher, lower or none, where the default is wrong
	// holm: the p of differences to the baseline are corrected for their number; empty: not
	Correct string `toml:"correct"`
	// every run is made with each value: a table and a curve for each metric; empty: no such key
	Across Axis    `toml:"across"`
	Tune   Tune    `toml:"tune"` // how the settings of runs with trials are chosen
	Runs   []Run   `toml:"run"`  // after Parse with those of the sweeps
	Sweeps []Sweep `toml:"sweep"`
}

// Run is a configuration that is trained once with each seed.
type Run struct {
	Name   string   `toml:"name"`   // unique; the folder of its seeds
	Group  string   `toml:"group"`  // table that it stands in; empty: the first
	Start  string   `toml:"start"`  // run whose last checkpoint of the same seed it starts from; empty: none
	Set    []string `toml:"set"`    // overrides after those of the matrix
	Hidden bool     `toml:"hidden"` // not in the table: a shared start
	// overrides to choose from by Matrix.Tune, after those of the run; empty: it is not tuned
	Trials [][]string `toml:"trials"`

	Chosen int      `toml:"-"` // trial that Choose took, from 1; 0: none
	Method string   `toml:"-"` // name in the file of a run that was made with a value of Matrix.Across
	At     *float64 `toml:"-"` // that value; nil: no such run
}

// mostUnknown is how many unknown names are reported with what they are like.
const mostUnknown = 20

// Parse reads the text of a matrix file; name stands for it in messages. All problems
// are collected: on failure the error is a config.Errors.
func Parse(name string, text []byte) (*Matrix, error) {
	m := &Matrix{}
	if err := stricttoml.Check(string(text)); err != nil {
		return nil, config.Errors{{Msg: err.Error(), Where: fmt.Sprintf("%s:%d", name, err.Line)}}
	}
	md, err := toml.Decode(string(text), m)
	if err != nil {
		if oneRun(string(text)) {
			return nil, config.Errors{{Path: "run", Where: name,
				Msg:  "is a table, as in the configuration of one run: this must be a matrix of runs",
				Hint: "write a matrix with base, metrics and [[run]], or train with trainer train --config FILE"}}
		}
		e := &config.Error{Msg: strings.TrimPrefix(err.Error(), "toml: "), Where: name}
		var pe toml.ParseError
		if errors.As(err, &pe) {
			e.Msg, e.Where = pe.Message, fmt.Sprintf("%s:%d", name, pe.Position.Line)
		}
		return nil, config.Errors{e}
	}
	var errs config.Errors
	for i, k := range md.Undecoded() { // each of which is looked for in the text
		if i == mostUnknown {
			errs = append(errs, &config.Error{Msg: "and more keys that are unknown too",
				Hint: "is this a matrix of runs?", Where: name})
			break
		}
		errs = append(errs, unknown(name, string(text), k))
	}
	if errs != nil {
		return nil, errs
	}
	for i, s := range m.Sweeps {
		runs, err := s.expand()
		if err != nil {
			err.Path, err.Where = fmt.Sprintf("sweep[%d].%s", i+1, err.Path), name
			errs = append(errs, err)
		}
		if m.Runs = append(m.Runs, runs...); len(m.Runs) > mostRuns {
			break // problems says it
		}
	}
	if err := m.spread(); err != nil {
		err.Where = name
		errs = append(errs, err)
	}
	if len(m.Seeds) == 0 {
		m.Seeds = []int64{1}
	}
	for _, e := range m.problems() {
		e.Where = name
		errs = append(errs, e)
	}
	if errs != nil {
		return nil, errs
	}
	return m, nil
}

// oneRun says whether a text is the configuration of a run.
func oneRun(text string) bool {
	var root struct{ Run any }
	if _, err := toml.Decode(text, &root); err != nil {
		return false
	}
	_, table := root.Run.(map[string]any)
	return table
}

// keys of the tables of a matrix file.
var keys = map[string][]string{
	"":           {"title", "base", "seeds", "set", "metrics", "baseline", "better", "correct", "across", "tune", "run", "sweep"},
	"run":        {"name", "group", "start", "set", "hidden", "trials"},
	"sweep":      {"key", "values", "axes", "name", "group", "start", "set"},
	"sweep.axes": {"key", "values"},
	"across":     {"key", "values"},
	"tune":       {"seeds", "set", "metric"},
}

// unknown is the error of a key that a matrix file does not have.
func unknown(name, text string, k toml.Key) *config.Error {
	last := k[len(k)-1]
	e := &config.Error{Path: k.String(), Msg: "unknown key", Where: name}
	known := keys[strings.Join(k[:len(k)-1], ".")]
	if near := nearest(last, known); near != "" {
		e.Hint = "did you mean " + near + "?"
	} else {
		e.Hint = "the keys here are " + strings.Join(known, ", ")
	}
	find := regexp.MustCompile(`(?m)^[ \t\["]*(` + regexp.QuoteMeta(k.String()) + `|` + regexp.QuoteMeta(last) +
		`)\s*["\]=]`)
	if at := find.FindStringIndex(text); at != nil {
		e.Where = fmt.Sprintf("%s:%d", name, 1+strings.Count(text[:at[1]], "\n"))
	}
	return e
}

// problems checks everything but the configurations that the runs come to.
func (m *Matrix) problems() (errs config.Errors) {
	fail := func(path string, value any, msg, hint string) {
		errs = append(errs, &config.Error{Path: path, Value: value, Msg: msg, Hint: hint})
	}
	if m.Base == "" {
		fail("base", nil, "must name a configuration", `such as base = "../quickstart.toml", relative to this file`)
	}
	for i, s := range m.Seeds {
		if s < 0 || slices.Contains(m.Seeds[:i], s) {
			fail("seeds", s, "must be different numbers >= 0", "")
		}
	}
	if len(m.Runs) == 0 && len(m.Sweeps) == 0 {
		fail("run", nil, "there is nothing to run", "add [[run]] with a name, or [[sweep]] with a key and values")
	}
	if len(m.Runs) > mostRuns {
		fail("run", len(m.Runs), fmt.Sprintf("must be at most %d, those of sweeps included", mostRuns),
			"write several files")
		return errs
	}
	m.checkNames(fail)
	m.checkStarts(fail)
	m.checkTune(fail)
	if _, err := m.Columns(); err != nil {
		errs = append(errs, err...)
	}
	visible := func(r Run) bool { return !r.Hidden }
	if len(m.Runs) > 0 && !slices.ContainsFunc(m.Runs, visible) {
		fail("run", nil, "every run is hidden", "leave one in the table")
	}
	if m.Baseline != "" && !slices.ContainsFunc(m.Runs, func(r Run) bool { return r.named(m.Baseline) && visible(r) }) {
		fail("baseline", m.Baseline, "is not a run of the table", m.nearestRun(m.Baseline))
	}
	if m.Correct != "" && m.Correct != "holm" {
		fail("correct", m.Correct, `must be "holm" or left out`, "")
	}
	return errs
}

// longestName bounds the names of runs, which are names of folders.
const longestName = 120

func (m *Matrix) checkNames(fail func(path string, value any, msg, hint string)) {
	seen := map[string]bool{}
	for i, r := range m.Runs {
		path := fmt.Sprintf("run[%d].name", i+1)
		folded := strings.ToLower(r.Name)
		switch {
		case r.Name == "":
			fail(path, nil, "every run needs a name", "")
		case strings.ContainsAny(r.Name, `/\:`) || strings.ContainsFunc(r.Name, func(c rune) bool { return c < ' ' }) ||
			strings.HasPrefix(r.Name, ".") || strings.TrimSpace(r.Name) != r.Name || len(r.Name) > longestName:
			fail(path, r.Name, "must be the name of a folder",
				fmt.Sprintf("no / \\ : in it, no dot or space around it, at most %d bytes", longestName))
		case seen[folded]:
			fail(path, r.Name, "two runs have this name", "upper and lower case count as the same")
		}
		seen[folded] = true
	}
}

// checkStarts requires that every start is a run and that none starts from itself.
func (m *Matrix) checkStarts(fail func(path string, value any, msg, hint string)) {
	runs := make(map[string]*Run, len(m.Runs))
	for i := range m.Runs {
		if r := &m.Runs[i]; r.Name != "" && runs[r.Name] == nil {
			runs[r.Name] = r
		}
	}
	missing := 0
	for i, r := range m.Runs {
		path := fmt.Sprintf("run[%d].start", i+1)
		if r.Start != "" && runs[r.Start] == nil {
			hint := ""
			if missing++; missing <= mostUnknown {
				hint = m.nearestRun(r.Start)
			}
			fail(path, r.Start, fmt.Sprintf("run %q starts from a run that is not there", r.Name), hint)
			continue
		}
		chain, seen := []string{r.Name}, map[string]bool{r.Name: true}
		for at := runs[r.Start]; at != nil; at = runs[at.Start] {
			chain = append(chain, at.Name)
			if at.Name == r.Name {
				fail(path, r.Start, "the starts go in a circle: "+words.Cut(strings.Join(chain, " <- "), 500),
					"let one of them start from nothing")
			}
			if seen[at.Name] {
				break
			}
			seen[at.Name] = true
		}
	}
}

// find returns a run by name, nil if there is none.
func (m *Matrix) find(name string) *Run {
	for i := range m.Runs {
		if name != "" && m.Runs[i].Name == name {
			return &m.Runs[i]
		}
	}
	return nil
}

func (m *Matrix) nearestRun(name string) string {
	var names []string
	for _, r := range m.Runs {
		names = append(names, r.Name)
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// nearest returns the known name with the fewest edits from name, nothing where none
// is close.
func nearest(name string, known []string) string {
	best, least := "", len(name)/2+1
	for _, k := range known {
		if d := words.Edits(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}
