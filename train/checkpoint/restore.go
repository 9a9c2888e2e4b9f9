package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/state"
)

// Restore sets parts to the checkpoint and returns the names of those that it holds and
// that are not among them, which is not an error. First every part is compared with the
// checkpoint: if one does not fit, all are as they were. An error while tensors are read,
// of a damaged file, leaves them half restored: do not go on with them.
func (c *Checkpoint) Restore(parts []state.Part) (unread []string, err error) {
	var undo []func()
	for _, p := range parts {
		back, err := c.admit(p)
		undo = append(undo, back)
		if err != nil {
			for _, f := range slices.Backward(undo) {
				f()
			}
			return nil, err
		}
	}
	for name := range c.manifest.Parts {
		if !slices.ContainsFunc(parts, func(p state.Part) bool { return p.StateName() == name }) {
			unread = append(unread, name)
		}
	}
	slices.Sort(unread)
	for _, p := range parts {
		if !c.holds(p) {
			continue
		}
		for _, t := range p.Tensors() {
			if err := c.read(p.StateName(), t); err != nil {
				return unread, err
			}
		}
	}
	for _, p := range parts {
		var err error
		if r, ok := p.(state.Restorer); ok && c.holds(p) {
			err = r.Restored()
		} else if o, ok := p.(state.Optional); ok && !c.holds(p) {
			err = o.Absent()
		}
		if err != nil {
			return unread, c.from(err)
		}
	}
	return unread, nil
}

// from says which checkpoint an error of a part is about.
func (c *Checkpoint) from(err error) error { return fmt.Errorf("%w (read from %s)", err, c.Path) }

// holds reports whether the checkpoint has a part.
func (c *Checkpoint) holds(p state.Part) bool {
	_, ok := c.manifest.Parts[p.StateName()]
	return ok
}

// admit compares a part with the checkpoint and sets its counters. back, never nil, puts
// those that it had back.
func (c *Checkpoint) admit(p state.Part) (back func(), err error) {
	back = func() {}
	name := p.StateName()
	saved, ok := c.manifest.Parts[name]
	if _, optional := p.(state.Optional); !ok && optional {
		return back, nil
	}
	if !ok {
		return back, fmt.Errorf("checkpoint: %s holds no part %q (%s): was that part switched off in the run that wrote it?", c.Path, name, fileOf(name))
	}
	if saved.Version != p.StateVersion() {
		return back, &VersionError{Path: c.Path, Part: name, Got: saved.Version, Reads: p.StateVersion()}
	}
	if ptr := p.Counters(); ptr != nil || saved.Counters != nil {
		read, err := c.decode(name, reflect.TypeOf(ptr))
		if err != nil {
			return back, err
		}
		at := reflect.ValueOf(ptr).Elem()
		before := reflect.New(at.Type()).Elem()
		before.Set(at)
		at.Set(read.Elem())
		back = func() { at.Set(before) }
	}
	var bad error
	if k, ok := p.(state.Checker); ok {
		bad = k.CheckCounters()
	}
	// Where shapes differ as well they say more than counters that do not fit them.
	if err := c.fits(p); err != nil {
		return back, err
	}
	if bad != nil {
		return back, c.from(bad)
	}
	return back, nil
}

// decode reads the counters of a part into a new struct, given the type of a pointer to
// one. All of its fields must be there and no other.
func (c *Checkpoint) decode(part string, t reflect.Type) (reflect.Value, error) {
	fail := func(err error) (reflect.Value, error) {
		return reflect.Value{}, fmt.Errorf("checkpoint: counters of %s in %s of %s: %w: choose another checkpoint",
			part, manifestName, c.Path, err)
	}
	raw := c.manifest.Parts[part].Counters
	switch {
	case t == nil:
		return fail(errors.New("this program knows of none"))
	case raw == nil:
		return fail(errors.New("there are none"))
	}
	v := reflect.New(t.Elem())
	if err := checkJSON(raw, t.Elem()); err != nil {
		return fail(err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v.Interface()); err != nil {
		return fail(errors.New(strings.TrimPrefix(err.Error(), "json: ")))
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return fail(err)
	}
	var want, got map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(text, &want), json.Unmarshal(raw, &got)); err != nil {
		return fail(err)
	}
	for name := range want {
		if _, ok := got[name]; !ok && !c.manifest.old {
			return fail(fmt.Errorf("%q is missing", name))
		}
	}
	return v, nil
}

// Counters decodes the counters of a part into v, for programs that have no such part.
// Fields that v lacks are passed over.
func (c *Checkpoint) Counters(part string, v any) error {
	p, ok := c.manifest.Parts[part]
	if !ok || p.Counters == nil {
		return fmt.Errorf("checkpoint: %s holds no counters of %q", c.Path, part)
	}
	if err := decodeJSON(p.Counters, v); err != nil {
		return fmt.Errorf("checkpoint: counters of %s in %s: %w", part, c.Path, err)
	}
	return nil
}

// fits compares the tensors of a part with those of the checkpoint.
func (c *Checkpoint) fits(p state.Part) error {
	tensors := p.Tensors()
	if _, ok := p.(state.Exact); ok {
		var want []Param
		for _, t := range tensors {
			want = append(want, Param{Name: t.Name, Shape: t.Shape})
		}
		return c.Check(p.StateName(), want)
	}
	for _, t := range tensors {
		f, err := c.shaped(p.StateName(), t.Name, t.Shape)
		if err != nil {
			return err
		}
		info, _ := f.Lookup(t.Name)
		if _, want := t.Data.([]float32); want != slices.Contains([]safetensors.DType{safetensors.F64, safetensors.F32,
			safetensors.F16, safetensors.BF16}, info.DType) {
			return fmt.Errorf("checkpoint: %s in %s of %s holds %s, want a %T: choose another checkpoint", t.Name,
				fileOf(p.StateName()), c.Path, info.DType, t.Data)
		}
	}
	return nil
}

// read fills the memory of a tensor.
func (c *Checkpoint) read(part string, t state.Tensor) error {
	switch x := t.Data.(type) {
	case []float32:
		return c.ReadFloat32(part, t.Name, t.Shape, x)
	case []int64:
		return c.ReadInt64(part, t.Name, t.Shape, x)
	case []int32:
		wide := make([]int64, len(x))
		if err := c.ReadInt64(part, t.Name, t.Shape, wide); err != nil {
			return err
		}
		for i, v := range wide {
			if v < math.MinInt32 || v > math.MaxInt32 {
				return fmt.Errorf("checkpoint: %s in %s of %s: %d does not fit 32 bits: choose another checkpoint",
					t.Name, fileOf(part), c.Path, v)
			}
			x[i] = int32(v)
		}
		return nil
	}
	return fmt.Errorf("checkpoint: %s of %s: cannot read a %T: use []float32, []int32 or []int64", t.Name, part, t.Data)
}
