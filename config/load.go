package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/geoalign/geoalign/internal/stricttoml"
	"github.com/geoalign/geoalign/internal/words"
)

// Load returns the defaults, overridden by the TOML file at path (none if path
// is empty), overridden by sets of the form "dotted.path=value", and checks the
// result. A path that no file has may be the name of a shipped configuration, such as "quickstart" (package configs).
// All problems are collected: on failure the error is an Errors. Sections of other modules are added (see Add).
func Load(path string, sets []string, added ...Added) (Config, error) {
	c, _, err := LoadNoted(path, sets, added...)
	return c, err
}

// LoadNoted is Load and also returns what a user should know of the file that is no
// problem, one line each: keys that have another name since.
func LoadNoted(path string, sets []string, added ...Added) (Config, []string, error) {
	if path == "" {
		return parse("", nil, sets, added)
	}
	name, text, err := readText(path)
	if err != nil {
		return Default(), nil, Errors{{Msg: err.Error(),
			Hint: "give a TOML file or one of the built-in configurations with --config: trainer configs lists them"}}
	}
	return parse(name, text, sets, added)
}

// Given returns the keys that the TOML file at path and its bases set, under the names that they have now; none of a
// file that cannot be read, which Load tells.
func Given(path string) map[string]bool {
	given := map[string]bool{}
	name, text, err := readText(path)
	if err != nil {
		return given
	}
	c := Default()
	l := newLoader(&c)
	l.file(name, text)
	for key := range l.where {
		given[key] = true
	}
	return given
}

// Parse is Load on the text of a file; name stands for it in messages, and the path of
// a base starts from its folder.
func Parse(name string, text []byte, sets []string, added ...Added) (Config, error) {
	c, _, err := parse(name, text, sets, added)
	return c, err
}

func parse(name string, text []byte, sets []string, added []Added) (Config, []string, error) {
	c, errs := add(added)
	if len(errs) > 0 {
		return c, nil, errs
	}
	l := newLoader(&c)
	l.file(name, text)
	if l.newer {
		return c, l.notices, l.errs.OrNil() // whose other keys nobody here can judge
	}
	l.upgrade(&c)
	l.overrides(sets)
	l.settle(&c)
	// A key that could not be read still holds its default; what the checks say
	// about it would only confuse.
	for _, e := range c.problems() {
		if !l.broken[e.Path] {
			e.Where = l.placeOf(e.Path)
			l.errs = append(l.errs, e)
		}
	}
	return c, l.notices, l.errs.OrNil()
}

// loader fills a Config through its fields and collects the problems.
type loader struct {
	config  *Config
	where   map[string]func() string // path -> place that set it
	broken  map[string]bool          // paths whose value could not be used
	errs    Errors
	notices []string
	stored  bool // the file is that of a run: unknown keys are passed over
	version int  // the earliest of the files
	older   bool // a file says that it is of an earlier version
	newer   bool // a file is of a later version
	unknown int  // keys of the file, or of the overrides

	name  string              // of the file that is read
	order map[string][]string // its keys, by table
	chain []string            // files that are read, each the base of the one before
	old   map[string]string   // keys that the file has set by an earlier name -> that name
}

func newLoader(c *Config) *loader {
	return &loader{config: c, where: map[string]func() string{}, broken: map[string]bool{},
		version: Version}
}

func (l *loader) fail(e *Error) {
	l.broken[e.Path] = true
	l.errs = append(l.errs, e)
}

func (l *loader) note(where, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if where != "" {
		text = where + ": " + text
	}
	l.notices = append(l.notices, text)
}

// placeOf is the place that set a key, empty if none did.
func (l *loader) placeOf(path string) string {
	if where := l.where[path]; where != nil {
		return where()
	}
	return ""
}

// at is a place in the file that is read; line 0 is the whole of it.
func (l *loader) at(line int) string { return at(l.name, line) }

func at(file string, line int) string {
	if line > 0 {
		return fmt.Sprintf("%s:%d", file, line)
	}
	return file
}

// mostRepeats is how many keys a file may have for each that there is: those of tables in lists are there several
// times.
const mostRepeats = 2

