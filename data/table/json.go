package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// ParseJSON reads the bytes of a JSON file into v: a list of entries ([]json.RawMessage), a struct of lists, or a map.
// wanted says what it should be, for the *RecordError of a file that is not.
func ParseJSON(file string, b []byte, wanted string, v any) error {
	if err := json.Unmarshal(files.WithoutMark(b), v); err != nil {
		return Whole(file, fmt.Errorf("%s: %w", wanted, jsonError(err)))
	}
	return nil
}

// ReadJSON is ParseJSON of a file. role says what it is read as, such as "COCO file", where it cannot be read.
func ReadJSON(file, role, wanted string, v any) error {
	b, err := ReadFile(file, role)
	if err != nil {
		return err
	}
	return ParseJSON(file, b, wanted, v)
}

// ReadFile reads a list as a whole. role says what it is read as where it cannot be.
func ReadFile(file, role string) ([]byte, error) {
	b, err := files.Read(file, files.MaxList)
	if err != nil {
		return nil, fmt.Errorf("data: %s: %w", role, err)
	}
	return b, nil
}

// Parsed is what parse makes of a list that is read as a whole, see ReadFile.
func Parsed[T any](file, role string, parse func(file string, b []byte) (T, error)) (x T, err error) {
	b, err := ReadFile(file, role)
	if err != nil {
		return x, err
	}
	return parse(file, b)
}

// Entries are the entries of a JSON file: of the list that it is, or of one of its lists.
type Entries struct {
	File string
	List string // its name; empty: the file is the list
	Raw  []json.RawMessage
}

// Wrong is an error of entry i with its place.
func (l Entries) Wrong(i int, err error) error {
	if l.List != "" {
		err = fmt.Errorf("list %q: %w", l.List, err)
	}
	return &RecordError{File: l.File, Index: i, Err: err}
}

// Each calls take with each entry as an E, which has a field for each that is read, and ends early with its error, to
// which it adds the place.
func Each[E any](l Entries, take func(i int, e E) error) error {
	for i, raw := range l.Raw {
		var e E
		err := Decode(raw, &e)
		if err == nil {
			err = take(i, e)
		}
		if err != nil {
			return l.Wrong(i, err)
		}
	}
	return nil
}

// Decode reads an entry into v. What encoding/json passes over in silence, such as a key that is there twice, is an
// error.
func Decode(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return jsonError(err)
	}
	return strictjson.Check(raw)
}

// TextOrTexts returns the text or the list of texts that a field holds.
func TextOrTexts(field string, b json.RawMessage) (list []string, err error) {
	var one string
	var some []*string
	switch {
	case IsNull(b):
		return nil, fmt.Errorf(`field %q is missing: want a text or a list of texts`, field)
	case json.Unmarshal(b, &one) == nil:
		return []string{one}, nil
	case json.Unmarshal(b, &some) != nil || slices.Contains(some, nil):
		return nil, fmt.Errorf(`field %q is neither a text nor a list of texts (got %s)`, field, Cut(b))
	}
	list = make([]string, len(some))
	for i, s := range some {
		list[i] = *s
	}
	return list, nil
}

// Texts returns the text or the texts that a JSON object has under a key.
func Texts(b []byte, key string) ([]string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(b, &object); err != nil {
		return nil, jsonError(err)
	}
	return TextOrTexts(key, object[key])
}

// IsNull says whether a field is null or missing.
func IsNull(b json.RawMessage) bool { return len(b) == 0 || string(b) == "null" }

// Cut shortens a JSON value for a message.
func Cut(b []byte) string {
	const most = 60
	if len(b) > most {
		return string(b[:most]) + "..."
	}
	return string(b)
}

// jsonError says in the words of the file what encoding/json says in those of Go.
func jsonError(err error) error {
	switch e := err.(type) {
	case *json.SyntaxError:
		return fmt.Errorf("broken JSON at byte %d: %s", e.Offset, strings.TrimPrefix(e.Error(), "json: "))
	case *json.UnmarshalTypeError:
		what := "the value"
		if e.Field != "" {
			what = fmt.Sprintf("field %q", e.Field)
		}
		return fmt.Errorf("%s has the wrong type (got a JSON %s)", what, e.Value)
	}
	return err
}

