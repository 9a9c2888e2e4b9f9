package report

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

// ExamplesPage is the page of one evaluation of a task over examples: how often the answers are right, by what is
// asked, and some examples of both. Everything but the title may be missing.
type ExamplesPage struct {
	Title   string
	Facts   []Fact
	Notes   []string
	Kinds   []KindAccuracy // by what is asked, in the order of the page; nil: there is one kind
	Classes *Classes       // what each class was taken for; nil: answers are no classes
	Tables  []Table        // other numbers of the task, beside Kinds
	Wrong   []Example
	Right   []Example
}

// KindAccuracy is how often the answers to one kind of question are right, in percent.
type KindAccuracy struct {
	Kind     string
	Number   int     // of examples
	Accuracy float64 // percent
	Baseline float64 // percent, of the commonest answer to the kind; below 0: unknown
}

// Example is a card of the page. Texts that are empty are left out.
type Example struct {
	Name     string    // of the example in its data
	Kind     string    // of what is asked
	Pictures []Picture // that it is about, and maps of what the answer rests on; side by side
	Text     string    // question, hypothesis, statement or expression
	Answer   string    // of the model
	Truth    string    // the right one, or several
	Right    bool
	Scores   []AnswerScore // of the best few answers, the best first
}

// AnswerScore is what a model gives to an answer: a share from 0 to 1, which is drawn as a bar, or another number.
type AnswerScore struct {
	Answer string
	Score  float64
	True   bool // the right one, or one of them
}

// WriteExamples writes such a page.
func WriteExamples(w io.Writer, x ExamplesPage) error {
	p := page{Title: x.Title, Kind: "evaluation with examples", Facts: x.Facts, Notes: x.Notes}
	var classes section
	if x.Classes != nil {
		var err error
		if classes, err = classSection(Data{Classes: []Classes{*x.Classes}}); err != nil {
			return err
		}
	}
	p.show(x.accuracy(), classes, cards("wrong", "Wrong answers", x.Wrong), cards("right", "Right answers", x.Right))
	return p.write(w)
}

// accuracy draws the accuracy by kind and lists it with the other tables.
func (x ExamplesPage) accuracy() section {
	s := section{ID: "accuracy", Title: "Accuracy"}
	if len(x.Kinds) > 0 {
		bars := Bars{Title: "accuracy by kind, %"}
		table := Table{Head: []string{"kind", "number", "accuracy, %", "commonest answer, %"}}
		for _, k := range x.Kinds {
			bars.Bars = append(bars.Bars, Bar{Name: k.Kind, Mean: k.Accuracy, Spread: math.NaN()})
			baseline := ""
			if k.Baseline >= 0 {
				baseline = fmt.Sprintf("%.1f", k.Baseline)
			}
			table.Rows = append(table.Rows, Texts(k.Kind, fmt.Sprint(k.Number), fmt.Sprintf("%.1f", k.Accuracy),
				baseline))
		}
		s.Panels = append(s.Panels, panel{SVG: bars.draw(), Wide: true})
		s.Tables = append(s.Tables, table)
	}
	s.Tables = append(s.Tables, x.Tables...)
	return s
}

// cards draws examples.
func cards(id, title string, list []Example) section {
	s := section{ID: id, Title: title, Cards: true}
	for _, e := range list {
		if len(e.Scores) > 0 {
			s.Intro = "Under an example are the answers that the model gives most to, the best first; a right one is green."
		}
		s.Panels = append(s.Panels, panel{SVG: e.draw(), Below: scoreBars(e.Scores)})
	}
	return s
}

// draw draws the pictures of an example with what was asked and answered.
func (e Example) draw() template.HTML {
	var b strings.Builder
	if len(e.Pictures) > 0 {
		b.WriteString(`<div class="pictures">`)
		for _, x := range e.Pictures {
			b.WriteString(`<div>` + string(x.img()))
			if x.Caption != "" {
				b.WriteString(`<p class="caption">` + escape(x.Caption) + `</p>`)
			}
			b.WriteString(`</div>`)
		}
		b.WriteString(`</div>`)
	}
	if e.Text != "" {
		b.WriteString(`<p class="asked">` + escape(e.Text) + `</p>`)
	}
	b.WriteString(`<dl class="answers">`)
	term := func(class, name, text string) {
		if text != "" {
			fmt.Fprintf(&b, `<dt>%s</dt><dd class="%s">%s</dd>`, name, class, escape(text))
		}
	}
	class := "no"
	if e.Right {
		class = "yes"
	}
	term(class, "answer", e.Answer)
	term("", "right", e.Truth)
	term("", "kind", e.Kind)
	term("", "example", e.Name)
	b.WriteString(`</dl>`)
	return template.HTML(b.String())
}

// scoreBars is a line for each answer with its score.
func scoreBars(list []AnswerScore) template.HTML {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(`<ul class="scores">`)
	for _, s := range list {
		class, share := "", 0.0
		if s.True {
			class = ` class="yes"`
		}
		if s.Score >= 0 && s.Score <= 1 {
			share = 100 * s.Score
		}
		fmt.Fprintf(&b, `<li%s style="background-size:%.1f%% 100%%"><span>%s</span><small>%s</small></li>`, class,
			share, escape(s.Answer), short(roundTo(s.Score, 3)))
	}
	b.WriteString(`</ul>`)
	return template.HTML(b.String())
}
