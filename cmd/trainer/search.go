package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/search"
)

// searchFlags are the flags of search.
type searchFlags struct {
	config configFlags
	output outputFlags

	checkpoint          string
	text, image, vector string
	textRows, imageRows string
	row, k              int
	in, metric, out     string
	exact               bool
	index               indexFlags

	filter   string
	offset   int
	minScore float64
	fields   []string
	vectors  bool
	chosen   *gallery.Filter // nil: all rows
	least    *float64        // nil: whatever score
}

// searchModes name what is searched for.
var searchModes = []string{"text", "image", "vector", "text-features", "image-features", "row"}

func newSearchCommand() *cobra.Command {
	var f searchFlags
	c := &cobra.Command{
		Use:   "search GALLERY",
		Short: "Search a gallery by text, image or features",
		Long: `search looks up a gallery that embed wrote, or a file of features (.npy, or .safetensors
with one tensor). The query is one of

  --text WORDS     encoded by the checkpoint that the gallery names, or by --checkpoint
  --image FILE     the same for an image (JPEG, PNG, WebP, GIF, BMP or TIFF)
  --vector FILE    features of the gallery's width: the rows of a .npy or .safetensors file
  --text-features FILE, --image-features FILE
                   rows of the encoder whose features the model reads (data.kind = "pairs"):
                   the checkpoint maps them as it mapped the gallery
  --row N          row N of the gallery, which is not found itself

Images are searched where the gallery has both sides; --in text searches its texts. A text
and an image are compared by the score of the model, two images or two texts by the cosine
(in Euclidean spaces by the distance).

Files are compared with the checksums that embed noted, in full where what the file system
says of them does not prove that they are as they were when they were last read; a damaged
gallery is an error that names the file.

Below 100,000 rows all are compared. From there on an index is built once and kept beside
the gallery; it is built anew when any row is another one. It finds most of the nearest
rows: the share that was measured when it was built (recall) is printed with the result.
--recall asks for another, --exact compares all rows. --index-codes bits makes an index of one
bit for each number, which takes about a sixth of the memory of bytes.

--filter chooses rows by what the gallery says of them, before they are compared, so that what
is found is exact:

  {"name": {"contains": "2023/"}}              a part of a text
  {"split": "test"}, {"split": {"in": [...]}}  equal to this, or to one of these
  {"row": {"gte": 100, "lt": 200}}             a range, of numbers or texts
  {"caption": {"exists": true}}                there is such a key
  {"and": [A, B]}, {"or": [A, B]}, {"not": A}

Keys are those of the lines of the gallery (row, name, caption, image_id, line) and of their
payload, an object of anything. --offset and --min-score leave hits out, --fields shows these
keys of a hit.`,
		Example: `  trainer search runs/quickstart/embeddings-test --text "a small red star and a big blue ring"
  trainer search gallery --image query.jpg --k 20 --json
  trainer search gallery --row 17 --out like17.png
  trainer search gallery --text "a dog" --filter '{"name": {"contains": "2023/"}}' --min-score 0.25
  trainer search image.npy --vector query.npy --exact
  trainer search image.npy --row 17 --metric l2
  trainer search gallery --text-features query.npy
  trainer search captions --image photo.jpg --checkpoint runs/flickr8k`,
		Args: oneGallery,
		RunE: func(c *cobra.Command, args []string) error { return f.execute(c, args[0]) },
	}
	f.config.add(c)
	overCheckpoint(c)
	f.config.addPrompt(c)
	f.output.add(c)
	addGalleryFlags(c, &f.checkpoint, &f.in, &f.index)
	c.Flags().StringVar(&f.text, "text", "", "search for a text")
	c.Flags().StringVar(&f.image, "image", "", "search for an image `file`")
	c.Flags().StringVar(&f.textRows, "text-features", "",
		"search for the rows of a `file` of text features, mapped by the checkpoint")
	c.Flags().StringVar(&f.imageRows, "image-features", "",
		"search for the rows of a `file` of image features, mapped by the checkpoint")
	c.Flags().StringVar(&f.vector, "vector", "", "search for the rows of a `file` of features")
	c.Flags().IntVar(&f.row, "row", 0, "search for row `N` of the gallery, counted from 0")
	c.Flags().IntVar(&f.k, "k", 10, "rows to find")
	c.Flags().StringVar(&f.metric, "metric", "",
		"cosine, inner or l2: how the rows of a file of features are compared (default cosine); a model's gallery has its own score")
	c.Flags().StringVar(&f.filter, "filter", "", "`JSON` of the rows that may be found; all are compared")
	c.Flags().IntVar(&f.offset, "offset", 0, "hits to pass over")
	c.Flags().Float64Var(&f.minScore, "min-score", 0, "least `score` of a hit (default: any)")
	c.Flags().StringSliceVar(&f.fields, "fields", nil, "`keys` to show of a hit, with commas between (default: its name or caption)")
	c.Flags().BoolVar(&f.vectors, "with-vector", false, "give the features of hits too; with --json")
	c.Flags().BoolVar(&f.exact, "exact", false, "compare all rows, and use no index")
	c.Flags().StringVar(&f.out, "out", "", "`file` to draw the images of the hits to, .png or .jpg")
	return c
}

