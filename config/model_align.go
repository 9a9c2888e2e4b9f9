package config

// Align is the closed form of model.system = "align", which is fitted to all training pairs
// of stored features at once, and of model.heads.start. The methods are those of package align.
type Align struct {
	Method      string           `toml:"method" read:"align" fixed:"model"`            // cca | ridge | procrustes | csa | asif | wasserstein
	Center      bool             `toml:"center" read:"align moments" fixed:"run"`      // subtract the mean of the training pairs
	UnitLength  bool             `toml:"unit_length" read:"align moments" fixed:"run"` // scale the rows to unit length for the fit, after center, so that no pair counts more than another
	CCA         AlignCCA         `toml:"cca" read:"align cca"`
	Ridge       AlignRidge       `toml:"ridge" read:"align ridge"`
	Procrustes  AlignProcrustes  `toml:"procrustes" read:"align procrustes"`
	CSA         AlignCSA         `toml:"csa" read:"align csa"`
	ASIF        AlignASIF        `toml:"asif" read:"align asif"`
	Wasserstein AlignWasserstein `toml:"wasserstein" read:"align wasserstein"`
}

// Values of model.align.method.
const (
	AlignByCCA         = "cca"
	AlignByRidge       = "ridge"
	AlignByProcrustes  = "procrustes"
	AlignByCSA         = "csa"
	AlignByASIF        = "asif"
	AlignByWasserstein = "wasserstein"
)

func (a *Align) defaults() { *a = Align{Method: AlignByCCA, Center: true, UnitLength: true} }

func (a *Align) check(k *checker, _ *Config) {
	k.OneOf("model.align.method", AlignByCCA, AlignByRidge, AlignByProcrustes, AlignByCSA, AlignByASIF, AlignByWasserstein)
}

// AlignCCA is canonical correlation analysis.
type AlignCCA struct {
	Shrinkage  float64 `toml:"shrinkage" fixed:"run" max:"1000000"`  // added to the covariance of each side, in units of its mean eigenvalue; 0: 30/sqrt(N) for N pairs
	Components int     `toml:"components" fixed:"run" max:"1048576"` // canonical components, those of the largest correlations; 0: all
	Power      float64 `toml:"power" fixed:"run" max:"64"`           // a component is scaled by its correlation to this power; 0: all count alike
}

func (a *AlignCCA) defaults() { *a = AlignCCA{Power: 1} }

func (a *AlignCCA) check(k *checker, _ *Config) {
	k.NotNegative("model.align.cca.shrinkage", "model.align.cca.components", "model.align.cca.power")
}

// AlignRidge is ridge regression.
type AlignRidge struct {
	Direction string  `toml:"direction" fixed:"run"`             // both (the mean of the cosines of both maps) | text_to_image (texts are mapped to images) | image_to_text
	Penalty   float64 `toml:"penalty" fixed:"run" max:"1000000"` // in units of the mean eigenvalue of the covariance of the side that is mapped; 0: chosen by leave-one-out
}

func (a *AlignRidge) defaults() { *a = AlignRidge{Direction: "both"} }

func (a *AlignRidge) check(k *checker, _ *Config) {
	k.OneOf("model.align.ridge.direction", "both", "text_to_image", "image_to_text")
	k.NotNegative("model.align.ridge.penalty")
}

// AlignProcrustes is the orthogonal map.
type AlignProcrustes struct {
	RotationOnly bool `toml:"rotation_only" fixed:"run"` // no reflections
}

func (a *AlignProcrustes) defaults() {}

func (a *AlignProcrustes) check(*checker, *Config) {}

// AlignCSA is canonical similarity analysis.
type AlignCSA struct {
	Shrinkage  float64 `toml:"shrinkage" fixed:"run" max:"1000000"`  // as model.align.cca.shrinkage
	Components int     `toml:"components" fixed:"run" max:"1048576"` // canonical components that the similarity sums over; 0: all
}

func (a *AlignCSA) defaults() {}

func (a *AlignCSA) check(k *checker, _ *Config) {
	k.NotNegative("model.align.csa.shrinkage", "model.align.csa.components")
}

// AlignASIF compares rows by their similarities to the training pairs.
type AlignASIF struct {
	K int     `toml:"k" fixed:"run" max:"16777216"` // most similar training pairs of a row that count; 0: 800, or all where there are fewer
	P float64 `toml:"p" fixed:"run" max:"1024"`     // power of the similarities
}

func (a *AlignASIF) defaults() { *a = AlignASIF{P: 8} }

func (a *AlignASIF) check(k *checker, _ *Config) {
	k.NotNegative("model.align.asif.k")
	k.Positive("model.align.asif.p")
}

// AlignWasserstein is Procrustes without pairs: of the training pairs only the rows are used.
type AlignWasserstein struct {
	Components int `toml:"components" fixed:"run" max:"65536"` // principal components of each side; 0: 64, or fewer where there are fewer
	Rows       int `toml:"rows" fixed:"run" max:"65536"`       // rows of each side that are matched
	Restarts   int `toml:"restarts" fixed:"run" max:"65536"`   // starts with noise beside the one without, drawn by run.seed
}

func (a *AlignWasserstein) defaults() { *a = AlignWasserstein{Rows: 500, Restarts: 4} }

func (a *AlignWasserstein) check(k *checker, _ *Config) {
	k.NotNegative("model.align.wasserstein.components", "model.align.wasserstein.restarts")
	k.Require("model.align.wasserstein.rows", a.Rows >= 2, "must be >= 2")
}
