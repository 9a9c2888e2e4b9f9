package section

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Condition is what must hold for something to read a key: any of some groups of terms, all of a group.
type Condition struct{ groups [][]term }

// term is a fact, or a comparison of a key.
type term struct {
	fact   Fact
	path   string
	op     string   // "=", "!=", ">", "~", or "" for a key that is set
	values []string // of "=" and "!=", any of them
}

// When parses the tag when of a key of the section at a path. A term is a fact, a comparison with values,
//
//	negatives=hardest      kind=scan|bfan      decoder!=transformer      weight>0      gradient~soft_entry
//
// where ~ is a text that has the value in it and a list is compared by its length, or a key alone, which holds where it
// is not zero. Keys without a dot are of the section. Terms are joined by " and ", and groups of them by " or ".
func When(text, at string) (c Condition, err error) {
	for group := range strings.SplitSeq(text, " or ") {
		var terms []term
		for part := range strings.SplitSeq(group, " and ") {
			t, ok := parseTerm(part, at)
			if !ok {
				return c, fmt.Errorf("the tag when names no fact and no key: %s", part)
			}
			terms = append(terms, t)
		}
		c.groups = append(c.groups, terms)
	}
	return c, nil
}

func parseTerm(text, at string) (t term, ok bool) {
	if f := Fact(text); f.Known() {
		return term{fact: f}, true
	}
	t.path = text
	for _, op := range []string{"!=", "=", ">", "~"} {
		if key, values, ok := strings.Cut(text, op); ok {
			t = term{path: key, op: op, values: strings.Split(values, "|")}
			break
		}
	}
	if !strings.Contains(t.path, ".") && t.path != "" {
		t.path = strings.TrimPrefix(at+"."+t.path, ".")
	}
	return t, t.path != "" && !strings.ContainsAny(t.path, " |<>=!~")
}

// Holds says whether the condition does in a configuration.
func (c Condition) Holds(v *View) bool {
	return slices.ContainsFunc(c.groups, func(terms []term) bool {
		return !slices.ContainsFunc(terms, func(t term) bool {
			if t.fact != "" {
				return !v.Has(t.fact)
			}
			return !t.holds(v.value(t.path))
		})
	})
}

func (t term) holds(v reflect.Value) bool {
	switch t.op {
	case "=", "!=":
		text := v.String()
		if v.Kind() != reflect.String {
			text = fmt.Sprint(v.Interface())
		}
		return slices.Contains(t.values, text) == (t.op == "=")
	case "~":
		return strings.Contains(v.String(), t.values[0])
	case ">":
		least, err := strconv.ParseFloat(t.values[0], 64)
		if err != nil {
			panic("section: the tag when compares with no number: " + t.values[0])
		}
		switch {
		case v.CanInt():
			return float64(v.Int()) > least
		case v.Kind() == reflect.Slice:
			return float64(v.Len()) > least
		}
		return v.Float() > least
	}
	if v.Kind() == reflect.Slice {
		return v.Len() > 0
	}
	return !v.IsZero()
}

// With says the condition in words that follow "read with".
func (c Condition) With() string {
	var groups []string
	for _, terms := range c.groups {
		var list []string
		for _, t := range terms {
			list = append(list, t.with())
		}
		groups = append(groups, strings.Join(list, " and "))
	}
	if n := len(groups); n > 2 {
		return strings.Join(groups[:n-1], ", ") + " or " + groups[n-1]
	}
	return strings.Join(groups, " or ")
}

func (t term) with() string {
	if t.fact != "" {
		return t.fact.With()
	}
	values := make([]string, len(t.values))
	for i, v := range t.values {
		if _, err := strconv.ParseFloat(v, 64); err != nil && v != "true" && v != "false" {
			v = strconv.Quote(v)
		}
		values[i] = v
	}
	any := strings.Join(values, ", ")
	if n := len(values); n > 1 {
		any = strings.Join(values[:n-1], ", ") + " or " + values[n-1]
	}
	switch t.op {
	case "=":
		return t.path + " = " + any
	case "!=":
		return "a " + t.path + " other than " + any
	case "~":
		return t.path + " with " + any
	case ">":
		return t.path + " > " + any
	}
	return t.path
}