// file applies the text of a TOML file, after its base if it has one.
func (l *loader) file(name string, text []byte) {
	l.name = name
	if err := stricttoml.Check(string(text)); err != nil {
		l.fail(&Error{Msg: err.Error(), Where: l.at(err.Line)})
		return
	}
	var root map[string]toml.Primitive
	md, err := toml.Decode(string(text), &root)
	if err != nil {
		e := &Error{Msg: err.Error(), Where: l.name}
		var pe toml.ParseError
		if errors.As(err, &pe) {
			e.Msg = pe.Message
			e.Where = l.at(pe.Position.Line)
		}
		l.fail(e)
		return
	}
	// To find the line of one key the library looks through the whole text.
	if n, most := len(md.Keys()), mostRepeats*len(l.config.fields(everything)); n > most {
		l.fail(&Error{Msg: fmt.Sprintf("has %s, more than any configuration", words.Count(n, "key")),
			Hint: "is this the configuration of a run?", Where: l.name})
		return
	}
	if prim, ok := root["base"]; ok && !l.stored {
		if isMatrix(root, &md) {
			l.fail(&Error{Path: "base", Where: l.name,
				Msg:  "is a key of a matrix of runs, and this must be the configuration of one",
				Hint: "check a matrix with trainer ablate --config FILE --dry-run"})
			return
		}
		if !l.base(read(&md, prim), line(&md, prim)) {
			return
		}
		l.name = name
		delete(root, "base")
	}
	if prim, ok := root["version"]; !ok && len(root) > 0 {
		l.version = 1
	} else if ok {
		if !l.readVersion(read(&md, prim), line(&md, prim)) {
			return
		}
		delete(root, "version")
	}
	set := map[string]bool{}
	l.old, l.order = map[string]string{}, ordered(&md)
	l.table(&md, "", root, set)
	l.countUnknown(l.name)
	l.config.clearReplaced(set)
}

// table applies one table of the file, in the order of the file's keys.
func (l *loader) table(md *toml.MetaData, prefix string, table map[string]toml.Primitive, set map[string]bool) {
	for _, key := range l.order[strings.TrimSuffix(prefix, ".")] {
		prim, ok := table[key]
		if !ok {
			continue // base and version of the whole file
		}
		path, file := prefix+key, l.name
		value := read(md, prim)
		where := func() string { return at(file, line(md, prim)) }
		dst, known := l.config.at(path)
		if !known {
			if path, known = l.renamed(path, where, set); !known {
				continue
			}
			dst, _ = l.config.at(path)
		}
		if dst.section {
			var sub map[string]toml.Primitive
			if _, ok := value.(map[string]any); !ok || md.PrimitiveDecode(prim, &sub) != nil {
				l.fail(&Error{Path: path, Value: value, Where: where(),
					Msg: "must be a table", Hint: "write [" + path + "] and its keys below"})
				continue
			}
			l.table(md, path+".", sub, set)
			continue
		}
		if was, twice := l.old[path]; twice && set[path] {
			l.fail(&Error{Path: path, Value: value, Where: where(), Msg: "is set a second time, as " + was,
				Hint: "leave one of them out"})
			continue
		}
		if msg, hint := assign(dst.value, value); msg != "" {
			l.fail(&Error{Path: path, Value: value, Msg: msg, Hint: hint, Where: where()})
			continue
		}
		delete(l.broken, path)
		l.where[path] = where
		set[path] = true
	}
}

// ordered lists the keys of each table, by its path, in the order in which the file names them.
func ordered(md *toml.MetaData) map[string][]string {
	list, seen := map[string][]string{}, map[string]bool{}
	for _, k := range md.Keys() {
		for i, name := range k {
			table := strings.Join(k[:i], ".")
			if path := table + "." + name; !seen[path] {
				seen[path] = true
				list[table] = append(list[table], name)
			}
		}
	}
	return list
}

// read returns the plain value of a primitive.
func read(md *toml.MetaData, prim toml.Primitive) (value any) {
	_ = md.PrimitiveDecode(prim, &value) // an interface takes every value
	return value
}

// catcher takes any TOML value and fails, which makes the decoder tell where in
// the file the value stands; it offers no other way to learn that.
type catcher struct{}

// UnmarshalTOML fails.
func (catcher) UnmarshalTOML(any) error { return errors.New("caught") }

// line returns the line of a primitive, 0 if unknown.
func line(md *toml.MetaData, prim toml.Primitive) int {
	var pe toml.ParseError
	errors.As(md.PrimitiveDecode(prim, &catcher{}), &pe)
	return pe.Position.Line
}

