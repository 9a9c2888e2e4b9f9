package tasks

import (
	"bytes"
	"context"
	"image"
	"image/png"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/report"
)

// Bounds of a page of examples: how many of a kind, right or wrong, and the longer side of a picture in pixels.
const (
	MostShown   = 24
	mostPicture = 240
)

// Card is an example with its pictures.
type Card struct {
	report.Example
	Images []*transform.Image
	Names  []string // of the images
}

// AddPictures adds those of sample i.
func (c *Card) AddPictures(x data.Examples, i int) error {
	for k := range x.Pictures() {
		img, err := x.Picture(i, k)
		if err != nil {
			return err
		}
		c.Images, c.Names = append(c.Images, img), append(c.Names, x.PictureName(i, k))
	}
	return nil
}

// Cards draws examples with the heat maps of their pictures behind them, and parts the right ones from the wrong ones.
func (h *Heat) Cards(ctx context.Context, p *report.ExamplesPage, rows []int, card func(i int) (Card, error)) error {
	p.Notes = append(p.Notes, h.Note()...)
	maps, err := h.Of(ctx, rows)
	if err != nil {
		return err
	}
	for _, i := range rows {
		c, err := card(i)
		if err == nil {
			err = h.draw(&c, maps[i])
		}
		if err != nil {
			return err
		}
		if c.Right {
			p.Right = append(p.Right, c.Example)
		} else {
			p.Wrong = append(p.Wrong, c.Example)
		}
	}
	return nil
}

// draw adds the pictures of a card and their heat maps.
func (h *Heat) draw(c *Card, maps []explain.Map) error {
	for k, img := range c.Images {
		p, err := Picture(explain.Enlarged(explain.Reduced(img.NRGBA(), mostPicture)), c.Names[k])
		if err != nil {
			return err
		}
		if len(c.Images) > 1 {
			p.Caption = Sides[k]
		}
		c.Pictures = append(c.Pictures, p)
	}
	for k, m := range maps {
		shown := explain.Reduced(c.Images[k].NRGBA(), mostPicture)
		p, err := Picture(h.view.Overlay(c.Images[k], shown, m), "where the model looks")
		if err != nil {
			return err
		}
		if m.Most() == 0 {
			p.Caption = "no patch speaks for it"
		}
		c.Pictures = append(c.Pictures, p)
	}
	return nil
}

// Sides name the pictures of an example that has two.
var Sides = [...]string{"left", "right"}

// Picture is a picture of a page.
func Picture(m image.Image, alt string) (report.Picture, error) {
	var b bytes.Buffer
	err := png.Encode(&b, m)
	return report.Picture{PNG: b.Bytes(), Alt: alt}, err
}

// Sampled returns at most n of a list, at even distances: files often have the examples of a class one after the other.
func Sampled(list []int, n int) []int {
	if len(list) <= n {
		return list
	}
	some := make([]int, n)
	for k := range some {
		some[k] = list[k*len(list)/n]
	}
	return some
}
