package scoring

type Kind string

const (
	Cosine   Kind = "cosine"
	Inner    Kind = "inner"
	L2       Kind = "l2"
	Angle    Kind = "angle"
	GSSF     Kind = "gssf"
	Geodesic Kind = "geodesic"
)

type Space struct {
	SphereDim, Spheres int
	Euclid             bool
}
type Metric struct {
	Form   string
	Blocks int
	Weight []float32
}
type Term struct {
	Kind   Kind
	Weight float32
	Metric *Metric
}
type Score struct {
	Space Space
	Terms []Term
}

func Identity(form string, blocks, dim int) []float32 { return nil }
