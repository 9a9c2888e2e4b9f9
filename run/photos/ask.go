package photos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/embed"
)

// Term is a text or a picture of a query.
type Term struct {
	Minus bool   `json:"minus,omitempty"`
	Text  string `json:"text,omitempty"`
	Image string `json:"image,omitempty"` // file
}

// Terms reads a query: words and files of pictures with + and - between them, each an argument of its own. Words that
// stand beside each other are one text.
func Terms(args ...string) (list []Term, err error) {
	open := false // words that follow belong to the last text
	minus, sign := false, ""
	for _, arg := range args {
		switch {
		case (arg == "+" || arg == "-") && sign != "":
			return nil, console.Argument("%s %s: one of them, with a text or a picture behind it", sign, arg)
		case arg == "-" && len(list) == 0:
			return nil, console.Argument("a query begins with what is looked for: put what is not behind it")
		case arg == "+", arg == "-":
			open, minus, sign = false, arg == "-", arg
			continue
		case strings.TrimSpace(arg) == "":
			return nil, console.Argument("a text of the query is empty")
		case isFile(arg):
			list, open = append(list, Term{Minus: minus, Image: arg}), false
		case images.IsName(arg) && !strings.Contains(arg, " "):
			return nil, console.Argument("there is no picture %q: name a file that is there", arg)
		case open:
			list[len(list)-1].Text += " " + arg
		default:
			list, open = append(list, Term{Minus: minus, Text: arg}), true
		}
		minus, sign = false, ""
	}
	if sign != "" {
		return nil, console.Argument("%s has nothing behind it: give a text or a picture", sign)
	}
	return list, nil
}

// isFile says whether there is a file of a picture.
func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir() && images.IsName(path)
}

// Hit is a picture that was found.
type Hit struct {
	Rank  int     `json:"rank"`
	Score float64 `json:"score"`
	Name  string  `json:"name"` // path from the folder
	Path  string  `json:"path"`
}

// Answer is the pictures that a query found.
type Answer struct {
	Query  []Term `json:"query"`
	Images int    `json:"images"` // that were compared
	// Score says what the scores are: that of the model for one term; for several, what adds and subtracts.
	Score  string  `json:"score"`
	Hits   []Hit   `json:"hits"`
	Chance *Chance `json:"chance,omitempty"`        // of one text
	Words  []Words `json:"unknown_words,omitempty"` // that the vocabulary lacks
}

// Words are words of a text that the model does not know.
type Words struct {
	Text  string   `json:"text"`
	Words []string `json:"words"`
}

// Standardised is Answer.Score of several terms.
const Standardised = "sum of standardised scores"

// Ask finds the limit pictures that are nearest to a query. All pictures are compared. Of one term the score is that of
// the model. Of several the scores of each over the gallery are standardised, to mean 0 and deviation 1, and added with
// their signs: so a text weighs as much as a picture, whose scores spread more. A picture of the gallery is not found by
// itself.
func (u *Updated) Ask(ctx context.Context, terms []Term, limit int) (*Answer, error) {
	if len(terms) == 0 || limit < 1 {
		return nil, console.Argument("a query has a text or a picture, and at least one hit")
	}
	if err := u.openQueries(); err != nil {
		return nil, err
	}
	n := u.gallery.Rows(gallery.Image)
	a := &Answer{Query: terms, Images: n}
	total, skip := make([]float64, n), map[int]bool{}
	for _, t := range terms {
		scores, metric, err := u.score(ctx, t, skip)
		if err != nil {
			return nil, err
		}
		a.Score = metric
		if t.Text != "" {
			if list := u.unknown(t.Text); len(list) > 0 {
				a.Words = append(a.Words, Words{t.Text, list})
			}
			if len(terms) == 1 {
				if a.Chance, err = u.chance(ctx, slices.Max(scores)); err != nil {
					return nil, err
				}
			}
		}
		if len(terms) > 1 {
			standardise(scores)
			a.Score = Standardised
		}
		for i, s := range scores {
			if t.Minus {
				s = -s
			}
			total[i] += s
		}
	}
	order := make([]int, 0, len(total))
	for i := range total {
		if !skip[i] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case total[i] > total[j]:
			return -1
		case total[i] < total[j]:
			return 1
		}
		return 0
	})
	for rank, i := range order[:min(limit, len(order))] {
		item, err := u.gallery.Item(gallery.Image, i)
		if err != nil {
			return nil, err
		}
		a.Hits = append(a.Hits, Hit{rank + 1, total[i], item.Name, u.path(item.Name)})
	}
	if len(a.Hits) == 0 {
		return nil, errors.New("there is no other picture than that of the query")
	}
	return a, nil
}

