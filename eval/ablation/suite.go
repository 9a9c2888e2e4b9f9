package ablation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/stricttoml"
)

// Suite is the content of a suite file: matrices of runs, and what each is to tell.
type Suite struct {
	Title    string        `toml:"title"`
	Features []Feature     `toml:"features"` // made before the matrices, where they are not there yet
	Matrices []SuiteMatrix `toml:"matrix"`
}

// Feature is a file of features that a frozen encoder makes. Paths are relative to data.root of the runs.
type Feature struct {
	Out    string `toml:"out"`
	Model  string `toml:"model"`  // weights, or a name of the hub
	Images string `toml:"images"` // folder or list of paths; or
	Texts  string `toml:"texts"`  // a text per line
}

// SuiteMatrix is a matrix file with the claims that its runs test.
type SuiteMatrix struct {
	File   string  `toml:"file"`  // relative to the suite file
	Where  string  `toml:"where"` // encoders and data, for people
	Claims []Claim `toml:"claim"`
}

// Claim says that a run is better than another one.
type Claim struct {
	Idea     string   `toml:"idea" json:"idea"`
	Paper    string   `toml:"paper" json:"paper,omitempty"` // with the number of its table or figure
	Run      string   `toml:"run" json:"run"`               // of the matrix
	Baseline string   `toml:"baseline" json:"baseline"`     // empty: that of the matrix
	Metric   string   `toml:"metric" json:"metric"`         // empty: the first of the matrix
	At       *float64 `toml:"at" json:"at,omitempty"`       // value of across of the matrix
	More     string   `toml:"more" json:"more,omitempty"`   // page of the docs
}

// ParseSuite reads the text of a suite file; name stands for it in messages.
func ParseSuite(name string, text []byte) (*Suite, error) {
	if err := stricttoml.Check(string(text)); err != nil {
		return nil, config.Errors{{Msg: err.Error(), Where: fmt.Sprintf("%s:%d", name, err.Line)}}
	}
	s := &Suite{}
	md, err := toml.Decode(string(text), s)
	if err != nil {
		e := &config.Error{Msg: strings.TrimPrefix(err.Error(), "toml: "), Where: name}
		var pe toml.ParseError
		if errors.As(err, &pe) {
			e.Msg, e.Where = pe.Message, fmt.Sprintf("%s:%d", name, pe.Position.Line)
		}
		return nil, config.Errors{e}
	}
	var errs config.Errors
	fail := func(path string, value any, msg, hint string) {
		errs = append(errs, &config.Error{Path: path, Value: value, Msg: msg, Hint: hint, Where: name})
	}
	for i, k := range md.Undecoded() {
		if i < mostUnknown {
			fail(k.String(), nil, "unknown key", "docs/ablate.md lists the keys of a suite")
		}
	}
	if len(s.Matrices) == 0 {
		fail("matrix", nil, "there is nothing to run", "add [[matrix]] with a file and [[matrix.claim]]")
	}
	for i, f := range s.Features {
		path := fmt.Sprintf("features[%d]", i+1)
		if f.Out == "" || f.Model == "" {
			fail(path, nil, "needs out, the file to write, and model", "")
		}
		if (f.Images == "") == (f.Texts == "") {
			fail(path, nil, "needs images or texts, one of both", "")
		}
	}
	for i, m := range s.Matrices {
		path := fmt.Sprintf("matrix[%d]", i+1)
		if m.File == "" {
			fail(path+".file", nil, "must name a matrix file", "")
		}
		if len(m.Claims) == 0 {
			fail(path+".claim", nil, "the matrix is to tell something", "add [[matrix.claim]] with idea and run")
		}
	}
	return s, errs.OrNil()
}

// Claimed returns the claims with their baseline and metric. The error names runs that the matrix does not have.
func (m *Matrix) Claimed(name string, claims []Claim) ([]Claim, error) {
	var errs config.Errors
	list := slices.Clone(claims)
	for i := range list {
		c := &list[i]
		fail := func(key string, value any, msg, hint string) {
			errs = append(errs, &config.Error{Path: fmt.Sprintf("claim[%d].%s", i+1, key), Value: value, Msg: msg,
				Hint: hint, Where: name})
		}
		if c.Idea == "" {
			fail("idea", nil, "must say what is compared", "")
		}
		if c.Baseline == "" {
			c.Baseline = m.Baseline
		}
		if c.Metric == "" {
			c.Metric = m.Metrics[0]
		}
		if !slices.Contains(m.Metrics, c.Metric) {
			fail("metric", c.Metric, "is not one of the matrix", "its metrics are "+strings.Join(m.Metrics, ", "))
		}
		for _, x := range []struct{ key, run string }{{"run", c.Run}, {"baseline", c.Baseline}} {
			if !slices.ContainsFunc(m.Runs, func(r Run) bool { return r.named(x.run) && sameAt(r.At, c.At) }) {
				fail(x.key, x.run, "is not a run of the matrix at this value of across", m.nearestRun(x.run))
			}
		}
	}
	return list, errs.OrNil()
}

// sameAt compares two values of across, nil for none.
func sameAt(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }
