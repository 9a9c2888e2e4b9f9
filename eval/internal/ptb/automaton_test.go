package ptb

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

var jar = flag.String("jar", "", "Stanford's tokenizer, the absolute path of stanford-corenlp-3.4.1.jar, which the Python package pycocoevalcap has")

// TestAutomaton walks through the automaton in Stanford's program and ours in step, from the start along every kind of
// character: a pair of states that is reached must accept both or neither, by a rule that does the same. So both cut
// every text alike.
func TestAutomaton(t *testing.T) {
	if *jar == "" {
		t.Skip("no program to compare with: give it by -jar")
	}
	theirs := check.Get(readTables(*jar))(t)
	l := newLexer()
	actions := map[int]int{} // of ours: theirs
	const traditional = 2    // the state in which it starts with the options of pycocoevalcap
	checkEqual(t, l, theirs, l.start, traditional, actions)
	for number, r := range rules {
		if _, ok := actions[number]; !ok {
			t.Errorf("rule %q never matches", r.name)
		}
	}
}

// checkEqual compares two automata from a state of each on. actions gets the action of theirs for each rule.
func checkEqual(t *testing.T, l *lexer, theirs *tables, ours0, theirs0 int32, actions map[int]int) {
	type pair struct{ ours, theirs int32 }
	// A unit of every class of both.
	var units []uint16
	seenClass := map[[2]uint16]bool{}
	for u := range 1 << 16 {
		c := [2]uint16{l.class[u], theirs.class[u]}
		if !seenClass[c] {
			seenClass[c] = true
			units = append(units, uint16(u))
		}
	}
	first := pair{ours0, theirs0}
	from := map[pair]pair{}
	by := map[pair]uint16{}
	example := func(p pair) string {
		var s []uint16
		for p != first {
			s = append([]uint16{by[p]}, s...)
			p = from[p]
		}
		return fmt.Sprintf("%q", text(s))
	}
	failures := 0
	fail := func(p pair, format string, args ...any) {
		if failures++; failures < 60 {
			t.Errorf("%s: %s", example(p), fmt.Sprintf(format, args...))
		}
	}
	seen := map[pair]bool{first: true}
	for queue := []pair{first}; len(queue) > 0 && failures < 60; queue = queue[1:] {
		p := queue[0]
		end := l.states[p.ours].end
		if got, want := end != none, theirs.attribute[p.theirs]&1 == 1; got != want {
			name := ""
			if got {
				name = rules[end].name
			}
			fail(p, "ours accepts: %t (%s), theirs: %t (%d)", got, name, want, theirs.action[p.theirs])
			continue
		}
		if end != none {
			action := theirs.action[p.theirs]
			if known, ok := actions[end]; ok && known != action {
				fail(p, "%q is action %d here, %d elsewhere", rules[end].name, action, known)
				continue
			}
			actions[end] = action
		}
		for _, u := range units {
			q := pair{l.step(p.ours, u), theirs.step(p.theirs, u)}
			if seen[q] || q.ours == dead && q.theirs == dead {
				continue
			}
			seen[q], from[q], by[q] = true, p, u
			if q.ours == dead || q.theirs == dead {
				fail(q, "goes on: ours %t, theirs %t", q.ours != dead, q.theirs != dead)
				continue
			}
			queue = append(queue, q)
		}
	}
	t.Logf("%d pairs of states, %d of ours, %d kinds of characters", len(seen), len(l.states), len(units))
}

// tables are those of a scanner by JFlex.
type tables struct {
	class                                []uint16
	action, attribute, rows, transitions []int
}

func (t *tables) step(from int32, unit uint16) int32 {
	return int32(t.transitions[t.rows[from]+int(t.class[unit])])
}

// readTables reads them from the constants of the class, which has them packed.
func readTables(jar string) (*tables, error) {
	r, err := zip.OpenReader(jar)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := r.Open("edu/stanford/nlp/process/PTBLexer.class")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	packed := classStrings(b)
	t := &tables{action: repeated(packed["ZZ_ACTION_PACKED_0"]), attribute: repeated(packed["ZZ_ATTRIBUTE_PACKED_0"])}
	for _, c := range repeated(packed["ZZ_CMAP_PACKED"]) {
		t.class = append(t.class, uint16(c))
	}
	rows := packed["ZZ_ROWMAP_PACKED_0"]
	for i := 0; i < len(rows); i += 2 {
		t.rows = append(t.rows, int(rows[i])<<16|int(rows[i+1]))
	}
	for k := 0; packed[fmt.Sprint("ZZ_TRANS_PACKED_", k)] != nil; k++ {
		for _, to := range repeated(packed[fmt.Sprint("ZZ_TRANS_PACKED_", k)]) {
			t.transitions = append(t.transitions, to-1)
		}
	}
	if len(t.class) != 1<<16 || len(t.transitions) == 0 || len(t.action) != len(t.rows) ||
		len(t.attribute) != len(t.rows) {
		return nil, fmt.Errorf("ptb: %s has no tables of a scanner by JFlex", jar)
	}
	return t, nil
}

// repeated unpacks pairs of a number and how often it stands there.
func repeated(packed []uint16) (out []int) {
	for i := 0; i < len(packed); i += 2 {
		for range packed[i] {
			out = append(out, int(packed[i+1]))
		}
	}
	return out
}

// classStrings returns the strings of a Java class that are the constant of a field, by the field's name.
func classStrings(class []byte) map[string][]uint16 {
	r := bytes.NewReader(class)
	u2 := func() int { var v uint16; binary.Read(r, binary.BigEndian, &v); return int(v) }
	u4 := func() int { var v uint32; binary.Read(r, binary.BigEndian, &v); return int(v) }
	skip := func(n int) { r.Seek(int64(n), io.SeekCurrent) }
	skip(8)
	names, strings := map[int][]byte{}, map[int]int{}
	for i, n := 1, u2(); i < n; i++ {
		tag, _ := r.ReadByte()
		switch tag {
		case 1:
			names[i] = make([]byte, u2())
			io.ReadFull(r, names[i])
		case 8:
			strings[i] = u2()
		case 7, 16, 19, 20:
			skip(2)
		case 15:
			skip(3)
		case 5, 6:
			skip(8)
			i++
		default:
			skip(4)
		}
	}
	skip(6)
	skip(2 * u2())
	out := map[string][]uint16{}
	for range u2() {
		skip(2)
		name := string(names[u2()])
		skip(2)
		for range u2() {
			kind, size := string(names[u2()]), u4()
			if kind != "ConstantValue" {
				skip(size)
			} else if s, ok := strings[u2()]; ok {
				out[name] = units(names[s])
			}
		}
	}
	return out
}

// units decodes a string of a Java class.
func units(b []byte) (out []uint16) {
	for i := 0; i < len(b); {
		switch c := uint16(b[i]); {
		case c < 0x80:
			out, i = append(out, c), i+1
		case c < 0xE0:
			out, i = append(out, c&0x1F<<6|uint16(b[i+1])&0x3F), i+2
		default:
			out, i = append(out, c&0xF<<12|uint16(b[i+1])&0x3F<<6|uint16(b[i+2])&0x3F), i+3
		}
	}
	return out
}
