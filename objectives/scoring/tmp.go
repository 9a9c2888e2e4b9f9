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
