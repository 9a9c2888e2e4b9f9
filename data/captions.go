package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/names"
	"github.com/geoalign/geoalign/internal/strictjson"
	"github.com/geoalign/geoalign/internal/words"
)

// RecordError is an entry of a data file that cannot be used.
type RecordError struct {
	File  string
	Index int // of the entry, from 0; -1: the file as a whole
	Err   error
}

// Error names the file and the entry.
func (e *RecordError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("data: %s: %v", e.File, words.Short(e.Err))
	}
	return fmt.Sprintf("data: %s: entry %d: %v", e.File, e.Index, words.Short(e.Err))
}

// Unwrap returns the reason.
func (e *RecordError) Unwrap() error { return e.Err }

// LoadCaptions reads lists of {"image": path, "caption": text or list of texts,
// "image_id": number or text, optional} (ALBEF's format). Paths of images start
// from root unless absolute; so do the files' own.
//
// Entries with the same image become one image with all their captions. Where
// every entry has a whole number as image_id, these are the ids; else ids number
// the distinct texts (and, without image_id, the distinct paths) from 0.
func LoadCaptions(root string, lists []string, opt Options) (*Files, error) {
	if len(lists) == 0 {
		return nil, fmt.Errorf("data: no caption file given: set data.captions.train_files, val_files or test_files")
	}
	opt = opt.counting()
	var all []record
	for _, name := range lists {
		path := under(root, name)
		b, err := files.Read(path, files.MaxList)
		if err != nil {
			return nil, fmt.Errorf("data: caption file: %w", err)
		}
		recs, err := parseCaptions(path, b, opt)
		if err != nil {
			return nil, err
		}
		written := names.List{Root: root}
		for i := range recs {
			recs[i].image = written.Name(recs[i].image)
		}
		if opt.Keep != nil {
			recs = slices.DeleteFunc(recs, func(r record) bool { return !opt.Keep(r.image) })
		}
		opt.Account.Used(entryUnit, len(recs))
		countTurned(opt.Account, written, path)
		all = append(all, recs...)
	}
	if len(all) == 0 {
		return nil, errors.New("data: no image of the caption files is in the split: raise data.split, or name files of its own")
	}
	return merge(root, all, opt)
}

// entryUnit is what an account of lists in JSON counts.
const entryUnit = "record"

// countTurned counts the names of a list that was written on Windows.
func countTurned(a *account.Account, l names.List, path string) {
	a.Changed(entryUnit, l.Turned, "backslashes in the name, which are read as slashes", path)
}

// record is one entry of a caption file.
type record struct {
	file     string
	index    int
	image    string
	captions []string
	key      string // of the id, as text; "" where absent
	number   bool   // the key is a whole number
}

func parseCaptions(file string, b []byte, opt Options) ([]record, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(files.WithoutMark(b), &raw); err != nil {
		if isLines(b) {
			return nil, &RecordError{file, -1, errors.New("these are JSON lines, one entry a line, and not a JSON list: write [ before the first entry, a comma after each but the last and ] at the end (jq -s . does it)")}
		}
		return nil, &RecordError{file, -1, fmt.Errorf("not a JSON list of entries with image and caption: %w", jsonError(err))}
	}
	if len(raw) == 0 {
		return nil, &RecordError{file, -1, fmt.Errorf("the list is empty")}
	}
	recs := make([]record, len(raw))
	for i, r := range raw {
		rec, err := parseRecord(r)
		if err != nil {
			return nil, &RecordError{file, i, err}
		}
		rec.file, rec.index = file, i
		recs[i] = rec
		opt.tell(i+1, len(raw))
	}
	return recs, nil
}

// isLines reports whether b begins with a JSON object and goes on with another one or ends,
// which is how JSON lines look.
func isLines(b []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(files.WithoutMark(b)))
	for range 2 {
		var entry struct {
			Image json.RawMessage `json:"image"`
		}
		switch err := dec.Decode(&entry); {
		case err == io.EOF:
			return true
		case err != nil || entry.Image == nil:
			return false
		}
	}
	return true
}

