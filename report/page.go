package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var pageText string

//go:embed style.css
var styleText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template fills in.
type page struct {
	Title       string
	Kind        string
	Beside      string // names of pictures, see Explanation.Beside
	Style       template.CSS
	Facts       []Fact
	Settings    []Setting
	Environment []Fact
	Notes       []string
	Sections    []section
}

// Write writes the page of a run.
func Write(w io.Writer, d Data) error {
	if err := d.check(); err != nil {
		return err
	}
	p := page{Title: d.Title, Kind: "training run", Facts: d.Facts, Settings: d.Settings, Environment: d.Environment,
		Notes: d.Notes}
	if d.Curves != nil && d.Curves.Bad > 0 {
		p.Notes = append(p.Notes[:len(p.Notes):len(p.Notes)],
			fmt.Sprintf("%d lines of the log could not be read and are left out.", d.Curves.Bad))
	}
	pairs, err := pairSection(d)
	if err != nil {
		return err
	}
	scatter, err := scatterSection(d)
	if err != nil {
		return err
	}
	classes, err := classSection(d)
	if err != nil {
		return err
	}
	sentences, err := sentenceSection(d)
	if err != nil {
		return err
	}
	p.show(lossSection(d), stepSection(d), evalSection(d), classes, sentences, graphSection(d), pairs, metricSection(d),
		scatter)
	return p.write(w)
}

// show adds the sections that have something to show; a note says why the others have not.
func (p *page) show(sections ...section) {
	var missing []string
	for _, s := range sections {
		switch {
		case len(s.Panels)+len(s.Tables) > 0:
			p.Sections = append(p.Sections, s)
		case s.Missing != "":
			missing = append(missing, s.Missing)
		}
	}
	if missing != nil {
		p.Notes = append(p.Notes[:len(p.Notes):len(p.Notes)], "Left out: "+strings.Join(missing, " "))
	}
}

func (p page) write(w io.Writer) error {
	p.Style = template.CSS(styleText)
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("report: writing the page: %w", err)
	}
	return nil
}

// check reports features and metrics whose lengths do not fit.
func (d Data) check() error {
	if f := d.Features; f != nil {
		switch {
		case f.N < 1 || f.C < 1 || len(f.Images) != f.N*f.C:
			return fmt.Errorf("report: features of %d images x %d channels need %d numbers (got %d)", f.N, f.C, f.N*f.C,
				len(f.Images))
		case f.Texts != nil && len(f.Texts) != f.N*f.C:
			return fmt.Errorf("report: features of %d texts x %d channels need %d numbers (got %d)", f.N, f.C, f.N*f.C,
				len(f.Texts))
		case f.Labels != nil && len(f.Labels) != f.N, f.Numbers != nil && len(f.Numbers) != f.N, f.Captions != nil &&
			len(f.Captions) != f.N:
			return fmt.Errorf("report: labels, numbers and captions must be one per image (got %d, %d and %d for %d)",
				len(f.Labels), len(f.Numbers), len(f.Captions), f.N)
		}
	}
	for _, m := range d.Metrics {
		if want, ok := m.size(); !ok || len(m.Weights) != want {
			return fmt.Errorf("report: metric %s of form %q with %d channels and %d blocks has %d weights: they do not fit", m.Name, m.Form, m.C, m.Blocks, len(m.Weights))
		}
	}
	return nil
}
