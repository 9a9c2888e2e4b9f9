package config

// GroundingKind is the data.kind and the task of visual grounding.
const GroundingKind = "grounding"

// Grounding names what lists of referring expressions leave out (data.kind = "grounding"). Paths start from data.root.
type Grounding struct {
	Refs       string `toml:"refs"`       // refs(unc).p of refer, a pickle: which object the expressions with a ref_id in data.examples are about; empty: they have boxes of their own. It may stand in data.examples itself: its expressions of each split are read then
	Instances  string `toml:"instances"`  // instances.json of refer: pictures and boxes of objects
	Detections string `toml:"detections"` // {"image id or name": [[x, y, width, height], ...], ...}, such as ALBEF's dets.json: boxes to look in; pictures without any are looked at in sliding ones
}

func (g *Grounding) defaults() {}

func (g *Grounding) check(*checker, *Config) {}
