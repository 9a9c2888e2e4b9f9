package eval

import "github.com/geoalign/geoalign/internal/topk"

// Precision is the precision at 5 and at 10 of both directions: the percentage of the first k
// candidates of a query that are right, mean over the queries. It differs from the recall R@k,
// which asks for one right answer, where queries have several; with one it is R@k / k. At 1 they
// are the same.
type Precision struct {
	I2T, T2I PrecisionAt
	// Chance is the precision of a random order, at any k of no more candidates than there are.
	I2TChance, T2IChance float64
}

// PrecisionAt is the precision of one direction.
type PrecisionAt struct{ P5, P10 float64 }

// Values returns the precisions in the order of tables.
func (p Precision) Values() Values {
	return Values{{"i2t_p5", p.I2T.P5}, {"i2t_p10", p.I2T.P10}, {"t2i_p5", p.T2I.P5}, {"t2i_p10", p.T2I.P10}}
}

// Several says whether some query has several right answers.
func (c *Correspondence) Several() bool {
	for i := range c.NumImages() {
		if len(c.texts(i)) > 1 || c.imagesOf[c.imageID[i]] > 1 {
			return true
		}
	}
	return false
}

// MeasurePrecision asks source for chunk images at a time, once each. Ties count against the right
// answers, as in Rank. It holds chunk x T scores and ten candidates a text. A score of NaN is a
// *NonFiniteError.
func MeasurePrecision(c *Correspondence, chunk int, source Source) (Precision, error) {
	n, t := c.NumImages(), c.NumTexts()
	var p Precision
	chunk = max(1, min(chunk, n))
	block := make([]float32, chunk*t)
	texts := topk.NewLists[candidate](t, min(10, n))
	for row := 0; row < n; row += chunk {
		b := block[:min(chunk, n-row)*t]
		if err := source(row, len(b)/t, b); err != nil {
			return p, err
		}
		for i := row; i < row+len(b)/t; i++ {
			best := topk.New[candidate](min(10, t))
			for j, s := range b[(i-row)*t:][:t] {
				if s != s {
					return p, nanScore(i, j)
				}
				right := c.right(i, j)
				best.Add(candidate{int32(j), s, right})
				texts[j].Add(candidate{int32(i), s, right})
			}
			p.I2T.add(best.Sorted())
			p.I2TChance += float64(len(c.texts(i)))
		}
	}
	for j := range texts {
		p.T2I.add(texts[j].Sorted())
		p.T2IChance += float64(c.images(j))
	}
	pairs := float64(n) * float64(t)
	p.I2TChance, p.T2IChance = 100*p.I2TChance/pairs, 100*p.T2IChance/pairs
	p.I2T.share(n)
	p.T2I.share(t)
	return p, nil
}

// add counts the right ones of the candidates best of a query.
func (p *PrecisionAt) add(best []candidate) {
	for k, x := range best {
		if x.right {
			p.P10++
			if k < 5 {
				p.P5++
			}
		}
	}
}

// share makes percentages of the counts of n queries.
func (p *PrecisionAt) share(n int) {
	p.P5, p.P10 = 100*p.P5/float64(5*n), 100*p.P10/float64(10*n)
}

// MeanPrecision returns the mean of several results, such as the folds of a gallery.
func MeanPrecision(all []Precision) Precision {
	mean := func(value func(p *Precision) float64) float64 { return meanOf(all, value) }
	return Precision{
		I2T:       PrecisionAt{mean(func(p *Precision) float64 { return p.I2T.P5 }), mean(func(p *Precision) float64 { return p.I2T.P10 })},
		T2I:       PrecisionAt{mean(func(p *Precision) float64 { return p.T2I.P5 }), mean(func(p *Precision) float64 { return p.T2I.P10 })},
		I2TChance: mean(func(p *Precision) float64 { return p.I2TChance }),
		T2IChance: mean(func(p *Precision) float64 { return p.T2IChance }),
	}
}