// Objects calls row for each JSON object of a file that is a list of them or has one on each line, whatever its name,
// and ends early with its error. What is not an object is a Row with an error.
func Objects(path string, row func(r Row) error) error {
	t, err := OpenText(path, Layout{})
	if err != nil {
		return err
	}
	defer t.Close()
	start := make([]byte, 512)
	n, err := io.ReadFull(t.rest(), start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return pathError(path, err)
	}
	if start = bytes.TrimSpace(start[:n]); len(start) == 0 || start[0] != '[' {
		return t.objects(row)
	}
	var list []json.RawMessage
	if err := ReadJSON(path, "list", "it is not a list of JSON objects", &list); err != nil {
		return err
	}
	for i, raw := range list {
		r := Row{Line: i + 1, Raw: raw, path: path, entry: true}
		if r.Err = strictjson.Check(raw); r.Err == nil && raw[0] != '{' {
			r.Err = fmt.Errorf("want an object (got %.60s)", raw)
		}
		if err := row(r); err != nil {
			return err
		}
	}
	return nil
}

// objects is Objects of lines.
func (t *Text) objects(row func(r Row) error) error {
	for l, err := range t.Lines(0, 0) {
		if err != nil {
			return err
		}
		raw := []byte(strings.TrimSpace(l.Valid()))
		if len(raw) == 0 {
			continue
		}
		r := Row{Line: l.Number, Raw: raw, path: t.path}
		if !json.Valid(raw) || raw[0] != '{' {
			r.Err = fmt.Errorf("it is not a JSON object (got %.60s): want an object on each line, or a list of objects",
				raw)
		} else {
			r.Err = strictjson.Check(raw)
		}
		if err := row(r); err != nil {
			return err
		}
	}
	return nil
}

// fields hands on the objects of a file as rows of some of their fields.
type fields struct {
	path   string
	pick   Picker
	row    func(r Row) error
	names  []string // wanted; nil before the first object
	number int      // of the object, from 1
	cells  []string
}

// take reads an object.
func (o *fields) take(b json.RawMessage) error {
	o.number++
	r := Row{Line: o.number, Cells: o.cells[:0], path: o.path, entry: true}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(b, &object); err != nil || object == nil {
		return r.Wrong(fmt.Errorf("want an object with a field for each column (got %.60s)", b))
	}
	if o.names == nil {
		all := slices.Sorted(maps.Keys(object))
		c, err := o.pick(all)
		if err == nil && c.Headless {
			err = fmt.Errorf("its fields %q are none that are known", all)
		}
		if err != nil {
			return r.Wrong(err)
		}
		for _, i := range c.At {
			o.names = append(o.names, all[i])
		}
	}
	for _, name := range o.names {
		text, err := jsonText(object[name])
		if err != nil {
			r.Cells, r.Err = nil, fmt.Errorf("field %q %w", name, err)
			break
		}
		r.Cells = append(r.Cells, text)
	}
	if r.Err == nil {
		o.cells = r.Cells
	}
	return o.row(r)
}

// jsonText is a value as text: a string, the digits of a number, true or false, and nothing for null.
func jsonText(b json.RawMessage) (string, error) {
	switch {
	case len(b) == 0:
		return "", errors.New("is missing")
	case string(b) == "null":
		return "", nil
	case b[0] == '"':
		var s string
		err := json.Unmarshal(b, &s)
		return s, err
	case b[0] == '{' || b[0] == '[':
		return "", fmt.Errorf("must be a text or a number (got %.40s)", b)
	}
	return string(b), nil
}

// readJSON reads a list or an object of objects.
func readJSON(path string, pick Picker, row func(r Row) error) error {
	b, err := files.Read(path, files.MaxList)
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	b = files.WithoutMark(b)
	broken := func(err error) error {
		return Whole(path, fmt.Errorf(`it is neither an object {"0": {...}, ...} nor a list [{...}, ...] of rows: %w`,
			err))
	}
	var whole json.RawMessage
	if err := Decode(b, &whole); err != nil {
		return broken(err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	open, err := dec.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return broken(fmt.Errorf("got %.60s", b))
	}
	o := fields{path: path, pick: pick, row: row}
	for dec.More() {
		if open == json.Delim('{') {
			if _, err := dec.Token(); err != nil { // the name of the row
				return broken(err)
			}
		}
		var x json.RawMessage
		if err := dec.Decode(&x); err != nil {
			return broken(err)
		}
		if err := o.take(x); err != nil {
			return err
		}
	}
	return o.end()
}

// readJSONLines reads a file with an object on each line.
func readJSONLines(path string, pick Picker, row func(r Row) error) error {
	t, err := OpenText(path, Layout{})
	if err != nil {
		return err
	}
	defer t.Close()
	o := fields{path: path, pick: pick, row: row}
	err = t.objects(func(r Row) error {
		if r.Err != nil {
			return r.Wrong(r.Err)
		}
		return o.take(r.Raw)
	})
	if err != nil {
		return err
	}
	return o.end()
}

// end says what is wrong with a file that ended.
func (o *fields) end() error {
	if o.number == 0 {
		return Whole(o.path, errors.New("it has no row"))
	}
	return nil
}