// assign stores a TOML value in a field, or says what the field needs and how to
// write it.
func assign(dst reflect.Value, v any) (msg, hint string) {
	switch dst.Kind() {
	case reflect.Int:
		n, ok := v.(int64)
		if !ok {
			return notInteger(dst, v)
		}
		if dst.OverflowInt(n) {
			return "is too large", ""
		}
		dst.SetInt(n)
	case reflect.Uint64:
		n, ok := v.(int64)
		if !ok {
			return notInteger(dst, v)
		}
		if n < 0 {
			return "must be >= 0", ""
		}
		dst.SetUint(uint64(n))
	case reflect.Float64:
		switch n := v.(type) {
		case float64:
			dst.SetFloat(n)
		case int64:
			dst.SetFloat(float64(n))
		default:
			return "must be a number", quotesHint(dst, v)
		}
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return "must be true or false", quotesHint(dst, v)
		}
		dst.SetBool(b)
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			return "must be a string", "write it in quotes"
		}
		dst.SetString(s)
	case reflect.Slice:
		return assignList(dst, v)
	case reflect.Struct:
		return assignTable(dst, v)
	default:
		panic("config: field of kind " + dst.Kind().String() + " has no TOML form")
	}
	return "", ""
}

// assignList stores a list of strings, of numbers or of tables.
func assignList(dst reflect.Value, v any) (msg, hint string) {
	what, example := "strings", `write ["a", "b"]`
	switch dst.Type().Elem().Kind() {
	case reflect.Int:
		what, example = "integers", "write [16, 256]"
	case reflect.Float64:
		what, example = "numbers", "write [0.5, 0.5, 0.5]"
	case reflect.Struct:
		what, example = "tables", `write [{kind = "cosine", weight = 1}]`
	}
	list, ok := v.([]any)
	if tables, isTables := v.([]map[string]any); isTables { // [[...]] in the file
		ok = true
		for _, t := range tables {
			list = append(list, t)
		}
	}
	if !ok {
		return "must be a list of " + what, example
	}
	if len(list) == 0 {
		dst.SetZero() // nil, so that empty lists compare equal
		return "", ""
	}
	out := reflect.MakeSlice(dst.Type(), len(list), len(list))
	for i, item := range list {
		switch msg, _ := assign(out.Index(i), item); {
		case msg == "":
		case dst.Type().Elem().Kind() == reflect.Struct:
			return fmt.Sprintf("item %d %s", i+1, msg), example
		default:
			return fmt.Sprintf("must be a list of %s, item %d is not one", what, i+1), example
		}
	}
	dst.Set(out)
	return "", ""
}

// assignTable stores a table that is an item of a list.
func assignTable(dst reflect.Value, v any) (msg, hint string) {
	table, ok := v.(map[string]any)
	if !ok {
		return "must be a table", ""
	}
	known := map[string]reflect.Value{}
	var names []string
	for i := range dst.NumField() {
		name := dst.Type().Field(i).Tag.Get("toml")
		known[name], names = dst.Field(i), append(names, name)
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		field, ok := known[key]
		if !ok {
			return fmt.Sprintf("has the unknown key %s: the keys are %s", key, strings.Join(names, " and ")), ""
		}
		if msg, hint := assign(field, table[key]); msg != "" {
			return key + " " + msg, hint
		}
	}
	return "", ""
}

// quotesHint says of a text that it does without its quotes, where that is so.
func quotesHint(dst reflect.Value, v any) string {
	s, ok := v.(string)
	if ok && s == "" {
		return "give it a value"
	}
	if bare, valid := tomlValue(s); ok && valid {
		if msg, _ := assign(reflect.New(dst.Type()).Elem(), bare); msg == "" {
			return "leave out the quotes"
		}
	}
	return ""
}

// notInteger says of a value that is none what is wrong with it. The usual ways to miss an integer are quotes, and a
// float such as 1e6 that happens to be whole; an override may have more digits than any.
func notInteger(dst reflect.Value, v any) (msg, hint string) {
	if s, ok := v.(string); ok {
		if nearest, err := strconv.ParseInt(s, 0, 64); errors.Is(err, strconv.ErrRange) {
			return "is beyond the integers of 64 bits", fmt.Sprintf("the nearest is %d", nearest)
		}
	}
	if f, ok := v.(float64); ok && f == float64(int64(f)) {
		return "must be an integer", fmt.Sprintf("write %d", int64(f))
	}
	return "must be an integer", quotesHint(dst, v)
}
