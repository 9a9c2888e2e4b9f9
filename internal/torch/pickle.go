package torch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/safetensors"
)

// Values of the machine, besides nil, bool, int64, float64 and string.
type (
	tuple []any
	list  struct{ items []any }
	dict  struct {
		keys   []any
		values []any
		at     map[any]int
	}
	global  string // of the list below
	mark    struct{}
	storage struct {
		dtype safetensors.DType
		key   string
		n     int64 // elements
	}
	stored struct { // a tensor
		storage        storage
		start          int64 // elements
		shape, strides []int
	}
)

// Instructions of pickles that tensors are written with.
const (
	proto          = 0x80
	frame          = 0x95
	stop           = '.'
	markOp         = '('
	pop            = '0'
	none           = 'N'
	newTrue        = 0x88
	newFalse       = 0x89
	binInt         = 'J'
	binInt1        = 'K'
	binInt2        = 'M'
	long1          = 0x8a
	binFloat       = 'G'
	binUnicode     = 'X'
	shortUnicode   = 0x8c
	emptyTuple     = ')'
	tupleOp        = 't'
	tuple1         = 0x85
	tuple2         = 0x86
	tuple3         = 0x87
	emptyList      = ']'
	appendOp       = 'a'
	appends        = 'e'
	emptyDict      = '}'
	setItem        = 's'
	setItems       = 'u'
	binPut         = 'q'
	longBinPut     = 'r'
	memoize        = 0x94
	binGet         = 'h'
	longBinGet     = 'j'
	globalOp       = 'c'
	stackGlobal    = 0x93
	binPersistent  = 'Q'
	reduce         = 'R'
	newObj         = 0x81
	build          = 'b'
	highestVersion = 5
)

// errShort says that a pickle ends within an instruction.
var errShort = errors.New("it ends within an instruction: copy the file again")

// machine runs a pickle. Every instruction takes a byte at least, so what it holds is bounded by the
// size of the pickle.
type machine struct {
	text     []byte
	at       int
	stack    []any
	memo     map[uint32]any
	storages map[string]storage // by their keys
	plain    bool               // it makes dictionaries, lists, texts and numbers
}

// newMachine returns a machine before the first instruction of a pickle, with which text begins.
func newMachine(text []byte) *machine {
	return &machine{text: text, memo: map[uint32]any{}, storages: map[string]storage{}}
}

// unpickle returns what a pickle makes.
func unpickle(text []byte) (any, error) { return newMachine(text).run() }

// run returns what the pickle makes.
func (m *machine) run() (any, error) {
	for {
		at := m.at
		op, err := m.byte()
		if err != nil {
			return nil, err
		}
		if op == stop {
			return m.pop()
		}
		if err := m.do(op); err != nil {
			return nil, fmt.Errorf("instruction %#02x at byte %d: %w", op, at, err)
		}
	}
}

// do runs one instruction.
func (m *machine) do(op byte) error {
	switch op {
	case proto:
		v, err := m.byte()
		if err == nil && v > highestVersion {
			err = fmt.Errorf("it has version %d of the format, and at most %d is read", v, highestVersion)
		}
		return err
	case frame:
		_, err := m.bytes(8)
		return err
	case markOp:
		return m.push(mark{}, nil)
	case pop:
		_, err := m.pop()
		return err
	case none:
		return m.push(nil, nil)
	case newTrue, newFalse:
		return m.push(op == newTrue, nil)
	case binInt1, binInt2, binInt, long1, binFloat:
		return m.push(m.number(op))
	case binUnicode, shortUnicode:
		return m.push(m.unicode(op))
	case emptyTuple:
		return m.push(tuple{}, nil)
	case tuple1, tuple2, tuple3:
		items, err := m.take(int(op-tuple1) + 1)
		return m.push(tuple(items), err)
	case tupleOp:
		items, err := m.marked()
		return m.push(tuple(items), err)
	case emptyList:
		return m.push(&list{}, nil)
	case emptyDict:
		return m.push(newDict(), nil)
	case appendOp, appends, setItem, setItems:
		return m.fill(op)
	case binPut, longBinPut, memoize, binGet, longBinGet:
		return m.remember(op)
	case globalOp, stackGlobal:
		return m.push(m.name(op))
	case binPersistent:
		return m.push(m.storage())
	case reduce:
		return m.push(m.reduce())
	case newObj:
		return m.push(m.object())
	case build:
		return m.build()
	}
	if m.plain {
		return m.doPlain(op)
	}
	return errors.New("it is none that tensors are written with: save tensors, or dictionaries and lists of them, with torch.save")
}

func (m *machine) byte() (byte, error) {
	if m.at >= len(m.text) {
		return 0, errShort
	}
	m.at++
	return m.text[m.at-1], nil
}

