package eval

// Emotion is how well the presence of an emotion is told, as CMU-MOSEI is evaluated (Zadeh et al. 2018, section 5).
type Emotion struct {
	Share float64 // percent of the utterances that have it
	// percent: the mean of the shares of utterances with it and without it that are told right, 50 for any constant
	WeightedAccuracy float64
	F1               float64 // of those with it and of those without, in percent, weighted by their number
}

// MeasureEmotion compares what is told of utterances with what is true; there must be as many of each.
func MeasureEmotion(told, has []bool) (e Emotion) {
	var table [2][2]float64 // of the truth and what is told
	at := map[bool]int{true: 1}
	for i := range has {
		table[at[has[i]]][at[told[i]]]++
	}
	n := float64(len(has))
	kinds := 0.0
	for k := range 2 {
		own, said := table[k][0]+table[k][1], table[0][k]+table[1][k]
		if own > 0 {
			kinds++
			e.WeightedAccuracy += 100 * table[k][k] / own
			e.F1 += 100 * own / n * 2 * table[k][k] / (own + said)
		}
		if k == 1 {
			e.Share = 100 * own / n
		}
	}
	e.WeightedAccuracy /= kinds
	return e
}