// path is where a picture of the gallery lies.
func (u *Updated) path(name string) string { return filepath.Join(u.Folder, filepath.FromSlash(name)) }

// openQueries opens gallery and model.
func (u *Updated) openQueries() (err error) {
	if u.gallery == nil {
		if u.gallery, err = gallery.Open(u.Gallery); err != nil {
			return err
		}
	}
	if u.queries == nil {
		u.queries, err = embed.NewQueries(u.gallery, u.model)
	}
	return err
}

// score returns the scores of a term with all pictures, and their metric. A picture of the gallery is noted in skip.
func (u *Updated) score(ctx context.Context, t Term, skip map[int]bool) ([]float64, string, error) {
	from, query := gallery.Text, []float32(nil)
	var err error
	if t.Image != "" {
		from = gallery.Image
		query, err = u.picture(ctx, t.Image, skip)
	} else if err = u.queries.Reads(gallery.Text); err == nil {
		if _, err = u.queries.Tokens(t.Text); err == nil {
			query, err = u.queries.Texts(ctx, []string{t.Text})
		}
	} else {
		err = fmt.Errorf("%s reads no texts: ask by a picture, or name a model of images and texts with --model", u.Model)
	}
	if err != nil {
		return nil, "", err
	}
	v, err := u.gallery.View(gallery.Image, from)
	if err != nil {
		return nil, "", err
	}
	hits, err := v.Search(ctx, u.queries.Engine, query, gallery.Options{K: v.Rows(), Exact: true})
	if err != nil {
		return nil, "", err
	}
	scores := make([]float64, v.Rows())
	rows, of := hits.Of(0)
	for i, row := range rows {
		scores[row] = float64(of[i])
	}
	return scores, string(v.Metric()), nil
}

// picture encodes a picture. One of the gallery has a row already.
func (u *Updated) picture(ctx context.Context, path string, skip map[int]bool) ([]float32, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(path)
	for i, name := range u.names {
		if filepath.Base(filepath.FromSlash(name)) != base {
			continue
		}
		if own, err := os.Stat(u.path(name)); err != nil || !os.SameFile(st, own) {
			continue
		}
		// another command may have changed the gallery since
		if item, err := u.gallery.Item(gallery.Image, i); err == nil && item.Name == name {
			skip[i] = true
			return u.gallery.Row(gallery.Image, i)
		}
	}
	m, err := images.DecodeFile(path, u.model.Config.Data.MaxPixels)
	if err != nil {
		return nil, err
	}
	own, _, err := u.queries.Images(ctx, []*transform.Image{m})
	return own, err
}

// unknown lists the words of a text that the vocabulary lacks.
func (u *Updated) unknown(text string) (list []string) {
	if u.model.Tokenizer == nil {
		return nil
	}
	cleaned, err := u.queries.Caption(text)
	if err != nil {
		return nil
	}
	for _, w := range strings.Fields(cleaned) {
		if data.CountUnknown(u.model.Tokenizer, u.model.Tokenizer.Encode(w, 0)) > 0 && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// standardise brings numbers to mean 0 and standard deviation 1; such as are all alike, to 0.
func standardise(x []float64) {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	deviation := math.Sqrt(square)
	for i := range x {
		if x[i] -= mean; deviation > 1e-9 {
			x[i] /= deviation
		} else {
			x[i] = 0
		}
	}
}

// ReadsTexts says whether queries can be texts.
func (u *Updated) ReadsTexts() bool {
	return !u.model.Config.Has(section.ImagesAlone)
}

// Linked lists the folders outside that pictures lie in when links are followed.
func (u *Updated) Linked() (list []string) {
	seen := map[string]bool{}
	for _, name := range u.names {
		real, err := filepath.EvalSymlinks(u.path(name))
		dir := filepath.Dir(real)
		if err != nil || seen[dir] {
			continue
		}
		seen[dir] = true
		if rel, err := filepath.Rel(u.Folder, dir); err != nil || !filepath.IsLocal(rel) {
			list = append(list, dir)
		}
	}
	return list
}
