package eval

import "math"

// Bleu returns BLEU-1 to BLEU-4 of a corpus of captions, from 0 to 1 (Papineni et al. 2002), as the evaluation of
// COCO's captions reports them: with c the length of all captions and r the sum of the lengths of the references that
// come closest to each,
//
//	BLEU-n = min(1, exp(1 - r/c)) * (p_1 * ... * p_n)^(1/n),
//
// where p_k is the share of the captions' k-grams that some reference has, each counted as often as one reference has
// it at most. A caption without words scores 0 and counts in r.
func Bleu(all []Captioned) ([4]float64, error) {
	var out [maxGram]float64
	if err := checkCaptioned(all); err != nil {
		return out, err
	}
	var guessed, right [maxGram]int
	length, closest := 0, 0
	for _, c := range all {
		length += len(c.Words)
		closest += closestLength(len(c.Words), c.References)
		most := map[string]int{}
		for _, r := range c.References {
			for _, g := range grams(r) {
				most[g.words] = max(most[g.words], g.count)
			}
		}
		for _, g := range grams(c.Words) {
			guessed[g.n-1] += g.count
			right[g.n-1] += min(g.count, most[g.words])
		}
	}
	// The official script adds these, so that nothing is divided by zero and no power is taken of it.
	const tiny, small = 1e-15, 1e-9
	penalty := 1.
	if ratio := (float64(length) + tiny) / (float64(closest) + small); ratio < 1 {
		penalty = math.Exp(1 - 1/ratio)
	}
	product := 1.
	for k := range out {
		product *= (float64(right[k]) + tiny) / (float64(guessed[k]) + small)
		out[k] = penalty * math.Pow(product, 1/float64(k+1))
	}
	return out, nil
}

// closestLength is the length of the reference that differs least from n, the shorter of two.
func closestLength(n int, references [][]string) int {
	best := len(references[0])
	for _, r := range references[1:] {
		if d, b := abs(len(r)-n), abs(best-n); d < b || d == b && len(r) < best {
			best = len(r)
		}
	}
	return best
}

func abs(x int) int { return max(x, -x) }
