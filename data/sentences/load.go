package sentences

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/table"
)

// Config says how files of sentences are read.
type Config struct {
	// Columns of tables. Empty Positive and Negative: there are none.
	Sentence, Positive, Negative string
	MaxBadShare                  float64 // of the rows may be bad; with more, reading is an error
	// rule by which sentences are cleaned, see data.Clean: rows of which it leaves nothing are left out
	Clean    string
	MaxWords int // words that Counts.Long begins behind; 0: none are counted
}

// columns are the keys and names of the columns that are read.
func (c Config) columns() (keys, names []string) {
	for _, x := range [][2]string{{"sentence", c.Sentence}, {"positive", c.Positive}, {"negative", c.Negative}} {
		if x[1] != "" {
			keys, names = append(keys, x[0]), append(names, x[1])
		}
	}
	return keys, names
}

// Counts say what was read and what was left out.
type Counts struct {
	Rows    int   // of the files
	Empty   int   // left out: a text is empty, or nothing is left of it
	Bad     int   // left out: other than the file says
	Garbled int   // kept: bytes that are not UTF-8 became U+FFFD
	Long    int   // kept, and cut where they become tokens: texts of more words than Config.MaxWords
	First   error // why the first bad row is
}

// Account is what became of the rows.
func (c Counts) Account() *account.Account {
	const row = "row"
	first := ""
	if c.First != nil {
		first = c.First.Error()
	}
	a := account.New()
	a.Used(row, c.Rows-c.Empty-c.Bad)
	a.LeftOut(row, c.Empty, "an empty text")
	a.LeftOut(row, c.Bad, "it cannot be read", first)
	a.Changed(row, c.Garbled, "bytes that are not UTF-8, read as U+FFFD", first)
	a.Changed(row, c.Long, "more words than there are tokens: it is cut")
	return a
}

// tables are the endings of files that are tables.
var tables = []string{".csv", ".tsv", ".json", ".jsonl", ".parquet"}

// Load reads the sentences of files in their order: of tables (.csv, .tsv, .json, .jsonl, .parquet) the columns that
// are named, of every other file each line. Rows that cannot be used are counted. An error names the file and the
// place.
func Load(paths []string, cfg Config) (*Set, error) {
	if cfg.Sentence == "" || cfg.Positive == "" && cfg.Negative != "" {
		return nil, errors.New("data: sentences need a column, and hard negatives one of positives: set " +
			"data.sentences.sentence, and positive where there is a negative")
	}
	keys, names := cfg.columns()
	r := reader{cfg: cfg, keys: keys, names: names, set: &Set{per: len(names)}}
	for _, path := range paths {
		read := r.lines
		if slices.Contains(tables, strings.ToLower(filepath.Ext(path))) {
			read = r.table
		}
		if err := read(path); err != nil {
			return nil, err
		}
	}
	c := r.set.counts
	if bad := c.Bad + c.Garbled; float64(bad) > cfg.MaxBadShare*float64(c.Rows) {
		return nil, fmt.Errorf("%w: %d of %d rows are so, more than data.max_bad_share = %g allows", c.First, bad,
			c.Rows, cfg.MaxBadShare)
	}
	if r.set.Len() == 0 {
		return nil, fmt.Errorf("data: %s: there is no sentence in %d rows", strings.Join(paths, ", "), c.Rows)
	}
	return r.set, nil
}

// reader adds files to a set.
type reader struct {
	cfg         Config
	keys, names []string // of the columns
	set         *Set
}

// lines reads a file with a sentence on each line.
func (r *reader) lines(path string) error {
	if len(r.names) > 1 {
		return table.Whole(
			path, fmt.Errorf("lines have one sentence each, and no data.sentences.%s %q: name a table (%s)", r.keys[1],
				r.names[1], strings.Join(tables, ", ")))
	}
	for l, err := range table.Lines(path, 0) {
		if err != nil {
			return err
		}
		r.take([]string{l.Valid()}, l.Wrong)
	}
	return nil
}

// table reads a table.
func (r *reader) table(path string) error {
	return table.Read(path, table.Named(r.names, r.missing), func(row table.Row) error {
		if row.Err != nil {
			r.set.counts.Rows++
			r.bad(&r.set.counts.Bad, row.Wrong(row.Err))
			return nil
		}
		r.take(row.Cells, row.Wrong)
		return nil
	})
}

// missing is the error of a column that a table lacks.
func (r *reader) missing(k int, columns []string) error {
	return fmt.Errorf("data.sentences.%s: there is no column %q: the columns are %q", r.keys[k], r.names[k], columns)
}

// bad counts a row.
func (r *reader) bad(n *int, why error) {
	if *n++; r.set.counts.First == nil {
		r.set.counts.First = why
	}
}

// take adds a row of texts, of which wrong tells the place of an error.
func (r *reader) take(texts []string, wrong func(error) error) {
	c := &r.set.counts
	c.Rows++
	garbled, long := false, false
	for k, t := range texts {
		garbled = garbled || strings.ContainsRune(t, utf8.RuneError)
		t = strings.TrimSpace(t)
		if data.Clean(r.cfg.Clean, t, 0) == "" {
			c.Empty++
			return
		}
		texts[k], long = t, long || r.cfg.MaxWords > 0 && len(strings.Fields(t)) > r.cfg.MaxWords
	}
	if garbled {
		r.bad(&c.Garbled, wrong(errors.New("it is not UTF-8: save the file as UTF-8 (iconv -f LATIN1 -t UTF-8 does it "+
			"of what is Latin-1)")))
	}
	if long {
		c.Long++
	}
	r.set.add(texts)
}
