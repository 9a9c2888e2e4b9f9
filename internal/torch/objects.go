package torch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/safetensors"
)

// Names that a pickle may use. Nothing of that name is called.
const (
	orderedDict      global = "collections.OrderedDict"
	rebuildTensor    global = "torch._utils._rebuild_tensor_v2"
	rebuildParameter global = "torch._utils._rebuild_parameter"
	arguments        global = "argparse.Namespace" // what a program was called with: it holds no tensors
)

// storages are the names of types.
var storages = map[global]safetensors.DType{
	"torch.DoubleStorage": safetensors.F64, "torch.FloatStorage": safetensors.F32, "torch.HalfStorage": safetensors.F16,
	"torch.BFloat16Storage": safetensors.BF16, "torch.LongStorage": safetensors.I64,
	"torch.IntStorage": safetensors.I32, "torch.ShortStorage": safetensors.I16, "torch.CharStorage": safetensors.I8,
	"torch.ByteStorage": safetensors.U8, "torch.BoolStorage": safetensors.Bool,
}

// name reads a name and looks it up in the list of those that are known.
func (m *machine) name(op byte) (any, error) {
	var parts [2]string
	if op == globalOp {
		for i := range parts {
			end := strings.IndexByte(string(m.text[m.at:min(len(m.text), m.at+256)]), '\n')
			if end < 0 {
				return nil, errShort
			}
			parts[i] = string(m.text[m.at : m.at+end])
			m.at += end + 1
		}
	} else {
		items, err := m.take(2)
		if err != nil {
			return nil, err
		}
		for i, v := range items {
			s, ok := v.(string)
			if !ok {
				return nil, errors.New("a name is not a text")
			}
			parts[i] = s
		}
	}
	g := global(parts[0] + "." + parts[1])
	if _, ok := storages[g]; ok || g == orderedDict || g == rebuildTensor || g == rebuildParameter || g == arguments {
		return g, nil
	}
	return nil, fmt.Errorf("it names %.80q, and only tensors are read, no other objects: save tensors, or dictionaries and lists of them, as torch.save(model.state_dict(), file) does", string(g))
}

// storage reads what a storage is called by: ("storage", type, key, location, elements), and in the legacy
// format what it is a part of, which PyTorch does not write any more.
func (m *machine) storage() (any, error) {
	v, err := m.pop()
	if err != nil {
		return nil, err
	}
	t, ok := v.(tuple)
	if ok && len(t) == 6 && t[5] == nil {
		t = t[:5]
	}
	if !ok || len(t) != 5 || t[0] != any("storage") {
		return nil, errors.New("it is not a storage of a tensor")
	}
	kind, ok1 := t[1].(global)
	key, ok2 := t[2].(string)
	_, ok = t[3].(string) // the device, of which the numbers do not depend
	n, ok3 := t[4].(int64)
	dtype, ok4 := storages[kind]
	if !ok || !ok1 || !ok2 || !ok3 || !ok4 || n < 0 || n > 1<<48 {
		return nil, errors.New("it is not a storage of a tensor")
	}
	s := storage{dtype, key, n}
	if before, again := m.storages[key]; again && before != s {
		return nil, fmt.Errorf("it gives storage %.40q two types or sizes", key)
	}
	m.storages[key] = s
	return s, nil
}

// reduce makes what a known name makes of its arguments.
func (m *machine) reduce() (any, error) {
	items, err := m.take(2)
	if err != nil {
		return nil, err
	}
	args, ok := items[1].(tuple)
	if !ok {
		return nil, errors.New("its arguments are not a tuple")
	}
	switch items[0] {
	case any(orderedDict):
		if len(args) == 0 {
			return newDict(), nil
		}
	case any(rebuildParameter):
		return parameter(args)
	case any(rebuildTensor):
		return rebuild(args)
	}
	return nil, errors.New("it makes no tensor and no dictionary")
}

// object makes an object of a known name, without its attributes.
func (m *machine) object() (any, error) {
	items, err := m.take(2)
	if err != nil {
		return nil, err
	}
	if args, ok := items[1].(tuple); !ok || len(args) > 0 || items[0] != any(arguments) {
		return nil, errors.New("it makes an object that holds no tensors")
	}
	return newDict(), nil
}