func (m *machine) bytes(n int) ([]byte, error) {
	if n > len(m.text)-m.at {
		return nil, errShort
	}
	m.at += n
	return m.text[m.at-n : m.at], nil
}

func (m *machine) push(v any, err error) error {
	if err == nil {
		m.stack = append(m.stack, v)
	}
	return err
}

func (m *machine) pop() (any, error) {
	items, err := m.take(1)
	if err != nil {
		return nil, err
	}
	return items[0], nil
}

// take returns the n values on top of the stack.
func (m *machine) take(n int) ([]any, error) {
	if n > len(m.stack) {
		return nil, errors.New("it takes more values than there are")
	}
	items := append([]any(nil), m.stack[len(m.stack)-n:]...)
	m.stack = m.stack[:len(m.stack)-n]
	return items, nil
}

// marked returns the values above the last mark.
func (m *machine) marked() ([]any, error) {
	for n := range len(m.stack) {
		if _, is := m.stack[len(m.stack)-1-n].(mark); is {
			items, err := m.take(n)
			m.stack = m.stack[:len(m.stack)-1]
			return items, err
		}
	}
	return nil, errors.New("there is no mark")
}

func (m *machine) number(op byte) (any, error) {
	n := map[byte]int{binInt1: 1, binInt2: 2, binInt: 4, binFloat: 8, long1: 1}[op]
	b, err := m.bytes(n)
	if err != nil {
		return nil, err
	}
	switch op {
	case binInt1:
		return int64(b[0]), nil
	case binInt2:
		return int64(binary.LittleEndian.Uint16(b)), nil
	case binInt:
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	case binFloat:
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	}
	if n = int(b[0]); n > 8 {
		return nil, fmt.Errorf("it is a number of %d bytes, and at most 8 are read", n)
	}
	if b, err = m.bytes(n); err != nil || n == 0 {
		return int64(0), err
	}
	v := int64(int8(b[n-1])) // the sign
	for i := n - 2; i >= 0; i-- {
		v = v<<8 | int64(b[i])
	}
	return v, nil
}

func (m *machine) unicode(op byte) (any, error) {
	size := map[byte]int{binUnicode: 4, shortUnicode: 1}[op]
	b, err := m.bytes(size)
	if err != nil {
		return nil, err
	}
	n := int64(b[0])
	if op == binUnicode {
		n = int64(binary.LittleEndian.Uint32(b))
	}
	if n > int64(len(m.text)) {
		return nil, errShort
	}
	b, err = m.bytes(int(n))
	return string(b), err
}

// fill puts values into the list or dictionary below them.
func (m *machine) fill(op byte) error {
	var items []any
	var err error
	switch op {
	case appendOp:
		items, err = m.take(1)
	case setItem:
		items, err = m.take(2)
	default:
		items, err = m.marked()
	}
	if err != nil {
		return err
	}
	if len(m.stack) == 0 {
		return errors.New("there is nothing to put values into")
	}
	switch x := m.stack[len(m.stack)-1].(type) {
	case *list:
		if op == appendOp || op == appends {
			x.items = append(x.items, items...)
			return nil
		}
	case *dict:
		if (op == setItem || op == setItems) && len(items)%2 == 0 {
			for i := 0; i < len(items); i += 2 {
				if err := x.set(items[i], items[i+1]); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return errors.New("it puts values into what holds none of them")
}

func newDict() *dict { return &dict{at: map[any]int{}} }

// set gives a key a value; a later one replaces an earlier one.
func (d *dict) set(key, value any) error {
	switch key.(type) {
	case string, int64, bool, float64:
	default:
		return fmt.Errorf("the key of a dictionary is a %T, no text or number", key)
	}
	if i, ok := d.at[key]; ok {
		d.values[i] = value
		return nil
	}
	d.at[key] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, value)
	return nil
}

// remember stores the value on top, or gets one.
func (m *machine) remember(op byte) error {
	var key uint32
	switch op {
	case memoize:
		key = uint32(len(m.memo))
	case binPut, binGet:
		b, err := m.byte()
		if err != nil {
			return err
		}
		key = uint32(b)
	default:
		b, err := m.bytes(4)
		if err != nil {
			return err
		}
		key = binary.LittleEndian.Uint32(b)
	}
	return m.remembered(op == binGet || op == longBinGet, key)
}

// remembered stores the value on top under a number, or gets that one.
func (m *machine) remembered(get bool, key uint32) error {
	if get {
		v, ok := m.memo[key]
		if !ok {
			return fmt.Errorf("it gets value %d, which was not stored", key)
		}
		return m.push(v, nil)
	}
	if len(m.stack) == 0 {
		return errors.New("there is nothing to store")
	}
	m.memo[key] = m.stack[len(m.stack)-1]
	return nil
}
