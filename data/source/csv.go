package source

import (
	"context"
	"unicode/utf8"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
)

// CSV names the tables of data.kind = "csv": a line with the names of the columns, then a row for each pair.
type CSV struct {
	SplitFiles
	// column of the path of the image, below data.root unless absolute; rows of one path are one image
	Image string `toml:"image"`
	// column of the caption; empty: the id is the caption, for images without words
	Caption string `toml:"caption"`
	// column of the id of the image, a whole number or a text: images of one id are right answers for each other;
	// empty: every image has its own
	ID string `toml:"id"`
	// column of the camera that took the image, any text; evaluation by identities ignores images of the query's id
	// and camera; empty: none are known
	Camera string `toml:"camera"`
	// column that says whether evaluation by identities searches with the image (query) or in it (gallery), nothing
	// for both (as in training tables, which have the column too); empty: every image is searched for all others
	Role string `toml:"role"`
	// character between columns; empty: a tab in files that end in .tsv, else a comma
	Separator string `toml:"separator"`
	// csv (a cell may stand in quotation marks, its own are then written twice) | none (quotation marks are characters
	// like any others: a line is a row)
	Quoting string `toml:"quoting"`
	// with quoting csv, a quotation mark inside of a cell without quotes is a character like any other, else an error
	LazyQuotes bool `toml:"lazy_quotes"`
}

// QuotingNone is data.csv.quoting of tables without any quoting.
const QuotingNone = "none"

// Defaults implements section.Defaulter.
func (f *CSV) Defaults() { *f = CSV{Image: "filepath", Caption: "title", Quoting: "csv"} }

// Check implements section.Checked.
func (f *CSV) Check(k *section.Checker) {
	splitFiles(k, "csv", section.Of[Data](k).Split.files(f.Split))
	k.Require("data.csv.image", f.Image != "", "must name a column")
	k.Require("data.csv.caption", f.Caption != "" || f.ID != "", "must name a column",
		"or name one in data.csv.id, which is then the caption")
	k.OneOf("data.csv.quoting", "csv", QuotingNone)
	k.Require("data.csv.lazy_quotes", !f.LazyQuotes || f.Quoting != QuotingNone,
		`must be false with data.csv.quoting = "none"`, "quotation marks mean nothing there")
	r, n := utf8.DecodeRuneInString(f.Separator)
	k.Require("data.csv.separator", n == len(f.Separator) &&
		(n == 0 || r != '"' && r != '\r' && r != '\n' && r != utf8.RuneError && r != 0),
		"must be one character, and no quotation mark or end of a line")
}

// Comma is the character between columns, 0 for that of the name of a file.
func (f CSV) Comma() rune {
	for _, r := range f.Separator {
		return r
	}
	return 0
}

// kind is data.kind = "csv".
func (*CSV) kind() Kind {
	return imageFiles(fileLists("csv", func(d Data, split string) []string { return d.Split.Files(split, d.CSV.Split) },
		func(_ context.Context, split string, paths []string, cfg Setup, o Options) (data.Cached, error) {
			c := cfg.Data.CSV
			return opened(data.LoadCSV(cfg.Data.Root, paths,
				data.CSVConfig{Image: c.Image, Caption: c.Caption, ID: c.ID,
					Camera: c.Camera, Role: c.Role, Comma: c.Comma(), LazyQuotes: c.LazyQuotes,
					Unquoted: c.Quoting == QuotingNone}, divided(cfg, split, options(cfg, o, "reading tables, in MiB"))))
		}))
}
