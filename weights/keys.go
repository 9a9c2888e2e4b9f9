package weights

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// keys are the keys of a config.json that families name in several ways. The first that cannot be read is its error.
type keys struct {
	path string
	all  map[string]any
	err  error
}

// keys reads those of config.json; none without the file.
func (d *description) keys() *keys {
	k := &keys{path: d.path}
	_, k.err = readJSON(d.path, &k.all)
	return k
}

// keyOf returns the value of the first of some names that is there and not null.
func keyOf[T any](k *keys, want string, names ...string) (v T, ok bool) {
	for _, name := range names {
		x := k.all[name]
		if x == nil {
			continue
		}
		if v, ok = x.(T); !ok {
			k.err = errors.Join(k.err, fmt.Errorf("%s: %s is %.40s, want %s", k.path, name, kindOf(x), want))
		}
		return v, ok
	}
	return v, false
}

// kindOf says what a value of JSON is.
func kindOf(x any) string {
	switch x.(type) {
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("%#v", x)
}

// number is 0 where none of the names is there.
func (k *keys) number(names ...string) float64 {
	v, _ := keyOf[float64](k, "a number", names...)
	return v
}

// whole is number for a whole one that is not negative.
func (k *keys) whole(names ...string) int {
	v := k.number(names...)
	if v != math.Trunc(v) || v < 0 || v > math.MaxInt32 {
		k.err = errors.Join(k.err, fmt.Errorf("%s: %s is %g, want a whole number", k.path, strings.Join(names, " or "), v))
		return 0
	}
	return int(v)
}

// text is empty where none of the names is there.
func (k *keys) text(names ...string) string {
	v, _ := keyOf[string](k, "a text", names...)
	return v
}

// yes says whether a switch is on.
func (k *keys) yes(name string) bool {
	v, _ := keyOf[bool](k, "true or false", name)
	return v
}

// refuse is an error where a switch is on.
func (k *keys) refuse(name, why string) {
	if k.yes(name) {
		k.err = errors.Join(k.err, fmt.Errorf("%s has %s = true: %s", k.path, name, why))
	}
}

// below are the keys of an object, none where it is not there.
func (k *keys) below(names ...string) *keys {
	m, _ := keyOf[map[string]any](k, "an object", names...)
	return &keys{path: k.path + ": " + strings.Join(names[:1], ""), all: m}
}

// texts are those of a list.
func (k *keys) texts(name string) (list []string) {
	all, _ := keyOf[[]any](k, "a list", name)
	for _, x := range all {
		list = append(list, fmt.Sprint(x))
	}
	return list
}

// absolute refuses positions that are told in another way than by a table.
func (k *keys) absolute() {
	if kind := k.text("position_embedding_type"); kind != "" && kind != "absolute" {
		k.err = errors.Join(k.err, fmt.Errorf("%s has position_embedding_type %q, and absolute is read", k.path, kind))
	}
}
