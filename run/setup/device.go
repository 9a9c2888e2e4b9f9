package setup

import (
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/cuda"
)

// openDevice gives an engine the GPU that the settings name, if they name one. Of several ranks, all of which call it,
// each opens its own: see deviceOf.
func openDevice(g parallel.Group, c compute.Settings, e *compute.Engine, say func(format string, args ...any)) error {
	if _, ok := c.CUDA(); !ok {
		return nil
	}
	d, err := deviceOf(g, c)
	if err != nil {
		err = fmt.Errorf("compute.device = %q: %w", c.Device, err)
	}
	if d != nil {
		e.SetDevice(d)
	}
	if err := parallel.Agree(g, err); err != nil || g.Size() == 1 {
		return err
	}
	all, err := g.GatherBytes([]byte(d.Info().UUID))
	if err != nil {
		return err
	}
	a, b, shared := sharedDevice(all)
	switch {
	case !shared:
		return nil
	case c.Ordinal():
		if g.Rank() == 0 {
			say("warning: ranks %d and %d share one GPU (compute.device = %q): each has a part of its time and memory", a, b,
				c.Device)
		}
		return nil
	}
	if g.Rank() != a { // which tells all
		return parallel.Agree(g, nil)
	}
	n, err := cuda.Count()
	if err == nil {
		err = fmt.Errorf("compute.device = %q: ranks %d and %d have the same GPU (%s): start no more ranks on a machine than it has GPUs (this one sees %d; CUDA_VISIBLE_DEVICES hides some), or have all ranks of a machine share one with compute.device = \"cuda:0\"",
			c.Device, a, b, all[a], n)
	}
	return parallel.Agree(g, err)
}

// deviceOf opens the GPU of a rank: the one that the settings name by its number, or else that of the rank's place among
// those of its machine. A launcher may show each rank one GPU alone, which is its own then.
func deviceOf(g parallel.Group, c compute.Settings) (*cuda.Device, error) {
	index, _ := c.CUDA()
	if g.Size() > 1 && !c.Ordinal() {
		n, err := cuda.Count()
		if err != nil {
			return nil, err
		}
		local := g.Rank()
		if p, ok := parallel.As[parallel.Placed](g); ok {
			local, _ = p.Local()
		}
		index = local % max(n, 1)
	}
	return cuda.Open(cuda.Options{Index: index, TF32: c.TF32, Fastest: true})
}

// sharedDevice returns the first two ranks that told the same GPU, false where each has its own.
func sharedDevice(all [][]byte) (a, b int, shared bool) {
	first := map[string]int{}
	for r, text := range all {
		if a, shared = first[string(text)]; shared {
			return a, r, true
		}
		first[string(text)] = r
	}
	return 0, 0, false
}
