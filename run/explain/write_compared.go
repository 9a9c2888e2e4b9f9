package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/explain"
	pages "github.com/geoalign/geoalign/report"
)

// mostRegions is how many patches or regions are shown with the words that they look at.
const mostRegions = 6

// compared adds what the score of an interaction is made of: words with what they look at, the strongest
// patches or regions with the words, and the whole table of each direction.
func (f *explainFolder) compared(r Relevance) error {
	c := r.Compared
	if c == nil {
		return nil
	}
	part := f.e.part()
	s := pages.ExplainedScore{ID: "words", Title: "What words look at", Small: true,
		Intro: lookIntro(c.asking(false), "word", part)}
	for i, m := range r.WordMaps {
		w := r.Words[i]
		if w.Special {
			continue
		}
		name := fmt.Sprintf("pair-word-%02d%s.png", i, plainName(w.Text))
		if err := f.heatSmall(&s.Pictures, name, m, pages.Picture{Alt: "what the word " + w.Text + " looks at",
			Caption: w.Text}); err != nil {
			return err
		}
	}
	f.page.Parts = append(f.page.Parts, s)
	if err := f.strongest(r); err != nil {
		return err
	}
	t := pages.ExplainedScore{ID: "terms", Title: "The score as a sum", Intro: sumIntro(c, part, r.Score)}
	for _, x := range c.Terms {
		h := c.heatmap(x)
		m, err := h.Draw()
		if err != nil {
			return err
		}
		if err := f.picture(fmt.Sprintf("pair-%s.png", strings.ReplaceAll(Direction(x), "_", "-")), m); err != nil {
			return err
		}
		t.Tables = append(t.Tables, pages.HeatTable{Heatmap: h, Title: title(x, part), Caption: sumOf(x)})
	}
	f.page.Parts = append(f.page.Parts, t)
	return nil
}

// strongest adds the patches or regions that add most, each with the words that it looks at.
func (f *explainFolder) strongest(r Relevance) error {
	c, part := r.Compared, f.e.part()
	order := make([]int, len(r.Image.Values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.Image.Values[b], r.Image.Values[a]) })
	s := pages.ExplainedScore{ID: "regions", Title: "What the strongest regions look at", Small: true,
		Intro: lookIntro(c.asking(true), part, "word")}
	if part == "patch" {
		s.ID, s.Title = "patches", "What the strongest patches look at"
	}
	for _, i := range order[:min(mostRegions, len(order))] {
		one := explain.Map{Values: make([]float64, len(order)), Rows: r.Image.Rows, Columns: r.Image.Columns}
		one.Values[i] = 1
		name, words := fmt.Sprintf("pair-%s-%02d", part, i), c.ofImage(i)
		if err := f.heatSmall(&s.Pictures, name+".png", one,
			pages.Picture{Alt: fmt.Sprintf("%s %d", part, i), Caption: fmt.Sprintf("%s %d", part, i),
				Words: words}); err != nil {
			return err
		}
		if err := f.strip(name+"-words.png", words); err != nil {
			return err
		}
	}
	f.page.Parts = append(f.page.Parts, s)
	return nil
}

// lookIntro says what is shown for each word, patch or region (from): what it looks at, or where it asks
// nothing in the model, what looks at it.
func lookIntro(t explain.Terms, from, to string) string {
	asks := t.ImageQueries == (from != "word")
	says := fmt.Sprintf("The products of each %s with all %s, where they are above 0; the largest one counts.", from,
		plural(to))
	switch {
	case t.Attends && asks:
		says = fmt.Sprintf("The attention of each %s: its weights over all %s.", from, plural(to))
	case t.Attends:
		says = fmt.Sprintf("In this model %s attend to %s alone: this is how strongly each %s attends to the %s.",
			plural(to), plural(from), to, from)
	case !asks:
		says = fmt.Sprintf("The products of each %s with all %s, where they are above 0; the largest one of each %s counts.", from, plural(to), to)
	}
	return says + " Each map is scaled by its own largest value."
}

func plural(s string) string {
	if s == "patch" {
		return "patches"
	}
	return s + "s"
}

// title names a direction.
func title(t explain.Terms, part string) string {
	from, to := "Words", plural(part)
	if t.ImageQueries {
		from, to = strings.ToUpper(part[:1])+plural(part)[1:], "words"
	}
	if t.Attends {
		return fmt.Sprintf("%s attend to %s", from, to)
	}
	return fmt.Sprintf("%s and the nearest %s", from, to)
}

// sumIntro says how the terms become the score.
func sumIntro(c *Comparison, part string, score float64) string {
	query := "word"
	if c.Terms[0].ImageQueries {
		query = part
	}
	if len(c.Terms) == 2 {
		query = fmt.Sprintf("word, and of each %s", part)
	}
	s := fmt.Sprintf("Colours are the attention p of each %s. The term r is the cosine of it with what it sees, under the metric where the model has one. ", query)
	if !c.Terms[0].Attends {
		s = fmt.Sprintf("Colours are products of tokens; the framed one is the largest of each %s, and is its term r. ",
			query)
	}
	return s + fmt.Sprintf("A term times its weight is what it adds, and the sum is the score, %.4f.", score)
}

// sumOf writes the sum of a direction.
func sumOf(t explain.Terms) string {
	terms := 0.0
	for _, v := range t.Adds {
		terms += v
	}
	if t.Rest == 0 {
		return fmt.Sprintf("The terms add %.4f.", terms)
	}
	return fmt.Sprintf("The terms add %.4f, and the pool %.4f whatever they are (the entropy of the weights): together %.4f.", terms, t.Rest, t.Score())
}
