package strictjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
)

// read reads any JSON text as encoding/json does, numbers as their text.
func read(r *Reader) (v any, err error) {
	switch r.Peek() {
	case '{':
		m := map[string]any{}
		err = r.Object(func(key string) (err error) { m[key], err = read(r); return err })
		return m, err
	case '[':
		list := []any{}
		err = r.Array(func() error {
			x, err := read(r)
			list = append(list, x)
			return err
		})
		return list, err
	case '"':
		return r.String()
	case 't', 'f', 'n':
		text, err := r.Value()
		return map[string]any{"true": true, "false": false, "null": nil}[text], err
	}
	text, err := r.Number()
	return json.Number(text), err
}

// whole reads b to its end.
func whole(b []byte) (any, error) {
	r, err := NewReader(b)
	if err != nil {
		return nil, err
	}
	v, err := read(r)
	if err == nil {
		err = r.End()
	}
	return v, err
}

var texts = []string{`{}`, ` [ ] `, `{"a": [1, -2.5e-3, 0, 1E+4], "b": {"a": null}, "c": [true, false]}`,
	`["\u0041\u00e9\ud83d\ude00\ud83d\u0041\ude00\ud83dx\b\f\n\r\t\"\\\/"]`, `"日本"`, `[1 2]`, `[1,]`, `{"a" 1}`, `{"a": 1,}`,
	`01`, `-`, `1.`, `.5`, `1e`, `+1`, `nul`, `tru e`, `"a`, "\"\x01\"", `"\x"`, `"\u12"`, `"\u12g4"`, `[`, `{"a": 1} 2`, ``, `{"a": 1, "a": 2}`,
	"\"\xff\"", `{"\u0061": 1, "a": 2}`, `"\ud800\ud800\udc00"`}

// FuzzReader: what is read and refused is what encoding/json and Check read and refuse together.
func FuzzReader(f *testing.F) {
	for _, s := range texts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.UseNumber()
		var want any
		err := d.Decode(&want)
		good := err == nil && json.Valid(b) && Check(b) == nil
		got, err := whole(b)
		// Of keys that are equal behind their escapes Check knows nothing.
		if twice := err != nil && strings.Contains(err.Error(), "twice"); good != (err == nil) && !twice {
			t.Fatalf("%q: %v, encoding/json reads it: %v", b, err, good)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %v, want %v", b, got, want)
		}
		if r, e := NewReader(b); e == nil {
			if _, e = r.Value(); e == nil {
				e = r.End()
			}
			if (e == nil) != (err == nil) {
				t.Fatalf("%q: Value says %v, Object, Array and String %v", b, e, err)
			}
		}
	})
}

// TestReaderErrors: an error says the byte, and what must be there.
func TestReaderErrors(t *testing.T) {
	for text, want := range map[string]string{
		`[1 2]`:            `byte 4 must be ',' or ']' (got '2')`,
		`{"a": [1, "b`:     "the text ends at byte 12",
		`{a: 1}`:           `byte 2 must be a text (got 'a')`,
		`{"\u0061":1,"a"`:  "the text ends at byte 15",
		`{"\u0061":1,"a":`: `key "a" is there twice`,
		`"\q"`:             `byte 2 must be an escape`,
		`[1] x`:            `byte 5 must be the end of the text (got 'x')`,
	} {
		check.Fails(whole([]byte(text)))(t, want)
	}
	r := check.Get(NewReader([]byte(strings.Repeat("[", 20000))))(t)
	check.Fails(r.Value())(t, "more than 10000 lists and objects within each other")
}

// TestExcept: what is read apart is not in the rest, which is an object.
func TestExcept(t *testing.T) {
	r := check.Get(NewReader([]byte(`{"a": [1, {"b": 2}], "big": [3, 4], "c\n": "d"}`)))(t)
	n := 0
	rest := check.Get(r.Except(map[string]func() error{"big": func() error {
		return r.Array(func() error { n++; _, err := r.Number(); return err })
	}}))(t)
	if string(rest) != `{"a":[1, {"b": 2}],"c\n":"d"}` || n != 2 {
		t.Errorf("%s, %d", rest, n)
	}
}
