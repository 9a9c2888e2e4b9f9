package grounding

import "github.com/geoalign/geoalign/config/section"

// Files names what lists of referring expressions leave out (data.kind = "grounding"). Paths start from data.root.
type Files struct {
	// refs(unc).p of refer, a pickle: which object the expressions with a ref_id in data.examples are about; empty:
	// they have boxes of their own. It may stand in data.examples itself: its expressions of each split are read then
	Refs string `toml:"refs"`
	// instances.json of refer: pictures and boxes of objects
	Instances string `toml:"instances"`
	// {"image id or name": [[x, y, width, height], ...], ...}, such as ALBEF's dets.json: boxes to look in; pictures
	// without any are looked at in sliding ones
	Detections string `toml:"detections"`
}

// Defaults implements section.Section.
func (g *Files) Defaults() {}

// Check implements section.Section.
func (g *Files) Check(*section.Checker) {}