func parseRecord(b []byte) (record, error) {
	var e struct {
		Image   *string         `json:"image"`
		Caption json.RawMessage `json:"caption"`
		ID      json.RawMessage `json:"image_id"`
	}
	var r record
	if err := json.Unmarshal(b, &e); err != nil {
		return r, jsonError(err)
	}
	if err := strictjson.Check(b); err != nil {
		return r, err
	}
	switch {
	case e.Image == nil:
		return r, fmt.Errorf(`field "image" is missing: want the path of the image`)
	case *e.Image == "":
		return r, fmt.Errorf(`field "image" is empty: want the path of the image`)
	case isNull(e.Caption):
		return r, fmt.Errorf(`field "caption" is missing: want a text or a list of texts (image %q)`, *e.Image)
	}
	r.image = *e.Image
	var err error
	if r.captions, err = captionsOf("caption", e.Caption); err != nil {
		return r, err
	}
	if isNull(e.ID) {
		return r, nil
	}
	if err := json.Unmarshal(e.ID, &r.key); err == nil {
		if r.key == "" {
			return r, fmt.Errorf(`field "image_id" is an empty text: leave it out or give each image its own`)
		}
		return r, nil
	}
	n, err := strconv.ParseInt(string(e.ID), 10, 64)
	if err != nil {
		return r, fmt.Errorf(`field "image_id" is neither a whole number nor a text (got %s)`, cut(e.ID))
	}
	r.key, r.number = strconv.FormatInt(n, 10), true
	return r, nil
}

// captionsOf returns the text or the list of texts that a field holds.
func captionsOf(field string, b json.RawMessage) (list []string, err error) {
	var one string
	switch {
	case isNull(b):
		return nil, fmt.Errorf(`field %q is missing: want a text or a list of texts`, field)
	case json.Unmarshal(b, &one) == nil:
		return []string{one}, nil
	case json.Unmarshal(b, &list) != nil || hasNull(b):
		return nil, fmt.Errorf(`field %q is neither a text nor a list of texts (got %s)`, field, cut(b))
	}
	return list, nil
}

// merge makes one File of the records of each image and settles the ids.
func merge(root string, recs []record, opt Options) (*Files, error) {
	numbers := true
	for _, r := range recs {
		numbers = numbers && r.number
	}
	ids := map[string]int64{}
	id := func(r record) int64 {
		if numbers {
			n, _ := strconv.ParseInt(r.key, 10, 64)
			return n
		}
		k := "id " + r.key
		if r.key == "" {
			k = "path " + names.Below(root, r.image)
		}
		if _, ok := ids[k]; !ok {
			ids[k] = int64(len(ids))
		}
		return ids[k]
	}
	var items []File
	at := map[string]int{}
	for _, r := range recs {
		path := names.Below(root, r.image)
		n, seen := at[path]
		v := id(r)
		if !seen {
			at[path] = len(items)
			items = append(items, File{Path: path, ID: v, Captions: slices.Clip(r.captions)})
			continue
		}
		if items[n].ID != v {
			return nil, &RecordError{r.file, r.index, fmt.Errorf("image %q has another image_id here than in an earlier entry: one image, one id", r.image)}
		}
		items[n].Captions = append(items[n].Captions, r.captions...)
	}
	return NewFiles(items, opt), nil
}

// under is path below root, unless path is absolute.
func under(root, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, path)
}

func isNull(b json.RawMessage) bool { return len(b) == 0 || string(b) == "null" }

// hasNull reports a null in a JSON list, which decodes to "" without an error.
func hasNull(b json.RawMessage) bool {
	var list []*string
	if json.Unmarshal(b, &list) != nil {
		return true
	}
	for _, s := range list {
		if s == nil {
			return true
		}
	}
	return false
}

// cut shortens a JSON value for a message.
func cut(b []byte) string {
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
