package train

import (
	"fmt"
	"maps"
	"path/filepath"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/checkpoint"
	"gorgonia.org/tensor"
)

// Files of a checkpoint besides its tensors.
const (
	configFile    = "config.toml"
	tokenizerFile = "tokenizer.json"
)

// State is the part of a checkpoint that is no tensor. Everything random of a run
// is a function of the seed and these counters.
type State struct {
	Step           int    `json:"step"`            // updates done
	Position       uint64 `json:"position"`        // next sample of the training stream
	OptimizerSteps int    `json:"optimizer_steps"` // updates that the bias correction counts
	QueuePointer   int    `json:"queue_pointer"`
	QueueFilled    int    `json:"queue_filled"`
	Seed           uint64 `json:"seed"`

	Graphs  *GraphState `json:"graphs,omitempty"` // over the queue
	Elapsed float64     `json:"elapsed_seconds"`  // that the run took so far

	// Values are the numbers of the last step. A process that is killed after it
	// saved has not logged them yet.
	Values map[string]float64 `json:"values,omitempty"`
}

// Snapshot returns everything that a resumed run needs after the step of e. Its
// tensors are the session's own memory: save it before the next step. Numbers that
// are not finite are an error, since a run cannot go on from them.
func (s *Session) Snapshot(e *Event) (checkpoint.Snapshot, error) {
	p := s.model.Params()
	var params, twins, first, second []checkpoint.Tensor
	m, v := s.optimizer.Moments()
	for _, q := range p.List() {
		params = append(params, checkpoint.Tensor{Name: q.Name, Shape: q.Shape, Data: p.Value(q)})
		if q.Twin {
			twins = append(twins, checkpoint.Tensor{Name: q.Name, Shape: q.Shape, Data: p.MomentumValue(q)})
		}
		lo, hi := p.Offset(q), p.Offset(q)+q.Len()
		first = append(first, checkpoint.Tensor{Name: "m/" + q.Name, Shape: q.Shape, Data: m[lo:hi]})
		second = append(second, checkpoint.Tensor{Name: "v/" + q.Name, Shape: q.Shape, Data: v[lo:hi]})
	}
	snap := checkpoint.Snapshot{Groups: []checkpoint.Group{{Name: "model", Tensors: params}}}
	if len(twins) > 0 {
		snap.Groups = append(snap.Groups, checkpoint.Group{Name: "momentum", Tensors: twins})
	}
	snap.Groups = append(snap.Groups, checkpoint.Group{Name: "optimizer", Tensors: append(first, second...)})
	state := State{
		Step: e.Step, Position: s.loader.Position(), OptimizerSteps: s.optimizer.Steps(), Seed: s.cfg.Run.Seed,
		Elapsed: e.Elapsed.Seconds(), Values: maps.Clone(e.Values),
	}
	maps.DeleteFunc(state.Values, func(_ string, v float64) bool { return !finite(v) }) // JSON has none
	if q := s.model.Queue(); q != nil {
		group := checkpoint.Group{Name: "queue", Tensors: queueTensors(q)}
		group.Tensors = append(group.Tensors, checkpoint.Tensor{Name: "ids", Shape: tensor.Shape{q.Size()}, Data: q.IDs})
		snap.Groups = append(snap.Groups, group)
		state.QueuePointer, state.QueueFilled = q.Pointer, q.Filled
	}
	graphs := checkpoint.Group{}
	if g := s.model.Graphs(); g != nil {
		var err error
		if graphs, state.Graphs, err = snapshotGraphs(g, s.cfg.Objective.Geodesic.Layers); err != nil {
			return snap, err
		}
	}
	snap.State = state
	if err := checkFinite(snap.Groups); err != nil {
		return snap, err
	}
	if graphs.Name != "" { // paths may be infinite
		snap.Groups = append(snap.Groups, graphs)
	}
	resolved, err := s.cfg.Encode()
	if err != nil {
		return snap, err
	}
	vocabulary, err := s.tokenizer.JSON()
	if err != nil {
		return snap, err
	}
	snap.Files = map[string][]byte{configFile: resolved, tokenizerFile: vocabulary}
	return snap, nil
}

// checkFinite names the first tensor with a number that is not finite.
func checkFinite(groups []checkpoint.Group) error {
	for _, g := range groups {
		for _, t := range g.Tensors {
			x, ok := t.Data.([]float32)
			if ok && !finite(vector.SumSq(x)) {
				return fmt.Errorf("train: %s of %s has numbers that are not finite: nothing is saved: lower optimizer.lr or set optimizer.clip_norm, and go on from the last checkpoint", t.Name, g.Name)
			}
		}
	}
	return nil
}

