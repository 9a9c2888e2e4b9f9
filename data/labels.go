package data

// UnknownLabel is the label of an image that belongs to no class.
const UnknownLabel = -1

// Labelled is implemented by data sets whose images may belong to classes.
type Labelled interface {
	// Labels returns the names of the classes in the order of their numbers. ok is
	// false where the data knows no classes.
	Labels() (names []string, ok bool)
	// Label is the class of image i, or UnknownLabel.
	Label(i int) int32
}

// LabelledStream is implemented by training streams whose samples may belong to
// classes.
type LabelledStream interface {
	// Labels returns the names of the classes in the order of their numbers. ok is
	// false where the data knows no classes.
	Labels() (names []string, ok bool)
	// SampleLabel is the class of sample c, or UnknownLabel. It reads no image.
	SampleLabel(c uint64) int32
}

// labelsOf returns the classes of a data set or a stream, ok = false for one that
// knows nothing of classes.
func labelsOf(x any) (names []string, ok bool) {
	if l, is := x.(interface{ Labels() ([]string, bool) }); is {
		return l.Labels()
	}
	return nil, false
}

// labelOf is the class of image i of a data set.
func labelOf(ds Dataset, i int) int32 {
	if l, ok := ds.(Labelled); ok {
		return l.Label(i)
	}
	return UnknownLabel
}

// sampleLabel is the class of sample c of a stream.
func sampleLabel(s Stream, c uint64) int32 {
	if l, ok := s.(LabelledStream); ok {
		return l.SampleLabel(c)
	}
	return UnknownLabel
}

var (
	_ Labelled       = (*Files)(nil)
	_ Labelled       = (*Memory)(nil)
	_ Labelled       = (*SceneSet)(nil)
	_ LabelledStream = (*Train)(nil)
	_ LabelledStream = (*SceneStream)(nil)
	_ LabelledStream = overfit{}
)

// Labels returns the names of the classes, ok = false for data of a kind other than
// folder.
func (f *Files) Labels() (names []string, ok bool) { return f.classes, f.classes != nil }

// Label is the class of image i.
func (f *Files) Label(i int) int32 {
	if f.classes == nil {
		return UnknownLabel
	}
	return f.items[i].Label
}

// Labels returns Classes, ok = false where there are none.
func (m *Memory) Labels() (names []string, ok bool) { return m.Classes, m.Classes != nil }

// Label is the class of image i.
func (m *Memory) Label(i int) int32 {
	if m.Classes == nil {
		return UnknownLabel
	}
	return m.ClassOf[i]
}

// Labels returns the classes of the data set.
func (t *Train) Labels() (names []string, ok bool) { return labelsOf(t.ds) }

// SampleLabel is the class of the image of sample c.
func (t *Train) SampleLabel(c uint64) int32 {
	i, _ := t.item(c)
	return labelOf(t.ds, i)
}

func (o overfit) Labels() (names []string, ok bool) { return labelsOf(o.Stream) }

func (o overfit) SampleLabel(c uint64) int32 { return sampleLabel(o.Stream, c%o.n) }

// Labels returns the classes of the world: see scenes.World.Classes.
func (s *SceneStream) Labels() (names []string, ok bool) { return s.world.Classes(), true }

// SampleLabel is the class of scene c.
func (s *SceneStream) SampleLabel(c uint64) int32 { return int32(s.world.Class(s.scene(c))) }

// Labels returns the classes of the world: see scenes.World.Classes.
func (s *SceneSet) Labels() (names []string, ok bool) { return s.world.Classes(), true }

// Label is the class of scene i.
func (s *SceneSet) Label(i int) int32 { return int32(s.world.Class(s.at(i))) }

// Labels returns the classes of the data set, ok = false where it has none.
func (e *Eval) Labels() (names []string, ok bool) { return labelsOf(e.ds) }

// Label is the class of image i, or UnknownLabel.
func (e *Eval) Label(i int) int32 { return labelOf(e.ds, e.images[i]) }

// Labels returns the classes of the samples, ok = false where the data has none.
func (l *Loader) Labels() (names []string, ok bool) { return labelsOf(l.stream) }
