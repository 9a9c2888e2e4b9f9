package gallery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/strictjson"
)

// Filter chooses rows by what a gallery says of them: the keys of an Item and of its payload. It is JSON:
//
//	{"split": "test"}                            equal: texts, numbers, true, false and null
//	{"split": {"in": ["test", "val"]}}           one of these
//	{"year": {"gte": 2019, "lt": 2024}}          a range of numbers or texts: gt, gte, lt, lte
//	{"url": {"exists": true}}                    the row has the key, whatever it holds
//	{"caption": {"contains": "dog"}}             a part of a text, in capital letters or not
//	{"and": [A, B]}, {"or": [A, B]}, {"not": A}  filters of filters
//
// Several keys, or conditions of one key, hold together. A key with dots is one of an object within the payload. Of a
// list one element must be as asked. A row that lacks a key is not chosen by a condition on it, but by its negation.
type Filter struct {
	key  string   // the filter in one spelling
	keys []string // of fields that it looks at
	test condition
}

// condition says whether a row is chosen, by its fields.
type condition func(fields map[string]any) bool

// Bounds of a filter, which a stranger may send.
const (
	maxFilter = 64 << 10 // bytes
	maxDepth  = 32       // filters within filters
	maxKeys   = 64       // of which the values of all rows are read
)

// ParseFilter reads a filter. The error says what is wrong with which key.
func ParseFilter(b []byte) (*Filter, error) {
	if len(b) > maxFilter {
		return nil, fmt.Errorf("filter: it has %d bytes: give at most %d", len(b), maxFilter)
	}
	if !json.Valid(b) {
		return nil, fmt.Errorf("filter: it is not JSON: write one as {\"split\": \"test\"}")
	}
	if err := strictjson.Check(b); err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	test, err := filterOf(v, 0)
	if err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	key, err := json.Marshal(v) // with sorted keys
	keys := map[string]bool{}
	if keysOf(v, keys); len(keys) > maxKeys {
		return nil, fmt.Errorf("filter: it has %d keys: give at most %d", len(keys), maxKeys)
	}
	return &Filter{string(key), slices.Sorted(maps.Keys(keys)), test}, err
}

// keysOf adds the keys of fields that a filter may look at.
func keysOf(v any, keys map[string]bool) {
	switch v := v.(type) {
	case []any: // of and, or
		for _, f := range v {
			keysOf(f, keys)
		}
	case map[string]any:
		for key, x := range v {
			if key == "and" || key == "or" || key == "not" {
				keysOf(x, keys)
				continue
			}
			keys[key] = true
			for i := range key {
				if key[i] == '.' {
					keys[key[:i]] = true
				}
			}
		}
	}
}

// Match says whether a row is chosen.
func (f *Filter) Match(fields map[string]any) bool { return f.test(fields) }

