package section

import "reflect"

// View is a configuration as a component sees it: the facts that hold, the sections that its package may import, and
// the values of keys by their paths.
type View struct {
	Facts
	sections []any
	value    func(path string) reflect.Value
}

// NewView returns a view of sections, pointers to their structs, between which facts hold. value panics where there is
// no key: its path is then a mistake of the program.
func NewView(sections []any, value func(path string) reflect.Value, facts Facts) *View {
	return &View{facts, sections, value}
}

// Has says whether a fact holds.
func (v *View) Has(f Fact) bool { return v.Held[f] }

func (v *View) all() []any { return v.sections }

// Viewer is a *View, or what has one in it, such as a *Checker.
type Viewer interface{ all() []any }

// Of returns the section of type T. One that is not there is a mistake of the program.
func Of[T any](v Viewer) *T {
	for _, s := range v.all() {
		if t, ok := s.(*T); ok {
			return t
		}
	}
	panic("section: no section is a " + reflect.TypeFor[T]().String())
}
