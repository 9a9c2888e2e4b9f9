package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/names"
)

// Captions names the ALBEF-style JSON lists of data.kind = "captions".
type Captions struct {
	SplitFiles
}

// Check implements section.Checked.
func (f *Captions) Check(k *section.Checker) {
	splitFiles(k, "captions", section.Of[Data](k).Split.files(f.Split))
}

// kind is data.kind = "captions".
func (*Captions) kind() Kind {
	return imageFiles(fileLists("captions",
		func(d Data, split string) []string { return d.Split.Files(split, d.Captions.Split) },
		func(_ context.Context, split string, paths []string, cfg Setup, o Options) (data.Cached, error) {
			return opened(LoadCaptions(cfg.Data.Root, paths, divided(cfg, split, options(cfg, o, "reading captions"))))
		}))
}

// LoadCaptions reads lists of {"image": path, "caption": text or list of texts,
// "image_id": number or text, optional} (ALBEF's format). Paths of images start
// from root unless absolute.
//
// Entries with the same image become one image with all their captions. Where
// every entry has a whole number as image_id, these are the ids; else ids number
// the distinct texts (and, without image_id, the distinct paths) from 0.
func LoadCaptions(root string, lists []string, opt data.Options) (*data.Files, error) {
	if len(lists) == 0 {
		return nil, errors.New("data: no caption file given: set data.captions.train_files, val_files or test_files")
	}
	opt = opt.Counting()
	var all []captioned
	for _, path := range lists {
		b, err := table.ReadFile(path, "caption file")
		if err != nil {
			return nil, err
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
			recs = slices.DeleteFunc(recs, func(r captioned) bool { return !opt.Keep(r.image) })
		}
		opt.Account.Used(entryUnit, len(recs))
		countTurned(opt.Account, written, path)
		all = append(all, recs...)
	}
	if len(all) == 0 {
		return nil, errors.New(
			"data: no image of the caption files is in the split: raise data.split, or name files of its own")
	}
	return merge(root, all, opt)
}

// entryUnit is what an account of lists in JSON counts.
const entryUnit = "record"

// countTurned counts the names of a list that was written on Windows.
func countTurned(a *account.Account, l names.List, path string) {
	a.Changed(entryUnit, l.Turned, "backslashes in the name, which are read as slashes", path)
}

// captioned is an image as an entry of a list has it.
type captioned struct {
	file     string
	index    int
	image    string
	captions []string
	key      string // of the id, as text; "" where absent
	number   bool   // the key is a whole number
}

// captionEntry is an entry of a list.
type captionEntry struct {
	Image   *string         `json:"image"`
	Caption json.RawMessage `json:"caption"`
	ID      json.RawMessage `json:"image_id"`
}

func parseCaptions(file string, b []byte, opt data.Options) ([]captioned, error) {
	l := table.Entries{File: file}
	if err := table.ParseJSON(file, b, "not a JSON list of entries with image and caption", &l.Raw); err != nil {
		if isLines(b) {
			err = table.Whole(
				file, errors.New("these are JSON lines, one entry a line, and not a JSON list: write [ before the "+
					"first entry, a comma after each but the last and ] at the end (jq -s . does it)"))
		}
		return nil, err
	}
	if len(l.Raw) == 0 {
		return nil, table.Whole(file, errors.New("the list is empty"))
	}
	recs := make([]captioned, len(l.Raw))
	return recs, table.Each(l, func(i int, e captionEntry) (err error) {
		recs[i], err = e.read()
		recs[i].file, recs[i].index = file, i
		opt.Tell(i+1, len(l.Raw))
		return err
	})
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

// read takes what an entry says.
func (e captionEntry) read() (r captioned, err error) {
	switch {
	case e.Image == nil:
		return r, errors.New(`field "image" is missing: want the path of the image`)
	case *e.Image == "":
		return r, errors.New(`field "image" is empty: want the path of the image`)
	case table.IsNull(e.Caption):
		return r, fmt.Errorf(`field "caption" is missing: want a text or a list of texts (image %q)`, *e.Image)
	}
	r.image = *e.Image
	if r.captions, err = table.TextOrTexts("caption", e.Caption); err != nil || table.IsNull(e.ID) {
		return r, err
	}
	if err := json.Unmarshal(e.ID, &r.key); err == nil {
		if r.key == "" {
			return r, errors.New(`field "image_id" is an empty text: leave it out or give each image its own`)
		}
		return r, nil
	}
	n, err := strconv.ParseInt(string(e.ID), 10, 64)
	if err != nil {
		return r, fmt.Errorf(`field "image_id" is neither a whole number nor a text (got %s)`, table.Cut(e.ID))
	}
	r.key, r.number = strconv.FormatInt(n, 10), true
	return r, nil
}

// merge makes one File of the records of each image and settles the ids.
func merge(root string, recs []captioned, opt data.Options) (*data.Files, error) {
	numbers := true
	for _, r := range recs {
		numbers = numbers && r.number
	}
	ids := map[string]int64{}
	id := func(r captioned) int64 {
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
	var items []data.File
	at := map[string]int{}
	for _, r := range recs {
		path := names.Below(root, r.image)
		n, seen := at[path]
		v := id(r)
		if !seen {
			at[path] = len(items)
			items = append(items, data.File{Path: path, ID: v, Captions: slices.Clip(r.captions)})
			continue
		}
		if items[n].ID != v {
			return nil, &table.RecordError{File: r.file, Index: r.index,
				Err: fmt.Errorf("image %q has another image_id here than in an earlier entry: one image, one id",
					r.image)}
		}
		items[n].Captions = append(items[n].Captions, r.captions...)
	}
	return data.NewFiles(items, opt), nil
}