// oneGallery asks for one argument.
func oneGallery(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs one GALLERY: a folder that embed wrote, or a file of features (got %d arguments)",
			c.CommandPath(), len(args))
	}
	return nil
}

// addGalleryFlags declares what search and serve share.
func addGalleryFlags(c *cobra.Command, checkpoint, in *string, index *indexFlags) {
	c.Flags().StringVar(checkpoint, "checkpoint", "",
		"run or step `folder` that encodes queries (default: the one that the gallery names)")
	c.Flags().StringVar(in, "in", "", "image or text: the rows to search (default image where there are both)")
	index.add(c)
}

// check refuses flags that do not go together and returns the kind of query.
func (f *searchFlags) check(c *cobra.Command) (mode string, err error) {
	for i, name := range searchModes {
		if err := apart(c, name, searchModes[i+1:]...); err != nil {
			return "", err
		}
		if c.Flags().Changed(name) {
			mode = name
		}
	}
	switch {
	case mode == "":
		return "", usageError{errors.New(
			"search needs one of --text, --image, --vector, --text-features, --image-features and --row: what to search for")}
	case f.k < 1:
		return "", usageError{fmt.Errorf("--k must be at least 1 (got %d)", f.k)}
	case f.offset < 0:
		return "", usageError{fmt.Errorf("--offset must be at least 0 (got %d)", f.offset)}
	}
	if err := f.index.check(c); err != nil {
		return "", err
	}
	if c.Flags().Changed("filter") {
		if f.chosen, err = gallery.ParseFilter([]byte(f.filter)); err != nil {
			return "", usageError{fmt.Errorf("--%w", err)}
		}
		if err := apart(c, "filter", "recall", "index-codes"); err != nil {
			return "", err
		}
	}
	if f.out != "" {
		if _, err := encoderOf(f.out); err != nil {
			return "", err
		}
	}
	if f.vectors && !f.output.json {
		return "", usageError{errors.New("--with-vector needs --json: features are not shown in a table")}
	}
	if c.Flags().Changed("min-score") {
		f.least = &f.minScore
	}
	if mode == "row" || mode == "vector" { // no model is opened
		if err := apart(c, mode, "checkpoint", "config", "set", "seed"); err != nil {
			return "", err
		}
	}
	return mode, apart(c, "exact", "recall", "index-codes")
}

func (f *searchFlags) execute(c *cobra.Command, path string) error {
	mode, err := f.check(c)
	if err != nil {
		return err
	}
	g, err := gallery.Open(path)
	if err != nil {
		return err
	}
	defer g.Close()
	if f.metric != "" {
		if err := g.CompareBy(search.Metric(f.metric)); err != nil {
			return usageError{fmt.Errorf("--metric: %w", err)}
		}
	}
	side, err := sideOf(g, f.in)
	if err != nil {
		return err
	}
	s := &lookup{g: g, side: side, flags: f, open: opening(c, &f.config, f.output.quiet)}
	defer s.close()
	if err := s.query(c.Context(), mode); err != nil {
		return err
	}
	view, err := g.View(side, s.from)
	if err != nil {
		return err
	}
	if side != s.from && !view.Scored() {
		fmt.Fprintf(f.output.note(c), "note: the score %s is not a product of features: rows are compared by the %s\n",
			g.Meta.Score, view.Metric())
	}
	if !f.exact && f.chosen == nil {
		bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet)
		defer bar.done()
		note := f.output.note(c)
		err := view.UseIndex(c.Context(), s.engine, f.index.options(bar, note))
		bar.done()
		if err != nil {
			return err
		}
		f.index.noteUnused(note, view.Rows())
	}
	result := found{Gallery: path, Side: side, Rows: view.Rows(), Metric: string(view.Metric())}
	result.Recall, result.Index = view.Indexed()
	result.RecallK, result.Codes = view.RecallK(), string(view.Codes())
	if err := s.search(c.Context(), view, &result); err != nil {
		return err
	}
	if f.out != "" {
		if err := s.draw(result, c); err != nil {
			return err
		}
	}
	if f.output.json {
		return printJSON(c.OutOrStdout(), result)
	}
	return result.print(c.OutOrStdout())
}

// sideOf returns the side of a gallery to search: that asked for, or the first.
func sideOf(g *gallery.Gallery, asked string) (string, error) {
	switch {
	case asked == "":
		return g.Sides()[0], nil
	case asked != gallery.Image && asked != gallery.Text:
		return "", usageError{fmt.Errorf("--in must be image or text (got %q)", asked)}
	case g.Rows(asked) == 0:
		return "", fmt.Errorf("%s has no rows of the side %s: it has %s", g.Path, asked,
			strings.Join(g.Sides(), " and "))
	}
	return asked, nil
}

// lookup is one search.
type lookup struct {
	g     *gallery.Gallery
	side  string // of the rows
	flags *searchFlags
	open  run.OpenOptions

	model   *embed.Queries  // nil where nothing is encoded
	engine  *compute.Engine // of the model, or its own
	queries []float32       // (Q, C)
	from    string          // side of the queries
	skip    []int32
}

