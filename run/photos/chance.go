package photos

import (
	"context"
	"io"
	"path/filepath"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// nothingToSee are texts that no picture shows, of one word to ten. What they find is what chance finds: the nearest
// pictures of a query that no picture answers.
var nothingToSee = []string{
	"although", "nevertheless", "seventeen percent", "a valid argument", "interest rates", "the day before yesterday",
	"an irregular verb", "in accordance with the rules", "the second derivative", "a clause of the contract",
	"patience", "they might have known better", "the probability of an error", "as mentioned above",
	"a change of opinion", "whether or not it matters", "the price of an option", "an unpaid invoice", "by all means",
	"the meaning of a word", "further questions remain", "not before next quarter", "a majority of votes",
	"the right to appeal", "it depends on the definition", "an average of three values", "the terms and conditions apply",
	"inflation is expected to rise again", "the theorem follows by induction", "the plural of a foreign noun",
	"please reply as soon as possible", "the argument was not convincing to anyone", "a shortage of qualified applicants",
	"what he said turned out to be false", "the committee postponed its decision", "the agreement expires at the end of the year",
	"there is no evidence for this claim", "his reasons were never fully explained", "the sum of two odd numbers is even",
}

// Chance says how a query compares with texts that no picture shows.
type Chance struct {
	Texts int     `json:"texts"` // that were compared
	Above int     `json:"above"` // of these, whose best picture scores at least as high as that of the query
	Best  float64 `json:"best"`  // score of the query
	P     float64 `json:"p"`     // (Above+1) / (Texts+1)
}

// chanceLevel is the largest P of a query that is better than chance.
const chanceLevel = 0.05

// Better says whether the best picture is nearer to the query than to all but few texts that no picture shows.
func (c *Chance) Better() bool { return c.P <= chanceLevel }

// chance compares the best score of a text with those of texts that no picture shows.
func (u *Updated) chance(ctx context.Context, best float64) (*Chance, error) {
	x, err := u.chanceTexts(ctx)
	if err != nil {
		return nil, err
	}
	v, err := u.gallery.View(gallery.Image, gallery.Text)
	if err != nil {
		return nil, err
	}
	hits, err := v.Search(ctx, u.queries.Engine, x, gallery.Options{K: 1, Exact: true})
	if err != nil {
		return nil, err
	}
	c := &Chance{Texts: len(nothingToSee), Best: best}
	for _, s := range hits.Scores {
		if float64(s) >= best {
			c.Above++
		}
	}
	c.P = float64(c.Above+1) / float64(c.Texts+1)
	return c, nil
}

// chanceFile keeps their features beside the gallery, as to encode them takes longer than a query.
const chanceFile = "chance.safetensors"

// chanceTexts returns the features of nothingToSee (n, C).
func (u *Updated) chanceTexts(ctx context.Context) ([]float32, error) {
	path := filepath.Join(u.Gallery, chanceFile)
	dim, of := u.gallery.Dim(), u.model.Path()+" "+u.model.Weights()
	if x := readChance(path, of, dim); x != nil {
		return x, nil
	}
	x, err := u.queries.Texts(ctx, nothingToSee)
	if err != nil {
		return nil, err
	}
	t := []safetensors.Tensor{{Name: gallery.Text, Shape: []int{len(nothingToSee), dim}, Data: x}}
	_ = files.ReplaceFrom(path, func(w io.Writer) error { // else they are encoded another time
		return safetensors.WriteSummed(w, t, map[string]string{"of": of, "version": chanceVersion})
	})
	return x, nil
}

// chanceVersion is another one when nothingToSee is.
const chanceVersion = "1"

// readChance returns what the file has, nil where that is of another model, damaged or not there.
func readChance(path, of string, dim int) []float32 {
	if safetensors.CheckFile(context.Background(), path) != nil {
		return nil
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	x := make([]float32, len(nothingToSee)*dim)
	info, ok := f.Lookup(gallery.Text)
	if m := f.Metadata(); !ok || m["of"] != of || m["version"] != chanceVersion ||
		len(info.Shape) != 2 || info.Shape[0] != len(nothingToSee) || info.Shape[1] != dim {
		return nil
	}
	if err := f.ReadFloat32(gallery.Text, x); err != nil {
		return nil
	}
	return x
}
