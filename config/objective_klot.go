package config

// KLOT is the regulariser of SOTAlign (arXiv 2602.23353): the transport plan between the images
// and the texts of a batch stays near that of a linear alignment of the frozen features, which
// is fitted to the training pairs before the first step. Rows need not be in pairs.
type KLOT struct {
	Weight        float64 `toml:"weight" max:"1000000"`                // of the loss in the total; 0: off
	Reference     string  `toml:"reference" read:"klot"`               // the alignment that is fitted, with its settings in [model.align]: cca | procrustes
	Epsilon       float64 `toml:"epsilon" read:"klot"`                 // of the plan of the trained scores, in their units: the smaller, the more a row looks at its nearest alone
	TargetEpsilon float64 `toml:"target_epsilon" read:"klot"`          // of the plan of the alignment's cosines; 0: epsilon
	Iterations    int     `toml:"iterations" read:"klot" max:"100000"` // of Sinkhorn at most; klot_off in the log says by which share the rows of the plan are off at the end
	Rows          int     `toml:"rows" read:"klot" max:"65536"`        // R, unpaired rows of each side that every step draws besides its batch, from all rows that training may see, paired or not (data.pairs.paired, image_pool, text_pool); 0: none
}

// references are the values of objective.klot.reference: maps of one linear layer a side.
var references = []string{"cca", "procrustes"}

func (o *KLOT) defaults() { *o = KLOT{Reference: "cca", Epsilon: 0.3, Iterations: 100} }

// Target returns the eps of the alignment's plan.
func (o KLOT) Target() float64 {
	if o.TargetEpsilon == 0 {
		return o.Epsilon
	}
	return o.TargetEpsilon
}

func (o *KLOT) check(k *checker, c *Config) {
	k.NotNegative("objective.klot.weight", "objective.klot.rows")
	k.Require("objective.klot.weight", o.Weight == 0 || c.Model.traits().stored, "must be 0",
		c.Model.named()+` trains its towers, and the alignment is fitted to features that stay: use model.system "heads" over stored features`)
	k.OneOf("objective.klot.reference", references...)
	const hint = "0.3 did well for cosines"
	k.Require("objective.klot.epsilon", o.Epsilon >= 1e-3 && o.Epsilon <= 1e3, "must be between 0.001 and 1000", hint)
	k.Require("objective.klot.target_epsilon", o.TargetEpsilon == 0 || o.TargetEpsilon >= 1e-3 && o.TargetEpsilon <= 1e3, "must be 0, or between 0.001 and 1000", hint)
	k.Positive("objective.klot.iterations")
}
