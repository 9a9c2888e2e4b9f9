package eval

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Sentiment is how well sentiments from -3 to 3 are predicted, as CMU-MOSEI is evaluated (Tsai et al. 2019, section 4).
type Sentiment struct {
	Rows int // utterances
	// percent whose prediction, within -3 to 3, rounds to the whole number of the label; a half to the even one
	Accuracy7   float64
	Accuracy2   float64 // percent whose sign is right, utterances with a label of 0 left out
	F1          float64 // of the signs of these, in percent: mean of both signs weighted by their utterances
	NonNegative float64 // percent of all that are rightly told to be negative or not
	MAE         float64 // mean absolute error
	Pearson     float64 // correlation, from -1 to 1
}

// Values names the numbers for logs.
func (s Sentiment) Values() Values {
	return Values{{"accuracy7", s.Accuracy7}, {"accuracy2", s.Accuracy2}, {"f1", s.F1}, {"nonnegative", s.NonNegative},
		{"mae", s.MAE}, {"pearson", s.Pearson}}
}

// MeasureSentiment compares predictions with labels, of which there must be as many.
func MeasureSentiment(predicted, labels []float64) Sentiment {
	s := Sentiment{Rows: len(labels), Pearson: pearson(predicted, labels)}
	var table [2][2]float64 // of the sign of a label and that of its prediction
	sign := func(v float64) int {
		if v > 0 {
			return 1
		}
		return 0
	}
	seven, two, all := 0.0, 0.0, 0.0
	for i, y := range labels {
		p := predicted[i]
		s.MAE += math.Abs(p-y) / float64(len(labels))
		if math.RoundToEven(max(-3, min(3, p))) == math.RoundToEven(y) {
			seven++
		}
		if p >= 0 == (y >= 0) {
			all++
		}
		if y != 0 {
			table[sign(y)][sign(p)]++
			two++
		}
	}
	n := float64(len(labels))
	s.Accuracy7, s.NonNegative = 100*seven/n, 100*all/n
	if two == 0 {
		return s
	}
	s.Accuracy2 = 100 * (table[0][0] + table[1][1]) / two
	for k := range 2 {
		own, told := table[k][0]+table[k][1], table[0][k]+table[1][k]
		if own+told > 0 {
			s.F1 += 100 * own / two * 2 * table[k][k] / (own + told)
		}
	}
	return s
}

// LinearLayer predicts a number from d features.
type LinearLayer struct {
	weight []float64
	bias   float64
}

// FitLinear fits a linear layer to n rows x (n, d) with targets y by least squares, with penalty times the squares of
// the weights of standardised features, per row. Features that are constant take no part. Rows that are not finite are
// a *NonFiniteError; targets and a penalty that are not are errors too.
func FitLinear(x []float32, d int, y []float64, penalty float64) (*LinearLayer, error) {
	n := len(y)
	if n < 2 || d < 1 || len(x) != n*d {
		return nil, errors.New("eval: a linear layer needs two rows")
	}
	if err := checkFinite("the rows of a linear layer", x, d); err != nil {
		return nil, err
	}
	for i, v := range append([]float64{penalty}, y...) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			what := "the penalty"
			if i > 0 {
				what = fmt.Sprintf("target %d", i-1)
			}
			return nil, fmt.Errorf("eval: %s of a linear layer is %v: give finite numbers", what, v)
		}
	}
	mean, deviation := make([]float64, d), make([]float64, d)
	for i, v := range x {
		mean[i%d] += float64(v) / float64(n)
	}
	for i, v := range x {
		deviation[i%d] += (float64(v) - mean[i%d]) * (float64(v) - mean[i%d]) / float64(n)
	}
	middle := 0.0
	for _, v := range y {
		middle += v / float64(n)
	}
	rows, targets := mat.NewDense(n, d, nil), mat.NewVecDense(n, nil)
	for j := range d {
		deviation[j] = math.Sqrt(deviation[j])
	}
	for i, v := range x {
		if s := deviation[i%d]; s > 1e-12*(1+math.Abs(mean[i%d])) {
			rows.Set(i/d, i%d, (float64(v)-mean[i%d])/s)
		}
	}
	for i, v := range y {
		targets.SetVec(i, v-middle)
	}
	var gram mat.SymDense
	gram.SymOuterK(1/float64(n), rows.T())
	for j := range d {
		gram.SetSym(j, j, gram.At(j, j)+max(penalty, 1e-9))
	}
	var right, weight mat.VecDense
	right.MulVec(rows.T(), targets)
	right.ScaleVec(1/float64(n), &right)
	var c mat.Cholesky
	if !c.Factorize(&gram) {
		return nil, errors.New("eval: the linear layer cannot be fitted: are its features finite?")
	}
	if err := c.SolveVecTo(&weight, &right); err != nil {
		return nil, err
	}
	l := &LinearLayer{weight: make([]float64, d), bias: middle}
	for j := range d {
		if deviation[j] > 1e-12*(1+math.Abs(mean[j])) {
			l.weight[j] = weight.AtVec(j) / deviation[j]
			l.bias -= l.weight[j] * mean[j]
		}
	}
	return l, nil
}

// Predict returns the numbers of rows (n, d).
func (l *LinearLayer) Predict(x []float32) []float64 {
	d := len(l.weight)
	out := make([]float64, len(x)/d)
	for i := range out {
		out[i] = l.bias
		for j, w := range l.weight {
			out[i] += w * float64(x[i*d+j])
		}
	}
	return out
}
