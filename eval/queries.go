package eval

// Queries are the ranks of all queries of a gallery in a form to be kept: what a bootstrap over test queries draws
// from.
type Queries struct {
	I2T       []int `json:"i2t"`        // per image, from 0
	T2I       []int `json:"t2i"`        // per text, from 0
	TextImage []int `json:"text_image"` // per text: the image that it describes
}

// Queries returns the ranks with the image of each text.
func (r *Ranks) Queries(c *Correspondence) *Queries {
	return &Queries{I2T: r.I2T, T2I: r.T2I, TextImage: c.imageOf}
}

// cutoffs are the k of R@k.
var cutoffs = [3]int{1, 5, 10}

// recallWeights are the weights of R@1, R@5 and R@10, image to text and text to image, in a metric.
var recallWeights = map[string][2][3]float64{
	"i2t_r1": {{1, 0, 0}}, "i2t_r5": {{0, 1, 0}}, "i2t_r10": {{0, 0, 1}}, "txt_r_mean": {{1. / 3, 1. / 3, 1. / 3}},
	"t2i_r1": {1: {1, 0, 0}}, "t2i_r5": {1: {0, 1, 0}}, "t2i_r10": {1: {0, 0, 1}},
	"img_r_mean": {1: {1. / 3, 1. / 3, 1. / 3}}, "rsum": {{1, 1, 1}, {1, 1, 1}},
	RMeanName: {{1. / 6, 1. / 6, 1. / 6}, {1. / 6, 1. / 6, 1. / 6}},
}

// PerImage returns what every image adds to a recall, such as i2t_r1 or r_mean: the mean over the N images is the
// metric in percent. Texts count with their image, since captions of one image are not independent: of M texts in
// all, those of an image add N/M times the sum of theirs. It is nil for other metrics.
func (q *Queries) PerImage(metric string) []float64 {
	weights, ok := recallWeights[metric]
	if !ok {
		return nil
	}
	found := func(rank, direction int) (sum float64) {
		for i, k := range cutoffs {
			if rank < k {
				sum += 100 * weights[direction][i]
			}
		}
		return sum
	}
	x := make([]float64, len(q.I2T))
	for i, rank := range q.I2T {
		x[i] = found(rank, 0)
	}
	for j, rank := range q.T2I {
		x[q.TextImage[j]] += found(rank, 1) * float64(len(q.I2T)) / float64(len(q.T2I))
	}
	return x
}
