package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// objects hands the objects of a file on as rows.
type objects struct {
	path   string
	pick   Picker
	row    func(r Row) error
	names  []string // wanted; nil before the first object
	number int      // of the object, from 1
	cells  []string
}

// take reads an object.
func (o *objects) take(b json.RawMessage) error {
	o.number++
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil || fields == nil {
		return &data.RecordError{File: o.path, Index: o.number - 1, Err: fmt.Errorf("want an object with a field for each column (got %.60s)", b)}
	}
	if o.names == nil {
		all := slices.Sorted(maps.Keys(fields))
		c, err := o.pick(all)
		if err == nil && c.Headless {
			err = fmt.Errorf("its fields %q are none that are known", all)
		}
		if err != nil {
			return &data.RecordError{File: o.path, Index: o.number - 1, Err: err}
		}
		for _, i := range c.At {
			o.names = append(o.names, all[i])
		}
	}
	r := Row{Line: o.number, Cells: o.cells[:0], path: o.path, entry: true}
	for _, name := range o.names {
		text, err := jsonText(fields[name])
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
		return &data.RecordError{File: path, Index: -1, Err: fmt.Errorf(`it is neither an object {"0": {...}, ...} nor a list [{...}, ...] of rows: %w`, err)}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(b, &whole); err != nil {
		return broken(err)
	}
	if err := strictjson.Check(b); err != nil {
		return broken(err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	open, err := dec.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return broken(fmt.Errorf("got %.60s", b))
	}
	o := objects{path: path, pick: pick, row: row}
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
	o := objects{path: path, pick: pick, row: row}
	err := Lines(path, func(n int, line string) error {
		b := []byte(strings.TrimSpace(line))
		if len(b) == 0 {
			return nil
		}
		if !json.Valid(b) {
			return &data.LineError{File: path, Line: n, Err: fmt.Errorf("it is no JSON object (got %.60s): write one object on each line", b)}
		}
		if err := strictjson.Check(b); err != nil {
			return &data.LineError{File: path, Line: n, Err: err}
		}
		return o.take(b)
	})
	if err != nil {
		return err
	}
	return o.end()
}

// end says what is wrong with a file that ended.
func (o *objects) end() error {
	if o.number == 0 {
		return &data.RecordError{File: o.path, Index: -1, Err: errors.New("it has no row")}
	}
	return nil
}
