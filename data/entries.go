package data

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"

	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/internal/identity"
)

// Entries are the samples of a split as its lists have them, before anything is drawn, cleaned or decoded. They
// are what tells whether data are the same as before. Nothing but the lists is read for them.
type Entries struct {
	Len int
	// At returns entry i. Several goroutines call it.
	At func(i int) Entry
	// Group numbers the entries that are right answers for each other, 0, 1, ... in their order; nil: each is alone.
	Group func(i int) int32
	// Key is a sum that is quicker to have than that of the entries, which it stands for: where keys are equal the
	// entries are, but equal entries may have different keys. nil: there is none.
	Key func(ctx context.Context) (identity.Sum, error)
}

// EntriesRule is the rule by which Sum and Samples are made. It grows when the same data have other ones.
const EntriesRule = 1

// Entry is a sample without its pictures.
type Entry struct {
	Name  string   // that stays with the sample wherever it stands, such as the path of its picture; empty: it has none
	Rest  []string // captions, classes, answers and what else its lists say
	Files []string // that its pictures are read from
	// Shared says that files hold the pictures of many samples. Their paths are then no part of the sample: it stays
	// the same in a file of another name.
	Shared bool
}

// Listed is implemented by streams and splits that have Entries.
type Listed interface{ Entries() Entries }

var (
	_ Listed = (*Train)(nil)
	_ Listed = (*Eval)(nil)
	_ Listed = (*ExampleStream)(nil)
	_ Listed = (*SceneStream)(nil)
	_ Listed = Alternating{}
	_ Listed = overfit{}
)

// EntriesOf returns the entries of a stream or a split. ok is false where it has none, as test data may.
func EntriesOf(x any) (e Entries, ok bool) {
	switch x := x.(type) {
	case Listed:
		return x.Entries(), true
	case Examples:
		return entriesOfExamples(x), true
	case Dataset:
		return entriesOf(x, newDenseIDs(x)), true
	}
	return e, false
}

// Entries implements Listed.
func (t *Train) Entries() Entries { return entriesOf(t.ds, t.dense) }

// Entries implements Listed: those of all of the data, whatever part of it is evaluated.
func (e *Eval) Entries() Entries { return entriesOf(e.ds, newDenseIDs(e.ds)) }

// Entries implements Listed.
func (s *ExampleStream) Entries() Entries { return entriesOfExamples(s.examples) }

// Entries implements Listed.
func (d ExampleDataset) Entries() Entries { return entriesOfExamples(d.Of) }

// Entries implements Listed: those of all samples.
func (f firstExamples) Entries() Entries { return entriesOfExamples(f.Examples) }

// Entries implements Listed: what decides the samples.
func (s *SceneExamples) Entries() Entries { return drawnEntries(s.Split, s.World, s.Classes...) }

// Entries implements Listed: what decides the scenes.
func (s *SceneSet) Entries() Entries { return drawnEntries(s.name, s.world.Config()) }

// Entries implements Listed: those of the stream that is cut off.
func (o overfit) Entries() Entries {
	e, _ := EntriesOf(o.Stream)
	return e
}

// Entries implements Listed: those of the pairs, and behind them those of the sentences.
func (a Alternating) Entries() Entries {
	pairs, _ := EntriesOf(a.Stream)
	sentences, _ := EntriesOf(a.sentences)
	return JoinEntries(pairs, sentences)
}

// JoinEntries puts lists one behind the other.
func JoinEntries(list ...Entries) (all Entries) {
	for _, e := range list {
		all.Len += e.Len
	}
	all.At = func(i int) Entry {
		for _, e := range list {
			if i < e.Len {
				return e.At(i)
			}
			i -= e.Len
		}
		return Entry{}
	}
	return all
}

// drawnEntries are those of samples that the program draws: one, which says what decides them. Later versions must
// write the same text for the same samples.
func drawnEntries(split string, w scenes.Config, more ...string) Entries {
	text := fmt.Sprintf("%d to %d objects, %d shapes, %d colours, %d sizes, held out %d and %d", w.MinObjects,
		w.MaxObjects, w.Shapes, w.Colours, w.Sizes, w.ValSamples, w.TestSamples)
	return Entries{Len: 1, At: func(int) Entry {
		return Entry{Name: "scenes/" + split,
			Rest: append([]string{text}, more...)}
	}}
}

// Entries implements Listed: what decides the scenes.
func (s *SceneStream) Entries() Entries { return drawnEntries("train", s.world.Config()) }

// nameless is implemented by data sets whose Name is a mere number.
type nameless interface{ Nameless() }

// entriesOf are those of a data set whose ids have the numbers dense.
func entriesOf(ds Dataset, dense denseIDs) Entries {
	if l, ok := ds.(Listed); ok { // of its own
		return l.Entries()
	}
	e := Entries{Len: ds.Len(), At: func(i int) Entry { return entryOf(ds, i) }}
	if k, ok := ds.(interface {
		key(ctx context.Context) (identity.Sum, error)
	}); ok {
		e.Key = k.key
	}
	if dense != nil {
		e.Group = func(i int) int32 { return dense.of(ds.ImageID(i)) }
	}
	return e
}

