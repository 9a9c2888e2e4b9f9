package report

import "html/template"

// Fact is a line of the head of the page.
type Fact struct{ Name, Value string }

// Setting is a key of the configuration with a value that is not the default.
type Setting struct{ Path, Value, Default string }

// Data is what a page shows. Everything but the title may be missing.
type Data struct {
	Title       string
	Facts       []Fact    // of the run: system, data, steps, time
	Settings    []Setting // keys unlike the defaults
	Environment []Fact    // of the machine
	Notes       []string  // sentences on what was left out and why

	Curves *Curves
	Batch  int  // pairs that are compared with each other, for the chance level of the contrast; 0: none
	Queued bool // the contrast with the teacher compares them with a queue too, so that its chance level is another

	Scores  *Table    // final evaluation
	Classes []Classes // of the last evaluation, for each task that tells classes

	Sentences *Sentences // of the last evaluation on sentence pairs

	Features *Features
	Pairs    *Features // of a model that compares tokens: N, Captions, IDs, Split, Score and its name alone
	Metrics  []Metric  // learned metrics of pairs
}

// Table is a table of the page; the first column is text.
type Table struct {
	Title string
	Head  []string
	Rows  []Line
	Note  string // sentence under it
}

// Line is a row of a table.
type Line struct{ Cells []Cell }

// Cell is a field of a table.
type Cell struct {
	Text  string
	Minor string // smaller, behind the text
	Best  bool   // marked as the best of its column
	Tied  bool   // marked as not told apart from the best
}

// Texts returns a line of plain cells.
func Texts(cells ...string) Line {
	var l Line
	for _, s := range cells {
		l.Cells = append(l.Cells, Cell{Text: s})
	}
	return l
}

// Scorer writes the scores of n images and t texts, rows of features, to dst (n, t).
type Scorer func(images []float32, n int, texts []float32, t int, dst []float32) error

// Features are images and their captions in the space where the model compares them.
type Features struct {
	N, C     int
	Images   []float32 // (N, C); of a model of texts alone these are its texts
	OfTexts  bool      // they are
	Texts    []float32 // (N, C), row i of the caption of image i; nil: a model of one side alone
	Captions []string  // N, shown at the points; may be nil
	IDs      []int64   // N, equal where an image is a right answer for the caption of another; may be nil
	Split    string    // that they are from

	// Score is the model's own score of pairs; nil where it is the cosine. ScoreName says
	// what it is.
	Score     Scorer
	ScoreName string

	Labels    []string // N, the attribute that colours the scatter; nil: none
	Attribute string   // its name
	// Numbers are set in place of Labels where the attribute is a quantity.
	Numbers []float64
	// Palette gives labels a colour of their own, #rrggbb.
	Palette map[string]string
	Seed    uint64 // of the t-SNE
}

// Forms of a learned metric.
const (
	Diag      = "diag"       // one weight per channel
	BlockDiag = "block_diag" // one matrix per block of channels
	Dense     = "dense"      // one matrix
)

// Metric is a learned metric x^T W y of pairs.
type Metric struct {
	Name    string
	Form    string
	C       int       // channels
	Blocks  int       // of BlockDiag
	Rank    int       // of Dense: it began as the first Rank rows of the identity; 0: all
	Weights []float32 // Diag (C), BlockDiag (Blocks, C/Blocks, C/Blocks), Dense (C, C)
}

// panel is a picture with a sentence under it.
type panel struct {
	SVG     template.HTML
	Caption string
	Below   template.HTML // under the sentence
	Wide    bool
}

// section is a part of the page.
type section struct {
	ID, Title string
	Intro     string // how to read it
	Panels    []panel
	Tables    []Table
	Legend    template.HTML
	Small     bool   // panels are narrow
	Single    bool   // one panel beside no other
	Cards     bool   // panels are examples
	Missing   string // why there is nothing else
}