// query finds the features to search for.
func (s *lookup) query(ctx context.Context, mode string) (err error) {
	s.from = s.side
	switch mode {
	case "row":
		s.queries, err = s.g.Row(s.side, s.flags.row)
		s.skip = []int32{int32(s.flags.row)}
	case "vector":
		s.from = s.other()
		s.queries, err = readRows(s.flags.vector, s.g)
	default: // what the model encodes
		if s.model, err = embed.OpenQueries(s.g, s.flags.checkpoint, s.open); err != nil {
			return err
		}
		s.engine, s.from = s.model.Engine, strings.TrimSuffix(mode, "-features")
		switch mode {
		case "text":
			s.queries, err = s.encodeText(ctx)
		case "image":
			s.queries, err = s.encodeImage(ctx)
		case "text-features":
			s.queries, err = s.encodeRows(ctx, s.flags.textRows)
		case "image-features":
			s.queries, err = s.encodeRows(ctx, s.flags.imageRows)
		}
	}
	if err != nil || s.engine != nil {
		return err
	}
	s.engine, err = setup.Engine(config.Default())
	return err
}

// other is the side that vectors are of: the other one where the rows are compared with it.
func (s *lookup) other() string {
	if s.g.Meta.Score == "" {
		return s.side
	}
	if s.side == gallery.Image {
		return gallery.Text
	}
	return gallery.Image
}

// encodeRows maps the rows of a file of stored features.
func (s *lookup) encodeRows(ctx context.Context, path string) ([]float32, error) {
	own, folded, err := s.model.Rows(ctx, s.from, path, maxVectors)
	if s.from != s.side {
		return folded, err
	}
	return own, err
}

func (s *lookup) encodeText(ctx context.Context) ([]float32, error) {
	if err := s.model.Reads(gallery.Text); err != nil {
		return nil, err
	}
	if _, err := s.model.Tokens(s.flags.text); err != nil {
		return nil, err
	}
	return s.model.Texts(ctx, []string{s.flags.text})
}

func (s *lookup) encodeImage(ctx context.Context) ([]float32, error) {
	m, err := images.DecodeFile(s.flags.image, s.model.Config.Data.MaxPixels)
	if err != nil {
		return nil, err
	}
	own, folded, err := s.model.Images(ctx, []*transform.Image{m})
	if s.side == gallery.Text {
		return folded, err
	}
	return own, err
}

// maxVectors is the most queries of a file.
const maxVectors = 10_000

// readRows reads all rows of a file of features, as those of the gallery.
func readRows(path string, g *gallery.Gallery) ([]float32, error) {
	m, err := features.OpenMatrix(path, "")
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if m.Rows() > maxVectors {
		return nil, fmt.Errorf("--vector %s has %s: at most %s are searched for at once", path,
			words.Count(m.Rows(), "row"), words.Thousands(maxVectors))
	}
	var x []float32
	row := make([]float32, m.Width())
	for i := range m.Rows() {
		if err := m.Row(i, row); err != nil {
			return nil, err
		}
		own, err := g.Channels(row)
		if err != nil {
			return nil, fmt.Errorf("--vector %s: row %d %w: give features of the same model", path, i, err)
		}
		x = append(x, own...)
	}
	return x, nil
}

func (s *lookup) search(ctx context.Context, view *gallery.View, result *found) error {
	f := s.flags
	k := min(f.k+f.offset, view.Rows())
	if s.skip != nil {
		k = min(k, view.Rows()-1)
	}
	if k == 0 {
		return errors.New("the gallery has no other row than the query")
	}
	o := gallery.Options{K: k, Skip: s.skip, Exact: f.exact}
	if f.chosen != nil {
		rows, err := s.g.Select(s.side, f.chosen)
		if err != nil {
			return err
		}
		n := len(rows)
		o.Rows, result.Chosen = rows, &n
	}
	start := time.Now()
	hits, err := view.Search(ctx, s.engine, s.queries, o)
	if err != nil {
		return err
	}
	result.Seconds = time.Since(start).Seconds()
	for q := range len(s.queries) / s.g.Dim() {
		rows, scores := hits.Of(q)
		if f.least != nil {
			rows = rows[:gallery.Above(scores, *f.least)]
		}
		from := min(f.offset, len(rows))
		rows, scores = rows[from:], scores[from:]
		list := make([]hitRow, len(rows))
		for i, row := range rows {
			if list[i].Item, err = s.g.Item(s.side, int(row)); err != nil {
				return err
			}
			list[i].Score = scores[i]
			if f.vectors {
				if list[i].Vector, err = s.g.Row(s.side, int(row)); err != nil {
					return err
				}
			}
			if f.fields != nil {
				list[i].Item = gallery.Item{Row: int(row), ID: list[i].ID}
				if list[i].Fields, err = s.g.Fields(s.side, int(row), f.fields); err != nil {
					return err
				}
			}
		}
		result.Queries = append(result.Queries, list)
	}
	return nil
}

func (s *lookup) close() {
	switch {
	case s.model != nil:
		s.model.Close()
	case s.engine != nil:
		s.engine.Close()
	}
}