// entryOf is that of image i of a data set.
func entryOf(ds Dataset, i int) (e Entry) {
	if x, ok := ds.(interface{ entry(i int) Entry }); ok {
		e = x.entry(i)
	} else {
		e.Rest = ds.Captions(i)
		if _, none := ds.(nameless); !none {
			e.Name = ds.Name(i)
		}
		if p, ok := ds.(placed); ok {
			path, part := p.place(i)
			e.Files, e.Shared = []string{path}, part != ""
		}
	}
	more := OtherTexts(ds, i)
	if names, ok := labelsOf(ds); ok {
		label := int(labelOf(ds, i))
		more = append(more, "class "+strconv.Itoa(label))
		if label >= 0 && label < len(names) {
			more = append(more, names[label])
		}
	}
	if s, ok := ds.(Seen); ok {
		if camera, role := s.Camera(i), s.Role(i); camera >= 0 || role != Either {
			more = append(more, fmt.Sprint("camera ", camera, " role ", role))
		}
	}
	if r, ok := ds.(interface{ Row(i int) int }); ok {
		more = append(more, "row "+strconv.Itoa(r.Row(i)))
	}
	if len(more) > 0 { // the captions are the data set's
		e.Rest = append(e.Rest[:len(e.Rest):len(e.Rest)], more...)
	}
	return e
}

// entriesOfExamples are those of samples of a downstream task.
func entriesOfExamples(x Examples) Entries {
	if l, ok := x.(Listed); ok {
		return l.Entries()
	}
	files := areFiles(x)
	classes := x.Labels()
	return Entries{Len: x.Len(), At: func(i int) Entry {
		one := x.Example(i)
		e := Entry{Name: one.ID, Rest: []string{one.Text, one.Kind}}
		if one.Label >= 0 && int(one.Label) < len(classes) {
			e.Rest = append(e.Rest, "class "+strconv.Itoa(int(one.Label)), classes[one.Label])
		}
		for _, a := range one.Answers {
			e.Rest = append(e.Rest, a.Text, strconv.FormatFloat(float64(a.Weight), 'g', -1, 32))
		}
		if one.Target != nil {
			e.Rest = append(e.Rest, fmt.Sprint("target", *one.Target))
		}
		if len(one.Proposals) > 0 {
			e.Rest = append(e.Rest, fmt.Sprint("proposals", one.Proposals))
		}
		for k := range x.Pictures() {
			name := x.PictureName(i, k)
			e.Files = append(e.Files, name)
		}
		if !files {
			e.Rest, e.Files = append(e.Rest, e.Files...), nil
		}
		return e
	}}
}

// entryChunk is how many entries are summed at a time.
const entryChunk = 4096

// Sum returns the sum of the entries in their order and with their groups, or what stands for it. name makes of a path
// what stays the same where the data moves. What pictures hold does not count. It ends early with the error of ctx.
func (e Entries) Sum(ctx context.Context, name func(string) string) (identity.Sum, error) {
	if e.Key != nil {
		return e.Key(ctx)
	}
	chunks := (e.Len + entryChunk - 1) / entryChunk
	sums := make([]string, chunks)
	err := each(ctx, chunks, runtime.GOMAXPROCS(0), func(k int) error {
		l := identity.NewList()
		var fields []string
		for i := k * entryChunk; i < min((k+1)*entryChunk, e.Len); i++ {
			x := e.At(i)
			fields = append(append(fields[:0], name(x.Name)), x.rest(name)...)
			l.Add(fields...)
		}
		sums[k] = l.Sum().String()
		return nil
	})
	if err != nil {
		return identity.Sum{}, err
	}
	all := identity.NewList()
	all.Add(sums...)
	if e.Group != nil {
		b := make([]byte, 0, 4*e.Len)
		for i := range e.Len {
			b = binary.LittleEndian.AppendUint32(b, uint32(e.Group(i)))
		}
		all.Add(identity.OfBytes(b).String())
	}
	return all.Sum(), nil
}

// Samples returns the short sums of all entries.
func (e Entries) Samples(ctx context.Context, name func(string) string) ([]identity.Sample, error) {
	list := make([]identity.Sample, e.Len)
	chunks := (e.Len + entryChunk - 1) / entryChunk
	err := each(ctx, chunks, 1, func(k int) error {
		for i := k * entryChunk; i < min((k+1)*entryChunk, e.Len); i++ {
			x := e.At(i)
			list[i] = identity.SampleOf(name(x.Name), x.rest(name))
		}
		return nil
	})
	return list, err
}

// rest is what an entry says beside its name, with the paths of its pictures where these are not the name.
func (x Entry) rest(name func(string) string) []string {
	if x.Shared || len(x.Files) == 0 || len(x.Files) == 1 && x.Files[0] == x.Name {
		return x.Rest
	}
	rest := x.Rest[:len(x.Rest):len(x.Rest)]
	for _, path := range x.Files {
		rest = append(rest, name(path))
	}
	return rest
}
