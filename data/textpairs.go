package data

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// TextPair is two texts with the class of their relation.
type TextPair struct{ A, B, Label string }

// pairFields are what an entry of a file of text pairs has.
var pairFields = []string{"text_a", "text_b", "label"}

// LoadTextPairs reads labelled pairs of texts in the order of the file: a .tsv file whose first line names the columns
// text_a, text_b and label, or a .json file with an object or a list of entries with these fields, of which label may
// be a number. An error is a *RecordError.
func LoadTextPairs(path string) ([]TextPair, error) {
	b, err := files.Read(path, files.MaxList)
	if err != nil {
		return nil, fmt.Errorf("data: text pairs: %w", err)
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	var pairs []TextPair
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".tsv":
		pairs, err = parsePairTable(path, b)
	case ".json":
		pairs, err = parsePairJSON(path, b)
	default:
		return nil, &RecordError{path, -1, fmt.Errorf("text pairs are read from .tsv and .json files, not from %q", ext)}
	}
	if err == nil && len(pairs) == 0 {
		err = &RecordError{path, -1, errors.New("it has no pair")}
	}
	return pairs, err
}

// parsePairTable reads a table. Quotation marks in it are characters like any other.
func parsePairTable(path string, b []byte) (pairs []TextPair, err error) {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n"), "\n")
	header := strings.Split(lines[0], "\t")
	var at [3]int
	for i, name := range pairFields {
		if at[i] = slices.Index(header, name); at[i] < 0 {
			return nil, &RecordError{path, -1, fmt.Errorf("the first line has no column %q (got %.200q): name the columns text_a, text_b and label, with tabs between", name, lines[0])}
		}
	}
	for i, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		if len(cells) != len(header) {
			return nil, &RecordError{path, i, fmt.Errorf("line %d has %d columns, and the first line %d: %w", i+2, len(cells), len(header), csv.ErrFieldCount)}
		}
		p := TextPair{cells[at[0]], cells[at[1]], cells[at[2]]}
		if err := p.check(); err != nil {
			return nil, &RecordError{path, i, err}
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// parsePairJSON reads an object or a list of entries.
func parsePairJSON(path string, b []byte) (pairs []TextPair, err error) {
	wrong := func(i int, err error) ([]TextPair, error) { return nil, &RecordError{path, i, jsonError(err)} }
	if !json.Valid(b) {
		var x any
		return wrong(-1, json.Unmarshal(b, &x))
	}
	if err := strictjson.Check(b); err != nil {
		return wrong(-1, err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	open, err := dec.Token()
	if open != json.Delim('{') && open != json.Delim('[') || err != nil {
		return wrong(-1, errors.New(`want an object {"0": {"text_a": ..., "text_b": ..., "label": ...}} or a list of such entries`))
	}
	for dec.More() {
		i := len(pairs)
		if open == json.Delim('{') {
			if _, err := dec.Token(); err != nil { // the name of the entry
				return wrong(i, err)
			}
		}
		var e map[string]json.RawMessage
		if err := dec.Decode(&e); err != nil {
			return wrong(i, err)
		}
		var p TextPair
		for k, to := range []*string{&p.A, &p.B, &p.Label} {
			raw, number := e[pairFields[k]], json.Number("")
			switch {
			case raw == nil:
				return wrong(i, fmt.Errorf("field %q is missing", pairFields[k]))
			case json.Unmarshal(raw, to) == nil && !isNull(raw):
			case k == 2 && json.Unmarshal(raw, &number) == nil && !isNull(raw):
				p.Label = number.String()
			default:
				return wrong(i, fmt.Errorf("field %q must be a text (got %s)", pairFields[k], cut(raw)))
			}
		}
		if err := p.check(); err != nil {
			return wrong(i, err)
		}
		pairs = append(pairs, p)
	}
	if _, err := dec.Token(); err != nil && err != io.EOF {
		return wrong(-1, err)
	}
	return pairs, nil
}

// check refuses a pair that lacks something.
func (p TextPair) check() error {
	for i, s := range []string{p.A, p.B, p.Label} {
		if strings.TrimSpace(s) == "" {
			return fmt.Errorf("%s is empty: give it a value, or remove the pair", pairFields[i])
		}
	}
	return nil
}