// Restore sets the session to a checkpoint of the same architecture and seed.
func (s *Session) Restore(c *checkpoint.Checkpoint) (State, error) {
	var state State
	if err := c.State(&state); err != nil {
		return state, err
	}
	if state.Seed != s.cfg.Run.Seed {
		return state, fmt.Errorf("run.seed: the checkpoint was made with seed %d (got %d): resume with --seed %d", state.Seed, s.cfg.Run.Seed, state.Seed)
	}
	if err := LoadModel(s.model, c); err != nil {
		return state, err
	}
	p := s.model.Params()
	m, v := s.optimizer.Moments()
	for _, q := range p.List() {
		lo, hi := p.Offset(q), p.Offset(q)+q.Len()
		if err := c.ReadFloat32("optimizer", "m/"+q.Name, q.Shape, m[lo:hi]); err != nil {
			return state, err
		}
		if err := c.ReadFloat32("optimizer", "v/"+q.Name, q.Shape, v[lo:hi]); err != nil {
			return state, err
		}
		if q.Twin {
			if err := c.ReadFloat32("momentum", q.Name, q.Shape, p.MomentumValue(q)); err != nil {
				return state, err
			}
		}
	}
	s.optimizer.SetSteps(state.OptimizerSteps)
	if q := s.model.Queue(); q != nil {
		if err := restoreQueue(q, c, state); err != nil {
			return state, err
		}
	}
	if g := s.model.Graphs(); g != nil {
		if err := restoreGraphs(g, c, state.Graphs, s.cfg.Objective.Geodesic.Layers); err != nil {
			return state, err
		}
	}
	s.loader.Start(state.Position)
	return state, nil
}

// Rollback sets the session to a checkpoint but keeps the place in the data, which
// is behind the batch that was not finite.
func (s *Session) Rollback(c *checkpoint.Checkpoint) (State, error) {
	position := s.loader.Position()
	state, err := s.Restore(c)
	if err == nil {
		s.loader.Start(position)
	}
	return state, err
}

// queueTensors are the rings that a queue has.
func queueTensors(q *model.Queue) (list []checkpoint.Tensor) {
	for _, ring := range []struct {
		name string
		rows []float32
	}{{"image", q.Image}, {"text", q.Text}, {"image_backbone", q.ImageBackbone}, {"text_backbone", q.TextBackbone}} {
		if ring.rows != nil {
			list = append(list, checkpoint.Tensor{Name: ring.name, Shape: tensor.Shape{q.Size(), len(ring.rows) / q.Size()}, Data: ring.rows})
		}
	}
	return list
}

func restoreQueue(q *model.Queue, c *checkpoint.Checkpoint, state State) error {
	for _, t := range queueTensors(q) {
		if err := c.ReadFloat32("queue", t.Name, t.Shape, t.Data.([]float32)); err != nil {
			return err
		}
	}
	ids := make([]int64, q.Size())
	if err := c.ReadInt64("queue", "ids", tensor.Shape{q.Size()}, ids); err != nil {
		return err
	}
	for i, id := range ids {
		q.IDs[i] = int32(id)
	}
	if state.QueuePointer < 0 || state.QueuePointer >= q.Size() || state.QueueFilled < 0 || state.QueueFilled > q.Size() {
		return fmt.Errorf("train: state of %s: queue pointer %d and fill %d do not fit %d entries", c.Path, state.QueuePointer, state.QueueFilled, q.Size())
	}
	q.Pointer, q.Filled = state.QueuePointer, state.QueueFilled
	return nil
}

// LoadModel reads the parameters of a checkpoint of the same architecture.
func LoadModel(m Trainable, c *checkpoint.Checkpoint) error {
	p := m.Params()
	var want []checkpoint.Param
	for _, q := range p.List() {
		want = append(want, checkpoint.Param{Name: q.Name, Shape: q.Shape})
	}
	if err := c.Check("model", want); err != nil {
		return err
	}
	for _, q := range p.List() {
		if err := c.ReadFloat32("model", q.Name, q.Shape, p.Value(q)); err != nil {
			return err
		}
	}
	p.CopyToMomentum()
	return nil
}

// OpenConfig returns the configuration that a checkpoint was trained with.
func OpenConfig(c *checkpoint.Checkpoint) (config.Config, error) {
	text, err := c.File(configFile)
	if err != nil {
		return config.Config{}, err
	}
	return config.Parse(filepath.Join(c.Path, configFile), text, nil)
}

// OpenTokenizer returns the tokenizer that a checkpoint was trained with.
func OpenTokenizer(c *checkpoint.Checkpoint) (*tokenizer.Tokenizer, error) {
	text, err := c.File(tokenizerFile)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("train: %s: %w", filepath.Join(c.Path, tokenizerFile), err)
	}
	return t, nil
}
