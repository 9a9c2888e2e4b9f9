package align

import "fmt"

// Likeness is how alike two spaces are.
type Likeness string

// The classes, by CKA, which unlike the share of common neighbours does not depend on the
// number of pairs. docs/forecast.md has the measurements that the limits are from.
const (
	Undecided   Likeness = "undecided"    // so few shuffles that none of them could tell
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

// LeastPermutations is the smallest number of shuffles of which a share can be below 5 %: the pairing itself counts as
// one.
const LeastPermutations = 19

// Likeness returns the class of a forecast.
func (a *Alignability) Likeness() Likeness {
	switch {
	case a.Mutual.P > chanceP && a.CKA.P > chanceP && a.Permutations < LeastPermutations:
		return Undecided
	case a.Mutual.P > chanceP && a.CKA.P > chanceP:
		return Unlike
	case a.CKA.Value < alikeFrom:
		return WeaklyAlike
	case a.CKA.Value < nearlyFrom:
		return Alike
	}
	return NearlySame
}

// Advice says in a sentence or two what a forecast speaks for. Its recalls are those of the table in docs/forecast.md.
func (a *Alignability) Advice() string {
	cka := fmt.Sprintf("CKA %.2f", a.CKA.Value)
	if a.CKAError > 0 {
		cka += fmt.Sprintf(" ± %.2f", a.CKAError)
	}
	switch a.Likeness() {
	case Undecided:
		return fmt.Sprintf("With %d shuffles no measure can be told from chance: shuffle at least %d times.",
			a.Permutations, LeastPermutations)
	case Unlike:
		return fmt.Sprintf("The %d pairs are no more alike than shuffled ones: look first whether the rows of both files are in step; if they are, there is nothing in these pairs that a map could align.", a.Pairs)
	case WeaklyAlike:
		return "The spaces have little in common (" + cka +
			"): look whether all rows are in step; if they are, CCA found 4 to 16 % of held-out pairs (mean of recalls, chance 2) where it was measured, with up to 700 pairs, so use many more, or other encoders." + a.between()
	case Alike:
		return "The spaces are alike (" + cka +
			"): CCA found 46 to 54 % of held-out pairs (mean of recalls, chance 2) where it was measured, with up to 700 pairs, and is a good start of trained heads." + a.between()
	}
	return "The spaces are nearly the same (" + cka +
		"): any closed form aligns them with few pairs. Which one is best these measures do not say: compare model.align.method = \"cca\" and \"procrustes\" on held-out pairs." + a.between()
}

// between says that the class is another one within the error of the CKA.
func (a *Alignability) between() string {
	for _, x := range []struct {
		limit        float64
		below, above Likeness
	}{{alikeFrom, WeaklyAlike, Alike}, {nearlyFrom, Alike, NearlySame}} {
		if d := a.CKA.Value - x.limit; d < 2*a.CKAError && -d < 2*a.CKAError {
			return fmt.Sprintf(" The limit between %s and %s, %.1f, is within two standard errors: more pairs would tell.", x.below, x.above, x.limit)
		}
	}
	return ""
}
