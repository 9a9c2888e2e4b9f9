package examples

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// objects calls take for each JSON object of a file that is a list of them or has one on each line, whatever its name, and ends
// early with its error. wrong puts file and place before an error of the object. bad is told of each row that is none.
func objects(path string, take func(b json.RawMessage, wrong func(error) error) error, bad func(error)) error {
	f, _, err := files.Open(path, 0)
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	start := make([]byte, 512)
	n, err := io.ReadFull(f, start)
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		err = nil
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("data: %s: %w", path, err)
	}
	if start = bytes.TrimSpace(files.WithoutMark(start[:n])); len(start) > 0 && start[0] == '[' {
		return listed(path, take, bad)
	}
	return table.Lines(path, func(n int, line string) error {
		if line = strings.TrimSpace(line); line == "" {
			return nil
		}
		wrong := func(err error) error { return &table.LineError{File: path, Line: n, Err: err} }
		b := json.RawMessage(line)
		if !json.Valid(b) || b[0] != '{' {
			bad(wrong(fmt.Errorf("it is no JSON object (got %.60s): want a list of objects, or one on each line", b)))
			return nil
		}
		if err := strictjson.Check(b); err != nil {
			bad(wrong(err))
			return nil
		}
		return take(b, wrong)
	})
}

// listed is objects of a list.
func listed(path string, take func(b json.RawMessage, wrong func(error) error) error, bad func(error)) error {
	b, err := files.Read(path, files.MaxList)
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	whole := func(err error) error { return &table.RecordError{File: path, Index: -1, Err: err} }
	var list []json.RawMessage
	b = files.WithoutMark(b)
	if err := json.Unmarshal(b, &list); err != nil {
		return whole(fmt.Errorf("it is no list of JSON objects: %w", err))
	}
	if err := strictjson.Check(b); err != nil {
		return whole(err)
	}
	for i, x := range list {
		wrong := func(err error) error { return &table.RecordError{File: path, Index: i, Err: err} }
		if len(x) == 0 || x[0] != '{' {
			bad(wrong(fmt.Errorf("want an object (got %.60s)", x)))
			continue
		}
		if err := take(x, wrong); err != nil {
			return err
		}
	}
	return nil
}
