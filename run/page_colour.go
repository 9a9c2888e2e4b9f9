package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/source"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks/multimodal"
)

// sceneFacts are the attributes of a scene. Objects are in reading order, so the first is
// the one at the top left.
var sceneFacts = map[string]func(scenes.Scene) string{
	"objects": func(s scenes.Scene) string { return fmt.Sprint(len(s.Objects)) },
	"colour":  func(s scenes.Scene) string { return s.Objects[0].Colour.String() },
	"shape":   func(s scenes.Scene) string { return s.Objects[0].Shape.String() },
	"size":    func(s scenes.Scene) string { return s.Objects[0].Size.String() },
	"place":   func(s scenes.Scene) string { return s.Objects[0].Place.String() },
}

// sceneColours are the colours of objects as #rrggbb by their word.
func sceneColours() map[string]string {
	m := map[string]string{}
	for c := range scenes.Colour(8) {
		rgb := c.RGB()
		m[c.String()] = fmt.Sprintf("#%02x%02x%02x", rgb[0], rgb[1], rgb[2])
	}
	m[scenes.Black.String()] = "#777777" // to be seen on a dark page
	return m
}

// attributes lists the attributes that the points can be coloured by, the default first.
func (e *embedder) attributes() (list []string) {
	if e.cfg.Data.Drawn() && e.cfg.Data.Kind != multimodal.NLVRName { // row i of which is not scene i
		list = append(list, "colour", "shape", "objects", "size", "place")
	}
	if e.set.Eval == nil {
		return nil
	}
	if _, ok := e.set.Eval.Labels(); ok {
		list = append(list, "class")
	}
	if !e.cfg.Has(section.ImagesAlone) {
		list = append(list, "length", "caption:WORD")
	}
	return list
}

// attribute fills in labels or numbers of the chosen images.
func (e *embedder) attribute(f *pages.Features, chosen []int) error {
	all := e.attributes()
	name := e.colour
	switch name {
	case "":
		if len(all) == 0 {
			return nil
		}
		name = all[0]
	case "color":
		name = "colour"
	}
	f.Attribute = name
	word, isWord := strings.CutPrefix(name, "caption:")
	switch {
	case isWord && word != "" && slices.Contains(all, "caption:WORD"):
		for _, text := range f.Captions {
			label := "without " + word
			if slices.Contains(strings.Fields(data.CleanCaption(text, 0)), strings.ToLower(word)) {
				label = "with " + word
			}
			f.Labels = append(f.Labels, label)
		}
		return nil
	case len(all) == 0:
		return console.Argument(
			"--color %q: data.kind %q has no attributes to colour by: leave --color out", e.colour, e.cfg.Data.Kind)
	case !slices.Contains(all, name) || isWord || name == "caption:WORD":
		return console.Argument("--color %q: the attributes of this run are %s", e.colour,
			strings.Join(all, ", "))
	case name == "length":
		for _, text := range f.Captions {
			f.Numbers = append(f.Numbers, float64(len(strings.Fields(text))))
		}
		return nil
	case name == "class":
		names, _ := e.set.Eval.Labels()
		for _, i := range chosen {
			label := "none"
			if k := e.set.Eval.Label(i); k != data.UnknownLabel {
				label = names[k]
			}
			f.Labels = append(f.Labels, label)
		}
		return nil
	}
	w, err := source.World(e.cfg.Source())
	if err != nil {
		return err
	}
	at := w.Test
	if e.split == "val" {
		at = w.Val
	}
	for _, i := range chosen {
		f.Labels = append(f.Labels, sceneFacts[name](at(i)))
	}
	if name == "colour" {
		f.Palette = sceneColours()
	}
	return nil
}
