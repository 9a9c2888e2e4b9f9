package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// Override returns "path=value" for a text, in the writing that gives it back whatever
// characters it has.
func Override(path, value string) string { return override(path, value) }

// Reset returns the override that gives the key at path its default; one without a key is a mistake of the program.
func Reset(path string) string {
	defaults := Default()
	v, ok := defaults.Get(path)
	if !ok {
		panic("config: there is no key " + path)
	}
	if x := reflect.ValueOf(v); x.Kind() == reflect.Slice && x.Len() == 0 {
		return path + "=[]"
	}
	return override(path, v)
}

// override writes a value as TOML.
func override(path string, value any) string {
	text, err := toml.Marshal(map[string]any{"v": value})
	if err != nil { // not of the values of keys
		panic(err)
	}
	return path + "=" + strings.TrimSpace(strings.TrimPrefix(string(text), "v = "))
}

// setPlace begins the place of what an override sets.
const setPlace = "--set "

// overrides applies "dotted.path=value" in order; the last one of a path wins.
func (l *loader) overrides(sets []string) {
	set := map[string]bool{}
	stored := l.stored
	l.stored = false // what a user writes is never passed over
	defer func() { l.stored = stored }()
	for _, s := range sets {
		path, text, ok := strings.Cut(s, "=")
		path, text = strings.TrimSpace(path), strings.TrimSpace(text)
		where := setPlace + s
		if strings.TrimSpace(s) == "" {
			where = setPlace + strconv.Quote(s)
		}
		if !ok || path == "" {
			e := &Error{Msg: "must have the form dotted.path=value", Hint: "for example --set train.batch_size=64",
				Where: where}
			switch _, known := l.config.at(path); {
			case path == "" && ok:
				e.Msg += ", and names no key"
			case known:
				e.Msg, e.Hint = e.Msg+", and gives no value", fmt.Sprintf("for example --set %s=VALUE", path)
			}
			l.fail(e)
			continue
		}
		dst, known := l.config.at(path)
		if !known {
			if path, known = l.renamed(path, func() string { return where }, nil); !known {
				continue
			}
			dst, _ = l.config.at(path)
		}
		if dst.section {
			l.fail(&Error{Path: path, Msg: "is a section and has no value of its own",
				Hint: "name one of its keys, such as " + l.firstKey(path), Where: where})
			continue
		}
		value := overrideValue(dst.value, text)
		if msg, hint := assign(dst.value, value); msg != "" {
			l.fail(&Error{Path: path, Value: value, Msg: msg, Hint: hint, Where: where})
			continue
		}
		delete(l.broken, path)
		l.where[path] = func() string { return where }
		set[path] = true
	}
	l.countUnknown(strings.TrimSpace(setPlace))
	l.config.clearReplaced(set)
}

// With returns c with overrides of the form "dotted.path=value". The result is not checked.
func (c Config) With(sets ...string) (Config, error) {
	c.own()
	l := newLoader(&c)
	l.overrides(sets)
	return c, l.errs.OrNil()
}

// firstKey returns the first key below a section.
func (l *loader) firstKey(section string) string {
	for _, p := range Paths() {
		if strings.HasPrefix(p, section+".") {
			return p
		}
	}
	return section
}

// overrideValue reads the value of an override for a field. It is a TOML value;
// what is not one is taken as a bare string, which shells make the common case.
// The field decides where both readings are possible: run.name=2024 is a string,
// data.captions.train_files=a.json,b.json a list of two.
func overrideValue(dst reflect.Value, text string) any {
	value, ok := tomlValue(text)
	switch dst.Kind() {
	case reflect.String:
		if s, isString := value.(string); ok && isString {
			return s
		}
		return text
	case reflect.Slice:
		if _, isList := value.([]any); ok && isList {
			return value
		}
		if s, isString := value.(string); ok && isString {
			return []any{s}
		}
		if _, isInt := value.(int64); ok && isInt && slices.Contains([]reflect.Kind{reflect.Int, reflect.Float64},
			dst.Type().Elem().Kind()) {
			return []any{value}
		}
		if dst.Type().Elem().Kind() == reflect.Struct {
			break
		}
		var list []any
		for item := range strings.SplitSeq(text, ",") {
			list = append(list, overrideValue(reflect.Zero(dst.Type().Elem()), strings.TrimSpace(item)))
		}
		return list
	case reflect.Float64:
		if f, err := strconv.ParseFloat(text, 64); !ok && err == nil {
			return f // .5 and 1. are numbers, but not to TOML
		}
	}
	if !ok {
		return text
	}
	return value
}

// tomlValue parses a single TOML value.
func tomlValue(text string) (any, bool) {
	var m map[string]any
	if strings.ContainsAny(text, "\n\r#") && !strings.ContainsAny(text, `"'`) {
		return nil, false
	}
	if _, err := toml.Decode("v = "+text, &m); err != nil || len(m) != 1 {
		return nil, false
	}
	v, ok := m["v"]
	return v, ok
}
