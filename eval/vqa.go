package eval

import (
	"math"
	"slices"

	"github.com/geoalign/geoalign/data"
)

// VQAAccuracy is the official accuracy of an answer to a question that several people were asked, from 0 to 1: the mean
// over all but one of them of min(1, people who gave the answer / 3). With ten people it is 0, .3, .6, .9 and 1 for an
// answer that 0, 1, 2, 3 and 4 or more of them gave. Answers are compared as NormalizeVQA writes them; where all people
// agree they are compared as they are, but for white space at the ends, as the official script does. Of one person's
// answers it is 0, since nobody else gave them: see Annotators.
func VQAAccuracy(answer string, given []string) float64 {
	answer = trimVQA(answer)
	given = slices.Clone(given)
	agreed := true
	for i, g := range given {
		given[i] = trimVQA(g)
		agreed = agreed && given[i] == given[0]
	}
	if !agreed {
		answer = NormalizeVQA(answer)
		for i, g := range given {
			given[i] = NormalizeVQA(g)
		}
	}
	same := 0
	for _, g := range given {
		if g == answer {
			same++
		}
	}
	sum := 0.
	for _, g := range given {
		others := same
		if g == answer {
			others--
		}
		sum += min(1, float64(others)/3)
	}
	return sum / float64(max(1, len(given)))
}

// Annotators are the answers of ten people of whom each answer has its weight as a share, as VQAAccuracy reads them.
// What the shares of several answers lack are people who gave a blank one, who count among the ten. A single answer is
// that of all.
func Annotators(answers []data.Answer) (given []string) {
	const people = 10
	for _, a := range answers {
		for range max(1, int(math.Round(people*float64(a.Weight)))) {
			given = append(given, a.Text)
		}
	}
	if len(given) == 0 || len(given) >= people {
		return given
	}
	rest := ""
	if len(answers) == 1 {
		rest = given[0]
	}
	return append(given, slices.Repeat([]string{rest}, people-len(given))...)
}
