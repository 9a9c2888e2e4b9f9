package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/photos"
)

// photosModel is the model of who names none: the smallest of images and texts that is good at photos.
const photosModel = "openai/clip-vit-base-patch32"

// photosFlags are the flags of photos.
type photosFlags struct {
	config configFlags
	output outputFlags

	model, gallery string
	limit          int
	serve          bool
	listen         string
}

func newPhotosCommand() *cobra.Command {
	var f photosFlags
	c := &cobra.Command{
		Use:   "photos FOLDER [QUERY...]",
		Short: "Search the pictures of a folder by words and by pictures",
		Long: `photos encodes the pictures of a folder, and of those that it links to, and finds those that
a query is nearest to. The next call encodes what is new or has changed alone: a picture that was
moved, copied or touched is known by its bytes, and those that are gone are no longer found.
Interrupted or killed, the same command goes on.

A query is words, a picture (more like this one), or several with + and - between them, each an
argument of its own:

  a dog on a beach             one text; quotes do no harm
  photo.jpg                    pictures like this one
  a dog + photo.jpg - grass    what is near to the text and to the picture, and not to grass

The score of one text or picture is that of the model. The scores of several are standardised over
the pictures (mean 0, deviation 1) before they are added and subtracted, so that each weighs the
same. All pictures are compared. A note says which words the vocabulary of the model lacks, and when
the best picture is not nearer to the text than to 19 of 20 texts that no picture shows, such as "an
unpaid invoice".

--model is a run, a folder of weights, or a name of the Hugging Face hub, which is fetched once. It
is needed once: a gallery keeps its model, and with another one all pictures are encoded anew.
Without one it is ` + photosModel + `.

A terminal that shows pictures (kitty, Ghostty, WezTerm, iTerm2) shows the hits. The folder stays
as it is: the gallery lies in the user's data folder (XDG_DATA_HOME), or where --gallery says.
search and serve read it too.`,
		Example: `  trainer photos pictures                               encode what is new
  trainer photos pictures a dog on a beach
  trainer photos pictures holiday.jpg --limit 5
  trainer photos pictures a dog + holiday.jpg - grass
  trainer photos pictures --model runs/flickr8k "two children" --json
  trainer photos pictures --serve                       http://127.0.0.1:8080`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("photos needs a FOLDER of pictures")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.execute(c, args[0], args[1:]) },
	}
	c.Flags().StringVar(&f.model, "model", "",
		"run, weights or `NAME` of the hub that encodes (default: that of the gallery, else "+photosModel+")")
	c.Flags().StringVar(&f.gallery, "gallery", "", "`folder` that keeps what is encoded (default: in the user's data folder)")
	c.Flags().IntVar(&f.limit, "limit", 10, "pictures to find")
	c.Flags().BoolVar(&f.serve, "serve", false, "answer searches on a page, until Ctrl-C; SIGHUP looks at the folder again")
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8080", "`address` of --serve on this machine; port 0 takes a free one")
	f.config.addSet(c)
	f.output.add(c)
	return c
}

// check reads the query and refuses flags that do not go together.
func (f *photosFlags) check(c *cobra.Command, query []string) ([]photos.Term, error) {
	switch {
	case f.limit < 1:
		return nil, usageError{fmt.Errorf("--limit must be at least 1 (got %d)", f.limit)}
	case f.serve && len(query) > 0:
		return nil, usageError{errors.New("--serve answers on a page: leave the query out")}
	case f.serve && f.output.json:
		return nil, usageError{errors.New("--serve and --json do not go together: leave one out")}
	case c.Flags().Changed("listen") && !f.serve:
		return nil, usageError{errors.New("--listen is of --serve: add it")}
	}
	return photos.Terms(query...)
}

func (f *photosFlags) execute(c *cobra.Command, folder string, query []string) error {
	terms, err := f.check(c, query)
	if err != nil {
		return err
	}
	update := func(ctx context.Context) (*photos.Updated, error) { return f.update(ctx, c, folder) }
	if f.serve {
		return f.serves(c, update)
	}
	u, err := update(c.Context())
	if err != nil {
		return err
	}
	defer u.Close()
	if len(terms) == 0 {
		if f.output.json {
			return printJSON(c.OutOrStdout(), u.Result)
		}
		return f.describe(c.OutOrStdout(), folder, u)
	}
	if note := changesOf(u.Result); note != "" {
		fmt.Fprintln(f.output.note(c), note)
	}
	a, err := u.Ask(c.Context(), terms, f.limit)
	if err != nil {
		return err
	}
	if f.output.json {
		return printJSON(c.OutOrStdout(), struct {
			*photos.Answer
			Gallery photos.Result `json:"gallery"`
		}{a, u.Result})
	}
	return f.print(c, a)
}

