package align

// Likeness is how alike two spaces are, in four classes.
type Likeness string

// The classes, by CKA, which unlike the share of common neighbours does not depend on the
// number of pairs. docs/align.md has the measurements that the limits are from.
const (
	Unlike      Likeness = "unlike"       // no measure stands out from shuffled pairs
	WeaklyAlike Likeness = "weakly alike" // CKA below 0.1
	Alike       Likeness = "alike"        // CKA from 0.1
	NearlySame  Likeness = "nearly same"  // CKA from 0.5
)

// Limits of the classes.
const (
	chanceP    = .05 // share of shuffles that reach a measure which says nothing
	alikeFrom  = .1
	nearlyFrom = .5
)

// Likeness returns the class of a forecast.
func (a *Alignability) Likeness() Likeness {
	switch {
	case a.Mutual.P > chanceP && a.CKA.P > chanceP:
		return Unlike
	case a.CKA.Value < alikeFrom:
		return WeaklyAlike
	case a.CKA.Value < nearlyFrom:
		return Alike
	}
	return NearlySame
}

// Advice says in a sentence what a forecast speaks for.
func (a *Alignability) Advice() string {
	switch a.Likeness() {
	case Unlike:
		return "The pairs are no more alike than shuffled ones: look first whether the rows of both files are in step; if they are, no map will align these features."
	case WeaklyAlike:
		return "The spaces have little in common: look whether all rows are in step; if they are, a closed form will be little above chance with a thousand pairs, so use many more, or other encoders."
	case Alike:
		return "The spaces are alike: CCA fitted to some hundred pairs is a good alignment and a good start of trained heads."
	}
	return "The spaces are nearly the same: any closed form aligns them with few pairs, and Procrustes is about as good as CCA."
}
