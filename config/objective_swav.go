package config

// SwAV is the swapped prediction of model.system = "swav": the code of one view, which
// prototypes it belongs to, is predicted from the other. Its weight is objective.itc.weight,
// its temperature and score (cosine or geodesic) are those of objective.itc too.
type SwAV struct {
	Prototypes  int     `toml:"prototypes" fixed:"model" max:"1048576"` // number of prototypes
	Epsilon     float64 `toml:"epsilon" max:"1000000"`                  // temperature of the codes: smaller ones choose fewer prototypes
	Iterations  int     `toml:"iterations" max:"1000"`                  // of Sinkhorn and Knopp, which balance the prototypes
	FreezeSteps int     `toml:"freeze_steps" max:"1000000000"`          // first steps in which the prototypes stay as they are
}

func (w *SwAV) defaults() { *w = SwAV{Prototypes: 3000, Epsilon: 0.05, Iterations: 3} }

func (w *SwAV) check(k *checker, _ *Config) {
	k.Positive("objective.swav.epsilon", "objective.swav.iterations")
	k.Require("objective.swav.prototypes", w.Prototypes >= 2, "must be >= 2")
	k.NotNegative("objective.swav.freeze_steps")
}
