package eval

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Isotropy says how evenly embeddings fill their space. Cosine and uniformity are of all pairs of different rows, on
// the unit sphere; the spectrum is that of the rows with their mean taken away.
type Isotropy struct {
	Rows  int `json:"sentences"`
	Width int `json:"width"`
	// mean cosine of two rows: 0 of isotropic ones, 1 where all are one direction
	Cosine float64 `json:"mean_cosine"`
	// exp of the entropy of the singular values as shares of their sum (Roy and Vetterli 2007)
	EffectiveRank float64 `json:"effective_rank"`
	// square of the sum of the variances over the sum of their squares: the number of directions in use
	Participation float64 `json:"participation_ratio"`
	// 1 where all directions have one variance, 0 where one has all (Rudman et al. 2022)
	IsoScore float64 `json:"isoscore"`
	// log of the mean of exp(-2 |x-y|^2): the less, the more even (Wang and Isola 2020, with t = 2)
	Uniformity float64 `json:"uniformity"`
	// mean |x-y|^2 of rows that belong together: the less, the nearer (there, with alpha = 2); 0 without any
	Alignment float64 `json:"alignment"`
	Positives int     `json:"positives"` // pairs of these

	Spectrum []float64 `json:"-"` // singular values, the largest first
}

// Values names the numbers for logs.
func (s Isotropy) Values() Values {
	v := Values{{"mean_cosine", s.Cosine}, {"effective_rank", s.EffectiveRank},
		{"participation_ratio", s.Participation}, {"isoscore", s.IsoScore}, {"uniformity", s.Uniformity}}
	if s.Positives > 0 {
		v = append(v, Value{"alignment", s.Alignment})
	}
	return v
}

// uniformityT is t of the uniformity.
const uniformityT = 2

// MeasureIsotropy measures n rows of d numbers, x (n, d), with the pairs of rows that belong together. It needs two
// rows, which are finite (else a *NonFiniteError), and in memory 8 bytes x (n d + n n + min(n, d)^2).
func MeasureIsotropy(x []float32, n, d int, positives [][2]int) (Isotropy, error) {
	s := Isotropy{Rows: n, Width: d, Positives: len(positives)}
	if n < 2 || d < 1 || len(x) != n*d {
		return s, errors.New("eval: isotropy needs two rows")
	}
	rows := mat.NewDense(n, d, nil)
	for i, v := range x {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return s, &NonFiniteError{"eval: the isotropy of embeddings that are not finite numbers cannot be measured",
				"the model has diverged, evaluate another checkpoint"}
		}
		rows.RawMatrix().Data[i] = float64(v)
	}
	if err := s.spectrum(rows); err != nil {
		return s, err
	}
	unit := mat.DenseCopyOf(rows)
	for i := range n {
		row := unit.RawRowView(i)
		if norm := mat.Norm(mat.NewVecDense(d, row), 2); norm > 0 {
			for j := range row {
				row[j] /= norm
			}
		}
	}
	var cosines mat.Dense
	cosines.Mul(unit, unit.T())
	total, kernel := 0.0, 0.0
	for i := range n {
		for _, c := range cosines.RawRowView(i)[:i] {
			total += max(-1, min(1, c))
			kernel += math.Exp(-uniformityT * apart(c))
		}
	}
	pairs := float64(n) * float64(n-1) / 2
	s.Cosine, s.Uniformity = total/pairs, math.Log(kernel/pairs)
	for _, p := range positives {
		s.Alignment += apart(cosines.At(p[0], p[1])) / float64(len(positives))
	}
	return s, nil
}

// apart is |x-y|^2 of directions with a cosine, which rounding may put above 1.
func apart(cosine float64) float64 { return max(0, 2-2*cosine) }

// spectrum sets what the singular values of the centred rows say.
func (s *Isotropy) spectrum(rows *mat.Dense) error {
	n, d := rows.Dims()
	centred := mat.DenseCopyOf(rows)
	for j := range d {
		// less the first row equal rows are 0, which rounding of their mean would not leave
		first, mean := rows.At(0, j), 0.0
		for i := range n {
			mean += (rows.At(i, j) - first) / float64(n)
		}
		for i := range n {
			centred.Set(i, j, rows.At(i, j)-first-mean)
		}
	}
	var gram mat.SymDense
	if n < d {
		gram.SymOuterK(1, centred) // (n, n)
	} else {
		gram.SymOuterK(1, centred.T()) // (d, d)
	}
	var e mat.EigenSym
	if !e.Factorize(&gram, false) {
		return errors.New("eval: the spectrum of the embeddings does not converge")
	}
	values := e.Values(nil) // squares of the singular values, rising
	sum, squares, roots := 0.0, 0.0, 0.0
	noise := values[len(values)-1] * float64(max(n, d)) * 0x1p-52 // what rounding leaves of a value that is 0
	for i := len(values) - 1; i >= 0; i-- {
		v := values[i]
		if v <= noise {
			v = 0
		}
		s.Spectrum = append(s.Spectrum, math.Sqrt(v))
		sum, squares, roots = sum+v, squares+v*v, roots+math.Sqrt(v)
	}
	if sum == 0 {
		return nil
	}
	// exp(-sum_i p_i log p_i) with p_i = s_i / sum_j s_j (Roy and Vetterli 2007, definition 1).
	entropy := 0.0
	for _, v := range s.Spectrum {
		if v > 0 {
			entropy -= v / roots * math.Log(v/roots)
		}
	}
	s.EffectiveRank, s.Participation = math.Exp(entropy), sum*sum/squares
	if d > 1 {
		// The variances, scaled to the length of d ones, are away from these by delta of the most that they can be:
		// phi = (d - delta^2 (d - sqrt d))^2 / d^2 of the directions are in use, and IsoScore is (d phi - 1) / (d - 1)
		// (Rudman et al. 2022, algorithm 1). share is d sqrt phi.
		full := float64(d)
		delta2 := (2*full - 2*math.Sqrt(full)*sum/math.Sqrt(squares)) / (2 * (full - math.Sqrt(full)))
		share := full - delta2*(full-math.Sqrt(full))
		s.IsoScore = max(0, min(1, (share*share/full-1)/(full-1)))
	}
	return nil
}
