package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// checkJSON says in words of the format where JSON text does not fit the type t, such as
// that a counter is null or a text; encoding/json takes null for every number and names Go
// types for the rest. Names that t lacks are passed over.
func checkJSON(text []byte, t reflect.Type) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	return checkValue("the whole", v, t)
}

// ownJSON is what reads itself.
var ownJSON = reflect.TypeFor[json.Unmarshaler]()

// checkValue is checkJSON for a value of the name at.
func checkValue(at string, v any, t reflect.Type) error {
	if reflect.PointerTo(t).Implements(ownJSON) {
		return nil
	}
	wrong := func(want string) error { return fmt.Errorf("%s is %s, want %s", at, shownJSON(v), want) }
	below := func(name string) string {
		if at == "the whole" {
			return name
		}
		return at + "." + name
	}
	switch t.Kind() {
	case reflect.Pointer:
		if v == nil {
			return nil
		}
		return checkValue(at, v, t.Elem())
	case reflect.Struct:
		m, ok := v.(map[string]any)
		if !ok {
			return wrong("an object")
		}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			if value, ok := m[name]; ok && f.IsExported() {
				if err := checkValue(below(name), value, f.Type); err != nil {
					return err
				}
			}
		}
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok && v != nil {
			return wrong("an object")
		}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if err := checkValue(below(name), m[name], t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		list, ok := v.([]any)
		if !ok && v != nil {
			return wrong("a list")
		}
		for i, e := range list {
			if err := checkValue(fmt.Sprintf("%s[%d]", at, i), e, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			return wrong("true or false")
		}
	case reflect.String:
		if _, ok := v.(string); !ok {
			return wrong("a text")
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, ok := v.(json.Number)
		if _, err := strconv.ParseInt(string(n), 10, t.Bits()); !ok || err != nil {
			return wrong("a whole number")
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, ok := v.(json.Number)
		if _, err := strconv.ParseUint(string(n), 10, t.Bits()); !ok || err != nil {
			return wrong("a whole number, 0 or more")
		}
	case reflect.Float32, reflect.Float64:
		n, ok := v.(json.Number)
		if _, err := strconv.ParseFloat(string(n), t.Bits()); !ok || err != nil {
			return wrong("a number")
		}
	}
	return nil
}

// shownJSON is a value as an error shows it.
func shownJSON(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("the text %.40q", v)
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}
