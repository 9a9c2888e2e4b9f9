package checkpoint

import (
	"fmt"
	"slices"
	"strings"
)

// shown is the number of differences that an ArchitectureError spells out.
const shown = 5

// Param is a parameter that a model expects.
type Param struct {
	Name  string
	Shape []int
}

// Difference is one parameter that a model and a checkpoint disagree about. A
// shape is nil where the parameter is missing on that side.
type Difference struct {
	Name              string
	Model, Checkpoint []int
}

// ArchitectureError reports a checkpoint that does not fit the model.
type ArchitectureError struct {
	Path                   string
	Params                 int // parameters of the model
	Missing, Extra, Shapes int // how many are only in the model, only in the checkpoint, of another shape
	Differences            []Difference
}

// Error lists the counts and the first few differences.
func (e *ArchitectureError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "checkpoint: this checkpoint is of another architecture: %s: of the model's %d parameters %d are missing and %d have another shape, %d extra ones:",
		e.Path, e.Params, e.Missing, e.Shapes, e.Extra)
	for i, d := range e.Differences {
		if i == shown {
			fmt.Fprintf(&b, " and %d more;", len(e.Differences)-shown)
			break
		}
		switch {
		case d.Checkpoint == nil:
			fmt.Fprintf(&b, " %s %v is missing;", d.Name, d.Model)
		case d.Model == nil:
			fmt.Fprintf(&b, " %s %v is not in the model;", d.Name, d.Checkpoint)
		default:
			fmt.Fprintf(&b, " %s is %v in the checkpoint, %v in the model;", d.Name, d.Checkpoint, d.Model)
		}
	}
	b.WriteString(" use the config.toml of the run that wrote it, or another checkpoint")
	return b.String()
}

// Check compares the tensors of group with the parameters of a model and returns
// an *ArchitectureError if they differ. Differences of shape come first, then
// missing parameters, then extra ones, each in the order of its list.
func (c *Checkpoint) Check(group string, params []Param) error {
	f, err := c.Group(group)
	if err != nil {
		return err
	}
	e := &ArchitectureError{Path: c.Path, Params: len(params)}
	var missing, extra []Difference
	known := make(map[string]bool, len(params))
	for _, p := range params {
		known[p.Name] = true
		shape := append([]int{}, p.Shape...)
		info, ok := f.Lookup(p.Name)
		switch {
		case !ok:
			missing = append(missing, Difference{Name: p.Name, Model: shape})
		case !slices.Equal(info.Shape, p.Shape):
			e.Differences = append(e.Differences, Difference{Name: p.Name, Model: shape, Checkpoint: info.Shape})
		}
	}
	for _, info := range f.Tensors() {
		if !known[info.Name] {
			extra = append(extra, Difference{Name: info.Name, Checkpoint: info.Shape})
		}
	}
	e.Shapes, e.Missing, e.Extra = len(e.Differences), len(missing), len(extra)
	e.Differences = append(append(e.Differences, missing...), extra...)
	if len(e.Differences) == 0 {
		return nil
	}
	return e
}