// update brings the gallery up to date.
func (f *photosFlags) update(ctx context.Context, c *cobra.Command, folder string) (*photos.Updated, error) {
	model := ""
	if f.model != "" {
		var err error
		if model, err = fetched(c, "model", f.model, f.output.quiet); err != nil {
			return nil, err
		}
	}
	bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet)
	defer bar.done()
	return photos.Update(ctx, folder, photos.Options{Dir: f.gallery, Model: model, Progress: bar.show,
		Open: opening(c, &f.config, f.output.quiet),
		Default: func() (string, error) {
			path, err := fetched(c, "model", photosModel, f.output.quiet)
			if err != nil {
				err = fmt.Errorf("the default model, %s, is not on this machine and cannot be fetched: fetch it once with a network, or name one that is here with --model (trainer models lists those of the hub): %w", photosModel, err)
			}
			return path, err
		}})
}

// serves answers on a page.
func (f *photosFlags) serves(c *cobra.Command, update func(ctx context.Context) (*photos.Updated, error)) error {
	var s serveFlags
	s.add(&cobra.Command{}) // for the values of what is not named here
	s.address, s.quiet, s.config = f.listen, f.output.quiet, f.config
	if here, err := local(f.listen); err == nil && !here {
		return usageError{fmt.Errorf("--listen %s can be reached from other machines: that is for trainer serve GALLERY --public", f.listen)}
	}
	u, err := update(c.Context()) // for the place of the gallery
	if err != nil {
		return err
	}
	if note := changesOf(u.Result); note != "" {
		fmt.Fprintln(f.output.note(c), note)
	}
	s.roots = u.Linked()
	path := u.Gallery
	if err := u.Close(); err != nil {
		return err
	}
	first := true
	s.before = func(ctx context.Context) error {
		if first {
			first = false
			return nil
		}
		u, err := update(ctx)
		if err != nil {
			return err
		}
		if note := changesOf(u.Result); note != "" {
			fmt.Fprintln(f.output.note(c), note)
		}
		return u.Close()
	}
	return s.execute(c, path)
}

// changesOf says in a line what an update did, nothing where that is nothing.
func changesOf(r photos.Result) string {
	var list []string
	if r.Encoded > 0 {
		list = append(list, fmt.Sprintf("%s encoded, %.1f a second", words.Count(r.Encoded, "picture"),
			float64(r.Encoded)/max(r.Seconds, 1e-9)))
	}
	for _, x := range []struct {
		n    int
		what string
	}{{r.Moved, "moved or copied"}, {r.Touched, "touched"}, {r.Removed, "removed"}} {
		if x.n > 0 {
			list = append(list, fmt.Sprintf("%s %s", words.Thousands(x.n), x.what))
		}
	}
	return strings.Join(list, ", ")
}

// describe says what the gallery has and how to ask it.
func (f *photosFlags) describe(out io.Writer, folder string, u *photos.Updated) error {
	if note := changesOf(u.Result); note != "" {
		fmt.Fprintln(out, note)
	}
	fmt.Fprintf(out, "%s has %s, encoded by %s in %s\n", folder, words.Count(u.Images, "picture"), u.Model, u.Gallery)
	if !u.Account.Whole() {
		fmt.Fprintf(out, "files: %s\n", u.Account)
	}
	ask := `"a dog on a beach"`
	if !u.ReadsTexts() {
		ask = "PICTURE"
	}
	_, err := fmt.Fprintf(out, "ask: trainer photos %s %s\n", folder, ask)
	return err
}

// print writes the hits, and what is to be known of them.
func (f *photosFlags) print(c *cobra.Command, a *photos.Answer) error {
	note := f.output.note(c)
	for _, w := range a.Words {
		fmt.Fprintf(note, "note: the vocabulary of the model lacks %s, which tells it nothing\n",
			words.Shown(strings.Join(w.Words, ", ")))
	}
	out, show := c.OutOrStdout(), inlineOf(c.OutOrStdout(), os.Getenv)
	fmt.Fprintln(out, "  rank    score")
	for _, h := range a.Hits {
		if _, err := fmt.Fprintf(out, "%6d  %7.4f  %s\n", h.Rank, h.Score, words.Shown(h.Path)); err != nil {
			return err
		}
		show.picture(h.Path)
	}
	if a.Score == photos.Standardised {
		fmt.Fprintf(note, "the score is the %s\n", a.Score)
	}
	if p := a.Chance; p != nil && !p.Better() {
		fmt.Fprintf(note, "note: no better than chance: %d of %d texts that no picture shows have a picture here with as high a score as %.4f\n", p.Above, p.Texts, p.Best)
	}
	return nil
}