// parameter makes a tensor of (tensor, whether it is trained, hooks).
func parameter(args tuple) (any, error) {
	if len(args) != 3 {
		return nil, fmt.Errorf("%s has %d arguments, and 3 are known", rebuildParameter, len(args))
	}
	t, ok := args[0].(stored)
	if !ok {
		return nil, fmt.Errorf("%s: data is not a tensor", rebuildParameter)
	}
	return t, training(rebuildParameter, args[1], args[2])
}

// training checks what a tensor has for training, of which its numbers do not depend.
func training(of global, grad, hooks any) error {
	if _, ok := grad.(bool); !ok {
		return fmt.Errorf("%s: requires_grad is neither true nor false", of)
	}
	if d, ok := hooks.(*dict); hooks != nil && (!ok || len(d.keys) > 0) {
		return fmt.Errorf("%s: backward_hooks is not empty: save tensors without hooks", of)
	}
	return nil
}

// metadata refuses bits that make other numbers of a tensor than those of its storage.
func metadata(v any) error {
	if v == nil {
		return nil
	}
	d, ok := v.(*dict)
	if !ok {
		return fmt.Errorf("%s: metadata is not a dictionary", rebuildTensor)
	}
	for i, key := range d.keys {
		switch on, ok := d.values[i].(bool); {
		case ok && !on:
		case ok && key == any("neg"):
			return errors.New("a tensor is a view with the other sign (metadata neg): save x.resolve_neg()")
		case ok && key == any("conj"):
			return errors.New("a tensor is a conjugate view (metadata conj): save x.resolve_conj()")
		default:
			return fmt.Errorf("%s: metadata %.40q is not known: save x.clone()", rebuildTensor, fmt.Sprint(key))
		}
	}
	return nil
}

// rebuild makes a tensor of (storage, first element, shape, strides, whether it is trained, hooks), and since version
// 2.0 of PyTorch metadata.
func rebuild(args tuple) (any, error) {
	bad := errors.New("it makes no tensor that can be")
	if len(args) < 6 || len(args) > 7 {
		return nil, fmt.Errorf("%s has %d arguments, and 6 or 7 are known", rebuildTensor, len(args))
	}
	if err := training(rebuildTensor, args[4], args[5]); err != nil {
		return nil, err
	}
	if len(args) == 7 {
		if err := metadata(args[6]); err != nil {
			return nil, err
		}
	}
	s, ok1 := args[0].(storage)
	start, ok2 := args[1].(int64)
	shape, ok3 := sizes(args[2])
	strides, ok4 := sizes(args[3])
	if !ok1 || !ok2 || !ok3 || !ok4 || len(shape) != len(strides) || start < 0 || start > s.n {
		return nil, bad
	}
	if slices.Contains(shape, 0) {
		return stored{s, start, shape, strides}, nil
	}
	last := start
	for i, n := range shape {
		if strides[i] > 0 && int64(n-1) > (s.n-last)/int64(strides[i]) {
			last = s.n
			break
		}
		last += int64(n-1) * int64(strides[i])
	}
	if last >= s.n {
		return nil, fmt.Errorf("a tensor of shape %v is not in its storage of %d elements", shape, s.n)
	}
	return stored{s, start, shape, strides}, nil
}

// sizes returns a tuple of numbers that are not negative and whose product can be counted.
func sizes(v any) (list []int, ok bool) {
	t, ok := v.(tuple)
	if !ok || len(t) > 64 {
		return nil, false
	}
	list = make([]int, len(t))
	product := int64(1)
	for i, x := range t {
		n, ok := x.(int64)
		if !ok || n < 0 || n > 1<<40 || n > 0 && product > (1<<48)/n {
			return nil, false
		}
		list[i] = int(n)
		product *= max(n, 1)
	}
	return list, true
}

// build sets attributes of a dictionary, which nothing here reads.
func (m *machine) build() error {
	items, err := m.take(1)
	if err != nil {
		return err
	}
	if _, ok := items[0].(*dict); !ok || len(m.stack) == 0 {
		return errors.New("it sets what tensors do not have")
	}
	if _, ok := m.stack[len(m.stack)-1].(*dict); !ok {
		return errors.New("it sets what tensors do not have")
	}
	return nil
}
