package section

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// Error is one problem of a configuration.
type Error struct {
	Path  string // dotted path of the key, or "" for a problem of the whole file
	Value any    // offending value; nil when there is none to show
	Msg   string // what is wrong
	Hint  string // what to do about it; may be empty
	Where string // place that set the value: file:line or the override; may be empty

	Training bool // the problem is one of training alone: what uses a checkpoint does not read the key
}

// longestPlace is how many bytes are shown of a place, an override as a rule.
const longestPlace = 1000

// Error prints the problem as "path: msg (got value)", with the place before it
// and the hint after it where there are any.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Where != "" {
		b.WriteString(words.Cut(e.Where, longestPlace) + ": ")
	}
	if e.Path != "" {
		b.WriteString(words.Shown(e.Path) + ": ")
	}
	b.WriteString(e.Msg)
	if e.Value != nil {
		b.WriteString(" (got " + show(e.Value) + ")")
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Errors is every problem of a configuration, in the order of the file's keys.
type Errors []*Error

// Error prints one problem per line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Using returns the problems that a use of a checkpoint has too, as an error, nil if there
// are none.
func (es Errors) Using() error {
	return slices.DeleteFunc(slices.Clone(es), func(e *Error) bool { return e.Training }).OrNil()
}

// Unwrap gives errors.As access to the single problems.
func (es Errors) Unwrap() []error {
	list := make([]error, len(es))
	for i, e := range es {
		list[i] = e
	}
	return list
}

// OrNil returns es as an error, nil when it is empty.
func (es Errors) OrNil() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

// listOf writes a list, items that are tables inline.
func listOf[T any](list []T) string {
	items := make([]string, len(list))
	for i, v := range list {
		switch v := any(v).(type) {
		case map[string]any:
			var pairs []string
			for _, key := range slices.Sorted(maps.Keys(v)) {
				pairs = append(pairs, key+" = "+show(v[key]))
			}
			items[i] = "{" + strings.Join(pairs, ", ") + "}"
		case fmt.Stringer:
			items[i] = v.String()
		default:
			items[i] = show(v)
		}
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// Show prints a value of a configuration for messages.
func Show(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case []string:
		return fmt.Sprintf("%q", v)
	case []any:
		return listOf(v)
	case map[string]any:
		return "a table"
	case []map[string]any:
		return "an array of tables"
	}
	if x := reflect.ValueOf(v); x.Kind() == reflect.Slice && x.Type().Elem().Kind() == reflect.Struct {
		list := make([]any, x.Len())
		for i := range list {
			list[i] = x.Index(i).Interface()
		}
		return listOf(list)
	}
	return fmt.Sprint(v)
}

// show is Show cut to a readable length.
func show(v any) string {
	const longest = 80
	s := Show(v)
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + "..."
	}
	return s
}
