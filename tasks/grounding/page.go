package grounding

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"math"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/tasks"
)

// Colours of boxes that people who see few colours can tell apart: those that were looked in, the right one, the chosen
// one.
var (
	proposedBox = color.RGBA{150, 155, 165, 255}
	targetBox   = color.RGBA{0, 158, 115, 255}
	chosenBox   = color.RGBA{213, 94, 0, 255}
)

// mostGrounded is the longer side in pixels of a picture of an expression within a page.
const mostGrounded = 480

// ExamplesPage implements tasks.Pictured.
func (s Scores) ExamplesPage(context.Context) (report.ExamplesPage, error) {
	p := report.ExamplesPage{Tables: []report.Table{s.table()}, Notes: []string{
		"Of each expression: the picture with the boxes that were looked in (grey), the target (green) and the chosen one (orange, within the green one where both are the same), and its heat map by " + s.where() + ".",
	}}
	for _, f := range s.Found {
		list := &p.Wrong
		if f.Right {
			list = &p.Right
		}
		if len(*list) == tasks.MostShown {
			continue
		}
		e, err := s.card(f)
		if err != nil {
			return p, err
		}
		*list = append(*list, e)
	}
	return p, nil
}

// table is the outcome by kinds.
func (s Scores) table() report.Table {
	t := report.Table{Head: []string{"kind", "expressions", "IoU >= .5, %", "random box, %", "reachable, %",
		"pointing, %", "random point, %"}}
	row := func(name string, x eval.GroundedGroup) {
		figure := func(v float64) string { return fmt.Sprintf("%.1f", v) }
		t.Rows = append(t.Rows, report.Texts(name, fmt.Sprint(x.N), figure(x.Accuracy()), figure(x.Chance()),
			figure(x.Reach()), figure(x.Pointing()), figure(x.ChancePoint())))
	}
	row("all", s.All)
	for _, k := range s.Kinds {
		row(k.Kind, k)
	}
	return t
}

// card draws an expression with what was found.
func (s Scores) card(f Found) (report.Example, error) {
	e := s.Samples.Example(f.Example)
	img, err := s.Samples.Picture(f.Example, 0)
	if err != nil {
		return report.Example{}, err
	}
	card := report.Example{Name: s.Samples.PictureName(f.Example, 0), Kind: e.Kind, Text: e.Text,
		Answer: "the map is dark", Right: f.Right}
	if f.Chosen != nil {
		card.Answer = fmt.Sprintf("IoU %.2f", f.IoU)
	}
	photo := explain.Reduced(img.NRGBA(), mostGrounded)
	b := photo.Bounds()
	side := int(math.Sqrt(float64(len(f.Map))))
	plain := explain.Enlarged(photo)
	explain.Outline(plain, frames(f, true))
	heat := explain.Overlay(photo, explain.Map{Values: f.Map, Rows: side, Columns: side}, 0, 0, float64(b.Dx()),
		float64(b.Dy()))
	explain.Outline(heat, frames(f, false))
	for _, x := range []struct {
		m   image.Image
		alt string
	}{{plain, "the picture with boxes"}, {heat, "its heat map"}} {
		p, err := tasks.Picture(x.m, x.alt)
		if err != nil {
			return card, err
		}
		card.Pictures = append(card.Pictures, p)
	}
	return card, nil
}

// frames are the boxes of a picture, with those that were looked in or without.
func frames(f Found, proposals bool) (list []explain.Outlined) {
	w, h := float64(f.W), float64(f.H)
	add := func(b data.Rect, c color.RGBA, width int) {
		list = append(list, explain.Outlined{Box: explain.Box{b.X / w, b.Y / h, (b.X + b.W) / w, (b.Y + b.H) / h},
			Colour: c, Width: width})
	}
	if proposals {
		for _, b := range f.Proposals {
			add(b, proposedBox, 1)
		}
	}
	add(f.Target, targetBox, 4)
	if f.Chosen != nil {
		add(*f.Chosen, chosenBox, 2)
	}
	return list
}
