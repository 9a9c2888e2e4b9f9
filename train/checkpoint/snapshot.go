package checkpoint

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/geoalign/geoalign/internal/kernel/vector"

	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/state"
)

// extension of a file of tensors.
const extension = ".safetensors"

// fileOf returns the file of a part's tensors.
func fileOf(part string) string { return part + extension }

// Metric is the result of an evaluation by which checkpoints are compared; higher is better.
type Metric struct {
	Name  string // in the log of the run; empty in checkpoints of earlier versions
	Value float64
}

// Snapshot is what a checkpoint holds. Take makes one.
type Snapshot struct {
	Files  map[string][]byte // further files by name, such as a vocabulary
	Metric *Metric           // of an evaluation at this step, if there was one already

	parts   map[string]partState
	tensors []partTensors
}

// partTensors is the content of one file.
type partTensors struct {
	part string
	list []safetensors.Tensor
}

// partName is what a part may be called.
var partName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Take asks parts for what they save. The tensors are their own memory: save the snapshot
// before they go on. A number that is not finite is an error, since a run cannot go on
// from it.
func Take(parts []state.Part) (Snapshot, error) {
	s := Snapshot{parts: map[string]partState{}}
	for _, p := range parts {
		if err := s.take(p); err != nil {
			return Snapshot{}, err
		}
	}
	return s, nil
}

// take adds a part.
func (s *Snapshot) take(p state.Part) error {
	name := p.StateName()
	if _, dup := s.parts[name]; dup || !partName.MatchString(name) || p.StateVersion() < 1 {
		return fmt.Errorf("checkpoint: part %q of version %d: the name is used twice or no lower-case word, or the version is below 1", name, p.StateVersion())
	}
	if p, ok := p.(state.Preparer); ok {
		if err := p.PrepareSave(); err != nil {
			return err
		}
	}
	saved := partState{Version: p.StateVersion()}
	if c := p.Counters(); c != nil {
		raw, err := json.Marshal(c)
		if err != nil {
			return fmt.Errorf("checkpoint: counters of %s: %w", name, err)
		}
		saved.Counters = raw
	}
	s.parts[name] = saved
	file := partTensors{part: name}
	for _, t := range p.Tensors() {
		if err := checkFinite(name, t); err != nil {
			return err
		}
		file.list = append(file.list, safetensors.Tensor{Name: t.Name, Shape: t.Shape, Data: t.Data})
	}
	if len(file.list) > 0 {
		s.tensors = append(s.tensors, file)
	}
	return nil
}

// checkFinite refuses a tensor with numbers that a run cannot go on from.
func checkFinite(part string, t state.Tensor) error {
	x, ok := t.Data.([]float32)
	switch {
	case !ok:
		return nil
	case t.Infinite:
		if slices.ContainsFunc(x, func(v float32) bool { return v != v }) {
			return fmt.Errorf("checkpoint: %s of %s is not a number: nothing is saved: go on from the last checkpoint",
				t.Name, part)
		}
	default:
		// Squares of float32 numbers cannot overflow the float64 sum.
		if sum := vector.SumSq(x); finite(&sum) == nil {
			return fmt.Errorf("checkpoint: %s of %s has numbers that are not finite: nothing is saved: lower optimizer.lr or set optimizer.clip_norm, and go on from the last checkpoint", t.Name, part)
		}
	}
	return nil
}
