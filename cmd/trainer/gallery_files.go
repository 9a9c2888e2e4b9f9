package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/search"
)

func newGalleryExportCommand() *cobra.Command {
	var to, in, metric string
	c := &cobra.Command{
		Use:   "export GALLERY",
		Short: "Write the rows of a gallery to a file for another program",
		Long: `export writes the rows of a gallery, those that were put since it was embedded too, as the
ending of the file says:

  .npy      a matrix of float32, for NumPy
  .parquet  columns id, name, caption, payload (JSON) and features (a list), for DuckDB
  .csv      the same columns, for the COPY of PostgreSQL with pgvector
  .faiss    a flat index for FAISS: of inner products, with rows of length 1 where they are
            compared by the cosine; of distances where they are compared by l2

Beside .npy and .faiss FILE.jsonl has a line for each row. Rows are as texts are compared with
images, or images with texts, by the model's score; of one side or of a file as they are.`,
		Example: `  trainer gallery export gallery --to gallery.parquet
  trainer gallery export gallery --to gallery.faiss --in text`,
		Args: oneGallery,
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(gallery.ExportKinds, filepath.Ext(to)) {
				return usageError{fmt.Errorf("--to must name a file that ends in %s (got %q)",
					strings.Join(gallery.ExportKinds, ", "), to)}
			}
			g, err := gallery.Open(args[0])
			if err != nil {
				return err
			}
			defer g.Close()
			if metric != "" {
				if err := g.CompareBy(search.Metric(metric)); err != nil {
					return usageError{fmt.Errorf("--metric: %w", err)}
				}
			}
			side, err := sideOf(g, in)
			if err != nil {
				return err
			}
			s := lookup{g: g, side: side}
			view, err := g.View(side, s.other())
			if err != nil {
				return err
			}
			n, err := view.Export(c.Context(), to)
			if err == nil {
				fmt.Fprintf(c.OutOrStdout(), "%s of %s of %d channels, compared by %s, in %s\n", words.Count(n, "row"),
					side, g.Dim(), view.Metric(), to)
			}
			return err
		},
	}
	c.Flags().StringVar(&to, "to", "", "`FILE` to write: .npy, .parquet, .csv or .faiss")
	c.Flags().StringVar(&in, "in", "", "image or text: the rows to write (default image where there are both)")
	c.Flags().StringVar(&metric, "metric", "",
		"cosine, inner or l2: how rows without a model are compared (default cosine)")
	return c
}

func newGalleryImportCommand() *cobra.Command {
	var o embed.ImportOptions
	var out string
	var quiet bool
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Make rows of features of another program a gallery",
		Long: `import makes a gallery of the rows of a file: .npy, .npz, .safetensors, .pt or .parquet. What is
known of the rows is, where it is there,

  - in FILE.jsonl, a JSON object for each row: {"id": "a", "payload": {"split": "test"}}
  - of a Parquet file in its columns id, name, caption and payload (JSON).

search and serve find its rows by vectors and by each other, and with --checkpoint by what that
model encodes; gallery put and delete change it.`,
		Example: `  trainer gallery import vectors.npy --out gallery
  trainer gallery import vectors.parquet --tensor embedding --side text --out gallery`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s needs FILE: rows of features (got %d arguments)", c.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case out == "":
				return usageError{fmt.Errorf("import needs --out: a new folder")}
			case o.Side != gallery.Image && o.Side != gallery.Text:
				return usageError{fmt.Errorf("--side must be image or text (got %q)", o.Side)}
			case o.Shard < 1:
				return usageError{fmt.Errorf("--shard must be at least 1 (got %d)", o.Shard)}
			}
			bar := newPhaseBar(c.ErrOrStderr(), quiet)
			defer bar.done()
			o.Say = func(format string, args ...any) { fmt.Fprintf(c.ErrOrStderr(), format+"\n", args...) }
			o.Progress = func(done, of int) { bar.show("writing rows", done, of) }
			n, err := embed.ImportRows(c.Context(), args[0], out, o)
			if bar.done(); err == nil {
				fmt.Fprintf(c.OutOrStdout(), "%s has %s\n", out, words.Count(n, "row"))
			}
			return err
		},
	}
	c.Flags().StringVar(&out, "out", "", "`folder` to write, which is new")
	c.Flags().StringVar(&o.Side, "side", gallery.Image, "image or text: what the rows are of")
	c.Flags().StringVar(&o.Tensor, "tensor", "", "`name` of the tensor or column of the features; default: the only one")
	c.Flags().IntVar(&o.Shard, "shard", 100_000, "`rows` of a shard")
	c.Flags().BoolVar(&quiet, "quiet", false, "no progress")
	return c
}
