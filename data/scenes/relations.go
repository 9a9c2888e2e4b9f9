package scenes

// RelationKind is a direction between two objects.
type RelationKind uint8

// The relations. Objects in one column are neither left nor right of each
// other, objects in one row neither above nor below, whatever their jitter.
const (
	LeftOf RelationKind = iota
	RightOf
	Above
	Below
	numRelations = iota
)

var relationNames = [numRelations]string{"to the left of", "to the right of", "above", "below"}

// String returns the relation's words: "to the left of".
func (k RelationKind) String() string { return relationNames[k] }

// Relation says that object A lies Kind object B. A and B index Scene.Objects.
type Relation struct {
	A, B int
	Kind RelationKind
}

// Holds reports whether object a lies kind object b.
func (s Scene) Holds(a int, kind RelationKind, b int) bool {
	p, q := s.Objects[a].Place, s.Objects[b].Place
	switch kind {
	case LeftOf:
		return p.Column() < q.Column()
	case RightOf:
		return p.Column() > q.Column()
	case Above:
		return p.Row() < q.Row()
	}
	return p.Row() > q.Row()
}

// Relations returns every relation that holds, in the order of A, B, Kind.
func (s Scene) Relations() []Relation {
	var out []Relation
	for a := range s.Objects {
		for b := range s.Objects {
			for k := range RelationKind(numRelations) {
				if s.Holds(a, k, b) {
					out = append(out, Relation{a, b, k})
				}
			}
		}
	}
	return out
}