// filterOf reads a filter within depth others.
func filterOf(v any, depth int) (condition, error) {
	object, ok := v.(map[string]any)
	switch {
	case !ok || len(object) == 0:
		return nil, fmt.Errorf("want an object with a key at least, as {\"split\": \"test\"} (got %.40s)", shown(v))
	case depth > maxDepth:
		return nil, fmt.Errorf("filters are nested more than %d deep", maxDepth)
	}
	var list []condition
	for _, key := range slices.Sorted(maps.Keys(object)) {
		one, err := keyOf(key, object[key], depth)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return every(list), nil
}

// keyOf reads the value of a key.
func keyOf(key string, v any, depth int) (condition, error) {
	switch key {
	case "and", "or":
		parts, ok := v.([]any)
		if !ok || len(parts) == 0 {
			return nil, fmt.Errorf("%s wants a list of filters (got %.40s)", key, shown(v))
		}
		var list []condition
		for _, p := range parts {
			one, err := filterOf(p, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, one)
		}
		if key == "and" {
			return every(list), nil
		}
		return func(f map[string]any) bool {
			return slices.ContainsFunc(list, func(c condition) bool { return c(f) })
		}, nil
	case "not":
		one, err := filterOf(v, depth+1)
		return func(f map[string]any) bool { return !one(f) }, err
	}
	switch v := v.(type) {
	case map[string]any:
		return conditionsOf(key, v)
	case []any:
		return nil, fmt.Errorf("%q is a list: write {%q: {\"in\": [...]}}", key, key)
	default:
		return onField(key, func(x any) bool { return x == v }), nil
	}
}

// conditionsOf reads the conditions of a key, all of which hold.
func conditionsOf(key string, object map[string]any) (condition, error) {
	var list []condition
	if len(object) == 0 {
		return nil, fmt.Errorf("%q has no condition: use in, gt, gte, lt, lte, exists or contains", key)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		v := object[name]
		bad := func(want string) error {
			return fmt.Errorf("%q of %q wants %s (got %.40s)", name, key, want, shown(v))
		}
		switch name {
		case "in":
			of, ok := v.([]any)
			if !ok || slices.ContainsFunc(of, func(x any) bool { return !plain(x) }) {
				return nil, bad("a list of texts, numbers, true, false or null")
			}
			list = append(list, onField(key, func(x any) bool { return plain(x) && slices.Contains(of, x) }))
		case "gt", "gte", "lt", "lte":
			switch v.(type) {
			case float64, string:
			default:
				return nil, bad("a number or a text")
			}
			list = append(list, onField(key, func(x any) bool { return within(name, x, v) }))
		case "exists":
			want, ok := v.(bool)
			if !ok {
				return nil, bad("true or false")
			}
			list = append(list, func(f map[string]any) bool { _, there := lookup(f, key); return there == want })
		case "contains":
			part, ok := v.(string)
			if !ok {
				return nil, bad("a text")
			}
			part = strings.ToLower(part)
			list = append(list, onField(key, func(x any) bool {
				text, ok := x.(string)
				return ok && strings.Contains(strings.ToLower(text), part)
			}))
		default:
			return nil, fmt.Errorf("%q of %q is not a condition: use in, gt, gte, lt, lte, exists or contains", name, key)
		}
	}
	return every(list), nil
}

// every holds where each of a list does.
func every(list []condition) condition {
	if len(list) == 1 {
		return list[0]
	}
	return func(f map[string]any) bool {
		return !slices.ContainsFunc(list, func(c condition) bool { return !c(f) })
	}
}

// onField tests what a row has under a key, or one of the elements of a list.
func onField(key string, test func(x any) bool) condition {
	return func(f map[string]any) bool {
		x, there := lookup(f, key)
		if list, ok := x.([]any); ok {
			return slices.ContainsFunc(list, func(x any) bool { return plain(x) && test(x) })
		}
		return there && plain(x) && test(x)
	}
}

// lookup finds a key, or where it has dots one of an object within.
func lookup(f map[string]any, key string) (any, bool) {
	if x, there := f[key]; there {
		return x, true
	}
	for i := range key {
		if key[i] != '.' {
			continue
		}
		if below, ok := f[key[:i]].(map[string]any); ok {
			if x, there := lookup(below, key[i+1:]); there {
				return x, true
			}
		}
	}
	return nil, false
}

// plain says whether a value is no list and no object.
func plain(x any) bool {
	switch x.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

// within compares x with a bound of its own kind.
func within(name string, x, bound any) bool {
	order := 0
	switch b := bound.(type) {
	case float64:
		v, ok := x.(float64)
		if !ok {
			return false
		}
		order = compare(v, b)
	case string:
		v, ok := x.(string)
		if !ok {
			return false
		}
		order = strings.Compare(v, b)
	}
	switch name {
	case "gt":
		return order > 0
	case "gte":
		return order >= 0
	case "lt":
		return order < 0
	}
	return order <= 0
}

func compare(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// shown is a value in a message.
func shown(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
