package config

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/advicetest"
)

// advised is how many advices TestAdviceOfProblems follows: the campaign of docs/reliability.md follows 20,000.
var advised = flag.Int("advised", 800, "advices of problems that TestAdviceOfProblems follows")

// TestAdviceOfProblems: what a problem of a configuration tells to do makes that problem go, or the next one is another. The
// configurations are the shipped ones with one to three keys changed at random.
func TestAdviceOfProblems(t *testing.T) {
	files, err := filepath.Glob("../configs/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	files = append(files, "", "")
	r := rand.New(rand.NewPCG(11, 46))
	w := newAdviceWorld(t)
	followed, distinct, silent, failed := 0, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for followed < *advised {
		file, sets := files[r.IntN(len(files))], w.settings(r)
		c, err := Load(file, sets)
		if err == nil {
			continue
		}
		for _, e := range err.(Errors) {
			list := advicetest.OfProblem(present{w, &c}, e.Path, e.Msg, e.Hint)
			if len(list) == 0 {
				silent[e.Path+": "+form(e)] = true
			}
			for _, a := range list {
				if followed++; !distinct[e.Path+form(e)+a.Text] {
					distinct[e.Path+form(e)+a.Text] = true
				}
				if !w.helps(file, sets, a, e) && !failed[form(e)+e.Path] {
					failed[form(e)+e.Path] = true
					t.Errorf("%s with %q: %v\n  the advice %q does not help: tried %q", file, sets, e, a.Text, a.Ways[:min(3, len(a.Ways))])
				}
			}
		}
	}
	t.Logf("%d advices followed, %d of them distinct by key and words; %d problems tell to do nothing that has a form", followed, len(distinct), len(silent))
	if testing.Verbose() {
		for _, s := range slices.Sorted(maps.Keys(silent)) {
			t.Log("no form: " + s)
		}
	}
}

var digits = regexp.MustCompile(`-?\d+(\.\d+)?(e[+-]?\d+)?`)

// form is a problem without its numbers and the name of the system.
func form(e *Error) string {
	return digits.ReplaceAllString(regexp.MustCompile(`model\.system "[^"]*"`).ReplaceAllString(e.Msg+"; "+e.Hint, "model.system"), "N")
}

// adviceWorld knows which values keys can have.
type adviceWorld struct {
	paths    []string
	defaults Config
	words    map[string][]string // of text keys, as --set has them
}

func newAdviceWorld(t *testing.T) *adviceWorld {
	w := &adviceWorld{paths: Paths(), defaults: Default(), words: map[string][]string{}}
	for _, p := range w.paths {
		v, _ := w.defaults.Get(p)
		if _, ok := v.(string); !ok {
			continue
		}
		for _, base := range []string{"../configs/scenes.toml", "../configs/gssf-scan.toml", "../configs/heads.toml"} {
			_, err := Load(base, []string{Override(p, "?")})
			if err == nil || w.words[p] != nil {
				continue
			}
			for _, e := range err.(Errors) {
				if _, list, ok := strings.Cut(e.Msg, "one of "); ok && e.Path == p {
					for word := range strings.SplitSeq(list, ", ") {
						w.words[p] = append(w.words[p], strconv.Quote(word))
					}
				}
			}
		}
	}
	w.words["model.head.topology"] = []string{`"sphere"`, `"euclid"`, `"Ob(2,8)"`, `"Ob(4,16)"`, `"Multi(2,8)"`, `"Multi(2,16)"`}
	if len(w.words) < 40 {
		t.Fatalf("words of %d keys alone", len(w.words))
	}
	return w
}

// settings changes one to three keys, to values that some run could have.
func (w *adviceWorld) settings(r *rand.Rand) (sets []string) {
	for n := 1 + r.IntN(3); n > 0; n-- {
		p := w.paths[r.IntN(len(w.paths))]
		v, _ := w.defaults.Get(p)
		any := func(list ...string) string { return list[r.IntN(len(list))] }
		var s string
		switch reflect.TypeOf(v).Kind() {
		case reflect.Int, reflect.Uint64:
			s = any("-1", "0", "1", "2", "3", "5", "7", "16", "100", "1000", "100000")
		case reflect.Float64:
			s = any("-1", "0", "0.1", "0.5", "1", "2", "100", "1e9", "nan", "1e-9")
		case reflect.Bool:
			s = any("true", "false")
		case reflect.String:
			s = any(slices.Concat(w.words[p], w.words[p], []string{`"x"`, `""`, `"none"`})...)
		default:
			s = any("[]", "[1]", "[1, 2]", `["a"]`, `[{kind = "gssf", weight = 1.0}]`, `[{kind = "cosine", weight = 0}]`, "[0.5]", `["x", "x"]`)
		}
		sets = append(sets, p+"="+s)
	}
	return sets
}

// helps says whether one of the ways of an advice makes the problem go.
func (w *adviceWorld) helps(file string, sets []string, a advicetest.Advice, e *Error) bool {
	for _, way := range a.Ways {
		changed := slices.Clone(sets)
		for _, set := range way {
			key, value, _ := strings.Cut(set, "=")
			changed = slices.DeleteFunc(changed, func(s string) bool { return strings.HasPrefix(s, key+"=") })
			if value == "" { // left out
				v, _ := w.defaults.Get(key)
				value = Show(v)
			}
			changed = append(changed, key+"="+value)
		}
		_, err := Load(file, changed)
		if err == nil {
			return true
		}
		if !slices.ContainsFunc(err.(Errors), func(now *Error) bool { return now.Path == e.Path && form(now) == form(e) }) {
			return true
		}
	}
	return false
}

// present is the keys of a configuration.
type present struct {
	*adviceWorld
	c *Config
}

// Value implements advicetest.Keys.
func (p present) Value(path string) (any, bool) { return p.c.Get(path) }

// Open implements advicetest.Keys.
func (p present) Open(path string) []string {
	v, _ := p.c.Get(path)
	switch v.(type) {
	case bool:
		return []string{fmt.Sprint(v != any(true))}
	case int, uint64:
		return []string{"1", "2", "3", "4", "8", "16", "64", "256", "4096", "65536", "0"}
	case float64:
		return []string{"1", "0.5", "0.1", "0.01", "0"}
	case []string:
		return []string{`["x.json"]`, `["a photo of a {}."]`, `["x.npy"]`, `["x"]`}
	case string:
		return append(slices.Clone(p.words[path]), `"x"`, `"x.json"`, `"x.npy"`, `"x.tsv"`)
	}
	return nil
}
