package propose

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/words"
)

// Names that columns of paths and of captions usually have, the likeliest first.
var (
	imageNames = []string{"image", "image_path", "filepath", "file_path", "path", "filename", "file_name",
		"image_name", "image_file", "file", "img", "photo", "picture"}
	captionNames = []string{"caption", "captions", "text", "title", "description", "sentence", "comment", "raw",
		"alt_text", "alt", "label"}
)

// table is a .csv or .tsv with the names of its columns in the first line.
func (p *Proposal) table(path string) error {
	text, err := begin(path)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(text, "\n")
	separator, most := ',', strings.Count(first, ",")
	for _, r := range "\t;|" {
		if n := strings.Count(first, string(r)); n > most {
			separator, most = r, n
		}
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord, r.TrimLeadingSpace = separator, true, -1, true
	header, err := r.Read()
	if err != nil {
		return fmt.Errorf("%s:1: %w", words.Shown(path), err)
	}
	var rows [][]string
	for len(rows) < 20 {
		row, err := r.Read()
		if errors.Is(err, io.EOF) || err != nil {
			break
		}
		rows = append(rows, row)
	}
	if slices.ContainsFunc(header, images.IsName) {
		return fmt.Errorf("%s:1: the first line holds an image (%s): put a line with the names of the columns before it, such as image,caption", words.Shown(path), words.Shown(strings.Join(header, string(separator))))
	}
	image := column(header, imageNames, func(k int) bool { return cells(rows, k, images.IsName) })
	if image < 0 {
		return fmt.Errorf("%s:1: no column holds names of images among %s: call it image", words.Shown(path),
			words.Shown(strings.Join(header, ", ")))
	}
	caption := column(header, captionNames, func(k int) bool {
		return k != image && cells(rows, k, func(s string) bool { return strings.Count(strings.TrimSpace(s), " ") >= 2 })
	})
	if caption < 0 || caption == image {
		return fmt.Errorf("%s:1: no column holds captions among %s: call it caption", words.Shown(path),
			words.Shown(strings.Join(header, ", ")))
	}
	p.Kind = "csv"
	var names []string
	for _, row := range rows {
		if image < len(row) {
			names = append(names, row[image])
		}
	}
	p.rooted(names)
	p.key("csv.train_files", []string{p.below(path)}, "")
	p.key("csv.image", strings.TrimSpace(header[image]), "of the columns "+strings.Join(header, ", "))
	p.key("csv.caption", strings.TrimSpace(header[caption]), "")
	tabs := strings.HasSuffix(strings.ToLower(path), ".tsv")
	if usual := map[bool]rune{true: '\t', false: ','}[tabs]; separator != usual {
		p.key("csv.separator", string(separator), "")
	}
	if !p.splits("csv", path, "train") {
		p.divided()
	}
	return nil
}

// column is the place of the column that is called by one of the names, else of the first that fits, else -1.
func column(header, names []string, fits func(k int) bool) int {
	for _, name := range names {
		if k := slices.IndexFunc(header, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), name) }); k >= 0 {
			return k
		}
	}
	for k := range header {
		if fits(k) {
			return k
		}
	}
	return -1
}

// cells says whether most cells of a column are of a form.
func cells(rows [][]string, k int, is func(string) bool) bool {
	n := 0
	for _, row := range rows {
		if k < len(row) && is(strings.TrimSpace(row[k])) {
			n++
		}
	}
	return 2*n > len(rows)
}

// parquet is tables as the hub has them: image and caption by the names of their columns.
func (p *Proposal) parquet(files []string) error {
	f, err := os.Open(files[0])
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	t, err := table.OpenParquet(f, st.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", words.Shown(files[0]), err)
	}
	var names []string
	for _, n := range t.Names() {
		name, _, _ := strings.Cut(n, ".")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	never := func(int) bool { return false }
	image, caption := column(names, imageNames, never), column(names, captionNames, never)
	if image < 0 || caption < 0 {
		return fmt.Errorf("%s has the columns %s: none of them is called image, or none caption: name them by data.parquet.image and data.parquet.caption", words.Shown(files[0]), words.Shown(strings.Join(names, ", ")))
	}
	p.Kind = "parquet"
	p.bySplit("parquet", files)
	p.key("parquet.image", names[image], "of the columns "+strings.Join(names, ", "))
	p.key("parquet.caption", names[caption], "")
	return nil
}

// shards are tar files of pairs.
func (p *Proposal) shards(files []string) error {
	f, err := os.Open(files[0])
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	enough := errors.New("enough")
	fields := map[string]bool{}
	var first, of string
	var text []byte // of its .json member
	_, err = table.Members(f, st.Size(), func(m table.Member) error {
		if first == "" {
			first = m.Record
		}
		if m.Record != first && len(fields) > 1 {
			return enough
		}
		fields[m.Field] = true
		if m.Field == "json" && text == nil {
			of = m.Name
			text, err = m.Read()
		}
		return err
	})
	if err != nil && !errors.Is(err, enough) {
		return fmt.Errorf("%s: %w", words.Shown(files[0]), err)
	}
	p.Kind = "webdataset"
	p.bySplit("webdataset", files)
	if fields["txt"] {
		return nil
	}
	if text == nil {
		return fmt.Errorf("%s: its first sample has neither a .txt nor a .json member with the caption",
			words.Shown(files[0]))
	}
	for _, name := range captionNames {
		if list, err := table.Texts(text, name); err == nil && len(list) > 0 {
			p.key("webdataset.json_key", name, "of "+of)
			return nil
		}
	}
	return fmt.Errorf("%s: %s has no caption under %s: name its key by data.webdataset.json_key", words.Shown(files[0]),
		of, strings.Join(captionNames, ", "))
}

// bySplit names files by the split in their name, those without one as training files.
func (p *Proposal) bySplit(kind string, files []string) {
	lists := map[string][]string{}
	for _, file := range files {
		name, split := strings.ToLower(filepath.Base(file)), "train"
		switch {
		case strings.Contains(name, "train"):
		case strings.Contains(name, "test"):
			split = "test"
		case strings.Contains(name, "val") || strings.Contains(name, "dev"):
			split = "val"
		}
		lists[split] = append(lists[split], p.below(file))
	}
	if lists["train"] == nil { // names that only look like those of splits
		lists = map[string][]string{"train": append(lists["val"], lists["test"]...)}
	}
	for _, split := range []string{"train", "val", "test"} {
		if lists[split] != nil {
			p.key(kind+"."+split+"_files", lists[split], "")
		}
	}
	if lists["val"] == nil && lists["test"] == nil {
		p.Notes = append(p.Notes, fmt.Sprintf("no file has the name of another split: keep some back as data.%s.val_files, or nothing is evaluated", kind))
	}
}
