package train

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/objectives/geodesic"
	"github.com/geoalign/geoalign/train/checkpoint"
	"gorgonia.org/tensor"
)

// graphGroup is the name of a checkpoint's tensors of the graphs over the queue.
const graphGroup = "graph"

// GraphState is the part of the graphs over the queue that is no tensor.
type GraphState struct {
	Begun   int                `json:"begun"`   // step of the rebuild; -1: none so far
	Used    [2][]int           `json:"used"`    // centres in use of each layer of the image and the text graph
	Figures map[string]float64 `json:"figures"` // of the newest graphs, for the log
	Layers  []int              `json:"layers"`
	Pending *PendingState      `json:"pending,omitempty"`
}

// PendingState is a rebuild that is not switched in yet.
type PendingState struct {
	Begun   int      `json:"begun"`
	Pointer int      `json:"pointer"`
	Pushed  int      `json:"pushed"`
	Used    [2][]int `json:"used"`
}

// snapshotGraphs returns what a resumed run needs of the graphs. A rebuild in progress is
// waited for: it goes into the checkpoint with its result, not with its copy of the queue.
func snapshotGraphs(g *model.Graphs, layers []int) (checkpoint.Group, *GraphState, error) {
	group := checkpoint.Group{Name: graphGroup}
	if err := g.Wait(); err != nil {
		return group, nil, err
	}
	s := &GraphState{Begun: g.Begun, Used: usedCentres(g.Image, g.Text), Figures: g.Figures(), Layers: layers}
	group.Tensors = slices.Concat(graphTensors("image/", g.Image), graphTensors("text/", g.Text))
	if p := g.Pending; p != nil {
		s.Pending = &PendingState{Begun: p.Begun, Pointer: p.Pointer, Pushed: p.Pushed, Used: usedCentres(p.Image, p.Text)}
		group.Tensors = slices.Concat(group.Tensors, graphTensors("pending/image/", p.Image), graphTensors("pending/text/", p.Text))
	}
	for _, t := range group.Tensors {
		if x, ok := t.Data.([]float32); ok && slices.ContainsFunc(x, func(v float32) bool { return v != v }) {
			return group, nil, fmt.Errorf("train: %s of %s is not a number: nothing is saved", t.Name, graphGroup)
		}
	}
	return group, s, nil
}

// graphTensors are the tensors of a graph over N entries: of each layer, top first, the
// centres with their parents, and of the bottom one the paths. A queue of images alone has
// no graph of texts, nil.
func graphTensors(prefix string, g *geodesic.Graph) []checkpoint.Tensor {
	if g == nil {
		return nil
	}
	n, k := len(g.Owner), len(g.Layers[len(g.Layers)-1].Parent)
	list := []checkpoint.Tensor{
		{Name: prefix + "paths", Shape: tensor.Shape{k, k}, Data: g.Paths},
		{Name: prefix + "owner", Shape: tensor.Shape{n}, Data: g.Owner},
		{Name: prefix + "reach", Shape: tensor.Shape{n}, Data: g.Reach},
	}
	for i, l := range g.Layers {
		k := len(l.Parent)
		name := fmt.Sprintf("%slayer%d/", prefix, i)
		list = append(list,
			checkpoint.Tensor{Name: name + "centres", Shape: tensor.Shape{k, len(l.Centres) / k}, Data: l.Centres},
			checkpoint.Tensor{Name: name + "parent", Shape: tensor.Shape{k}, Data: l.Parent})
	}
	return list
}

// usedCentres are the centres in use of each layer of both graphs.
func usedCentres(image, text *geodesic.Graph) (used [2][]int) {
	for i, g := range []*geodesic.Graph{image, text} {
		if g == nil {
			continue
		}
		for _, l := range g.Layers {
			used[i] = append(used[i], l.Used)
		}
	}
	return used
}

// restoreGraphs sets the graphs to a checkpoint. One that was made with other layers, or
// without graphs, leaves them unbuilt: the next step with a full queue builds them anew.
func restoreGraphs(g *model.Graphs, c *checkpoint.Checkpoint, s *GraphState, layers []int) error {
	g.Reset()
	if s == nil || s.Begun < 0 || !slices.Equal(s.Layers, layers) {
		return nil
	}
	if err := readGraphs(c, "", g.Image, g.Text, s.Used); err != nil {
		return err
	}
	if p := s.Pending; p != nil {
		pending, err := g.Restored(p.Begun, p.Pointer, p.Pushed)
		if err != nil {
			return err
		}
		if err := readGraphs(c, "pending/", pending.Image, pending.Text, p.Used); err != nil {
			return err
		}
	}
	g.Restore(s.Begun, s.Figures)
	return nil
}

// readGraphs reads a pair of graphs.
func readGraphs(c *checkpoint.Checkpoint, prefix string, image, text *geodesic.Graph, used [2][]int) error {
	for i, x := range []struct {
		name  string
		graph *geodesic.Graph
	}{{"image/", image}, {"text/", text}} {
		if x.graph == nil {
			continue
		}
		for _, t := range graphTensors(prefix+x.name, x.graph) {
			if err := readTensor(c, t); err != nil {
				return err
			}
		}
		if len(used[i]) != len(x.graph.Layers) {
			return fmt.Errorf("train: state of %s: %d layers of a graph, want %d", c.Path, len(used[i]), len(x.graph.Layers))
		}
		for j, l := range x.graph.Layers {
			if l.Used = used[i][j]; l.Used < 1 || l.Used > len(l.Parent) {
				return fmt.Errorf("train: state of %s: %d centres in use of %d", c.Path, l.Used, len(l.Parent))
			}
		}
	}
	return nil
}

// readTensor reads a tensor of a graph into its memory.
func readTensor(c *checkpoint.Checkpoint, t checkpoint.Tensor) error {
	switch data := t.Data.(type) {
	case []float32:
		return c.ReadFloat32(graphGroup, t.Name, t.Shape, data)
	case []int32:
		wide := make([]int64, len(data))
		if err := c.ReadInt64(graphGroup, t.Name, t.Shape, wide); err != nil {
			return err
		}
		for i, v := range wide {
			data[i] = int32(v)
		}
	}
	return nil
}
