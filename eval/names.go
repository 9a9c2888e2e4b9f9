package eval

import "encoding/json"

// Rankings of an evaluation. In logs the metrics of each stand below its name, as in
// eval/retrieval/first/r_mean; those of the last ranking there was (Reranked, else First)
// stand without one too, as eval/retrieval/r_mean.
const (
	First    = "first"  // by the pair score
	Reranked = "rerank" // the best of it ordered by the matching head
	Random   = "chance" // what a random order reaches
)

// Value is a metric with its name in logs and JSON.
type Value struct {
	Name  string
	Value float64
}

// Values is metrics in an order of their own.
type Values []Value

// RMeanName is the name of RMean.
const RMeanName = "r_mean"

// Values returns the metrics in the order of tables.
func (m Metrics) Values() Values {
	return Values{
		{"i2t_r1", m.I2T.R1}, {"i2t_r5", m.I2T.R5}, {"i2t_r10", m.I2T.R10},
		{"i2t_mean_rank", m.I2T.MeanRank}, {"i2t_median_rank", m.I2T.MedianRank},
		{"t2i_r1", m.T2I.R1}, {"t2i_r5", m.T2I.R5}, {"t2i_r10", m.T2I.R10},
		{"t2i_mean_rank", m.T2I.MeanRank}, {"t2i_median_rank", m.T2I.MedianRank},
		{"rsum", m.RSum()},
		{"txt_r_mean", m.I2T.RecallMean()},
		{"img_r_mean", m.T2I.RecallMean()},
		{RMeanName, m.RMean()},
	}
}

// Map returns Values by name.
func (m Metrics) Map() map[string]float64 {
	out := map[string]float64{}
	for _, v := range m.Values() {
		out[v.Name] = v.Value
	}
	return out
}

// MarshalJSON writes an object of Values in their order.
func (m Metrics) MarshalJSON() ([]byte, error) { return m.Values().MarshalJSON() }

// MarshalJSON writes an object with the names in the order of the list, which that of a map
// would not be: i2t_r10 would stand before i2t_r5.
func (list Values) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(v.Name)
		if err != nil {
			return nil, err
		}
		number, err := json.Marshal(v.Value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), number...)
	}
	return append(b, '}'), nil
}
