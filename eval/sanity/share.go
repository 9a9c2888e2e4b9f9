package sanity

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// Share is a percentage of N independent answers.
type Share struct {
	Name   string  // such as R@1
	Value  float64 // percent
	Chance float64 // percent that guessing reaches
	N      int
}

// chanceP: what guesses reach with this probability or a larger one is told from no chance. At 1 % a model that has
// learned a little is told in one evaluation of a hundred at most, and of several shares all must be at chance.
const chanceP = 0.01

// atChance says whether guesses reach the share too easily: P(Binomial(N, chance) >= hits) > chanceP.
func (s Share) atChance() bool {
	if s.N < 1 || s.Chance >= 100 {
		return true // whatever is answered is right
	}
	hits := math.Round(s.Value / 100 * float64(s.N))
	if hits <= 0 || s.Chance <= 0 {
		return hits <= 0
	}
	b := distuv.Binomial{N: float64(s.N), P: s.Chance / 100}
	return 1-b.CDF(hits-1) > chanceP
}

// Interval returns the 95 % interval of a percentage of n answers (Wilson 1927), in percent.
func Interval(percent float64, n int) (lo, hi float64) {
	const z = 1.959964
	p, m := percent/100, float64(n)
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return 100 * max(0, centre-half), 100 * min(1, centre+half)
}

// AtChance says that none of the shares of what is measured, such as R@1, R@5 and R@10 of a direction, is above what
// guessing reaches.
func AtChance(what string, shares ...Share) string {
	var told []string
	for _, s := range shares {
		if !s.atChance() {
			return ""
		}
		if s.Chance < 100 {
			lo, hi := Interval(s.Value, s.N)
			told = append(told, fmt.Sprintf("%s %.1f %% (95 %% interval %.1f to %.1f, chance %.1f)", s.Name, s.Value,
				lo, hi, s.Chance))
		}
	}
	if told == nil {
		return ""
	}
	return fmt.Sprintf("%s is not above chance: %s", what, strings.Join(told, ", "))
}

// fewAnswers: below it one answer is more than a percent point.
const fewAnswers = 100

// Few says that a share is of so few answers that one of them is more than a point.
func Few(s Share, of string) string {
	if s.N < 1 || s.N >= fewAnswers {
		return ""
	}
	lo, hi := Interval(s.Value, s.N)
	return fmt.Sprintf("%d %s: one is %.1f points; %s %.1f %% has a 95 %% interval of %.1f to %.1f", s.N, of,
		100/float64(s.N), s.Name, s.Value, lo, hi)
}
