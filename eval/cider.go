package eval

import "math"

// Cider returns CIDEr-D of a corpus of captions and of each (Vedantam, Zitnick and Parikh 2015), as the evaluation of
// COCO's captions reports it under the name CIDEr; 10 is the most. A text is four vectors g_n over its n-grams, of how
// often each stands there times log(N / the number of pictures of which a reference has it), N pictures in all. The
// score of a caption c with references r_1..r_m is
//
//	10/m * sum_j mean_n  min(g_n(c), g_n(r_j)) . g_n(r_j) / (|g_n(c)| |g_n(r_j)|) * exp(-(l(c) - l(r_j))^2 / (2*6^2)),
//
// where l counts the pairs of words that follow each other, which is the length less one, as the official script does.
// The weights come from the references of the corpus itself: the score of a caption depends on the others, and of one
// picture it is 0. Where no reference has a word the scores are 0; the official script ends with an error.
func Cider(all []Captioned) (mean float64, each []float64, err error) {
	if err := checkCaptioned(all); err != nil {
		return 0, nil, err
	}
	pictures := map[string]float64{} // that have an n-gram
	references := make([][][]gram, len(all))
	for i, c := range all {
		seen := map[string]bool{}
		for _, r := range c.References {
			g := grams(r)
			references[i] = append(references[i], g)
			for _, g := range g {
				if !seen[g.words] {
					seen[g.words] = true
					pictures[g.words]++
				}
			}
		}
	}
	logN := math.Log(float64(len(all)))
	weight := func(g gram) float64 {
		return float64(g.count) * (logN - math.Log(max(1, pictures[g.words])))
	}
	each = make([]float64, len(all))
	for i, c := range all {
		own := grams(c.Words)
		norm, length := ciderNorms(own, weight)
		sum := 0.
		for _, r := range references[i] {
			sum += ciderPair(own, norm, length, r, weight)
		}
		each[i] = 10 * sum / maxGram / float64(len(references[i]))
		mean += each[i]
	}
	return mean / float64(len(all)), each, nil
}

// ciderNorms returns |g_n| of a text and its number of bigrams.
func ciderNorms(g []gram, weight func(gram) float64) (norm [maxGram]float64, bigrams int) {
	for _, g := range g {
		w := weight(g)
		norm[g.n-1] += w * w
		if g.n == 2 {
			bigrams += g.count
		}
	}
	for n := range norm {
		norm[n] = math.Sqrt(norm[n])
	}
	return norm, bigrams
}

// ciderPair is the sum over n of the similarity of a caption with a reference.
func ciderPair(own []gram, norm [maxGram]float64, length int, reference []gram, weight func(gram) float64) float64 {
	const sigma = 6
	weights := make(map[string]float64, len(reference))
	for _, g := range reference {
		weights[g.words] = weight(g)
	}
	other, otherLength := ciderNorms(reference, weight)
	var dot [maxGram]float64
	for _, g := range own {
		if w, ok := weights[g.words]; ok {
			dot[g.n-1] += min(weight(g), w) * w
		}
	}
	sum := 0.
	for n := range dot {
		if norm[n] != 0 && other[n] != 0 {
			sum += dot[n] / (norm[n] * other[n])
		}
	}
	d := float64(length - otherLength)
	return sum * math.Exp(-d*d/(2*sigma*sigma))
}
