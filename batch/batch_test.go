package batch

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

var (
	pixels = Column{Name: Images, Shape: []int{3, 2, 2}}
	tokens = Column{Name: Tokens, Shape: []int{4}, Type: Int32}
	ids    = Column{Name: IDs, Type: Int32}
)

func TestBatchRows(t *testing.T) {
	b := New(3, pixels, tokens, ids, pixels)
	if len(b.Columns()) != 3 || b.Rows() != 3 || len(b.Floats(Images)) != 36 || len(b.Ints(Tokens)) != 12 || len(b.Ints(IDs)) != 3 {
		t.Fatalf("%v: %d pixels, %d tokens", b.Columns(), len(b.Floats(Images)), len(b.Ints(Tokens)))
	}
	if b.Floats(Tokens) != nil || b.Ints(Images) != nil || b.Floats("boxes") != nil || b.Row(0).Ints("boxes") != nil {
		t.Error("a column that nobody asked for, or of the other type")
	}
	row := b.Row(1)
	copy(row.Ints(Tokens), []int32{7, 8, 9, 10})
	row.Floats(Images)[11] = 5
	row.Set(IDs, 4)
	row.Set(Labels, 4) // nobody asked for it
	if !slices.Equal(b.Ints(Tokens), []int32{0, 0, 0, 0, 7, 8, 9, 10, 0, 0, 0, 0}) || b.Floats(Images)[23] != 5 || !slices.Equal(b.Ints(IDs), []int32{0, 4, 0}) {
		t.Errorf("tokens %v, ids %v", b.Ints(Tokens), b.Ints(IDs))
	}
	if n := cap(row.Ints(Tokens)); n != 4 {
		t.Errorf("a row reaches %d values far", n)
	}
	own := []int32{1, 2, 3}
	b.SetInts(IDs, own)
	b.Row(2).Set(IDs, 9)
	if own[2] != 9 {
		t.Error("the memory of the caller is not used")
	}
}

// Copy takes the columns that the receiver has and leaves out the others of the source.
func TestRowCopy(t *testing.T) {
	from, to := New(2, pixels, tokens, ids), New(2, tokens, ids)
	copy(from.Row(1).Ints(Tokens), []int32{1, 2, 3, 4})
	from.Row(1).Set(IDs, 6)
	to.Row(0).Copy(from.Row(1))
	if !slices.Equal(to.Ints(Tokens), []int32{1, 2, 3, 4, 0, 0, 0, 0}) || !slices.Equal(to.Ints(IDs), []int32{6, 0}) {
		t.Errorf("tokens %v, ids %v", to.Ints(Tokens), to.Ints(IDs))
	}
	if n := testing.AllocsPerRun(20, func() { to.Row(0).Copy(from.Row(1)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCheckAndUnion(t *testing.T) {
	have := []Column{pixels, tokens}
	if err := Check([]Column{tokens}, have); err != nil {
		t.Error(err)
	}
	long := Column{Name: Tokens, Shape: []int{5}, Type: Int32}
	for want, column := range map[string]Column{
		"the column ids () int32, which the data does not give (it gives images (3, 2, 2) float32, tokens (4) int32): choose data": ids,
		"bring shape and type of the model's input to those of the data, tokens (4) int32":                                         long,
	} {
		err := Check([]Column{column}, have)
		missing, ok := errors.AsType[*MissingError](err)
		if !ok || !strings.Contains(err.Error(), want) || !missing.Want.Equal(column) {
			t.Errorf("%v: got %v, want %q", column, err, want)
		}
	}
	if all, err := Union(have, []Column{ids, pixels}); err != nil || len(all) != 3 || !all[2].Equal(ids) {
		t.Errorf("union %v, %v", all, err)
	}
	check.Fails(Union(have, []Column{long}))(t, "tokens (5) int32 too")
	defer func() {
		if recover() == nil {
			t.Error("a batch with two columns of one name must fail")
		}
	}()
	New(1, tokens, long)
}
