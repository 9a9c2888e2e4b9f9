package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/library"
	"github.com/geoalign/geoalign/internal/kernel/tune"
	"github.com/geoalign/geoalign/internal/usercache"
)

// Choices are the kernels of products, as a run keeps them.
type Choices struct {
	Engine   string            `json:"engine"`   // Describe of the engine that made them
	Products map[string]string `json:"products"` // kernel by product
}

// Tuning says how an engine chooses kernels.
type Tuning struct {
	Mode     string         `json:"mode"`             // off, cache or on
	Reason   string         `json:"reason,omitempty"` // why it is off where more was asked for
	File     string         `json:"file,omitempty"`   // the cache
	Known    int            `json:"known,omitempty"`  // products there
	Kernels  []string       `json:"kernels,omitempty"`
	Seconds  float64        `json:"seconds,omitempty"` // spent on measuring
	Products []TunedProduct `json:"products,omitempty"`
}

// TunedProduct is a product with its kernel. From says where the choice comes from: "run", "cache", "measured", or
// "default", by fixed rules.
type TunedProduct struct {
	Product string `json:"product"`
	tune.Choice
	GFLOP float64 `json:"gflop"`
	From  string  `json:"from"`
}

// setTuner prepares the choice of kernels. backend is what was asked for.
func (e *Engine) setTuner(o Options) {
	e.tuning = o.Tune
	switch {
	case o.Tune == "" || o.Tune == tune.Off:
		e.tuning = tune.Off
		return
	case e.info.Name == library.Plain:
		e.untuned = "the backend is plain"
		return
	case !dynlib.Probing():
		e.untuned = "this program does not begin with compute.ProbeInChild"
		return
	}
	libraries := []library.Loaded{{Backend: e.backend, Info: e.info}}
	builtin := e.info.Name == library.Builtin || e.info.Name == library.OneDNN // by the fixed rules
	if o.Backend == "" || o.Backend == library.Auto {
		var warnings []string
		libraries, warnings = library.Found()
		for _, w := range warnings {
			if !slices.Contains(e.warnings, w) { // behind the first that is found, which New knows
				e.warnings = append(slices.Clip(e.warnings), w)
			}
		}
		builtin = true
	}
	float, half := e.ways(libraries, builtin)
	e.startTuner(o.Tune, float, half, libraries, tune.File())
	e.tuner.outside = newOutside(e.threads, e.bf16, libraries)
}

// ways returns the candidates for products of float32 and in bfloat16.
func (e *Engine) ways(libraries []library.Loaded, builtin bool) (float, half []*way) {
	if builtin {
		float = builtins(gemm.Variants(), pathFloat, e.float)
		half = builtins(gemm.VariantsBF16(), pathTiles, e.tiles)
		if e.amx != nil {
			half = []*way{e.byAMX}
		}
	}
	for _, l := range libraries {
		if l.Info.Name == library.Builtin {
			continue
		}
		float = append(float, &way{name: l.Info.Name, foreign: true, backend: l.Backend})
		if h, ok := l.Backend.(gemm.HalfBackend); ok && e.bf16 && h.SupportsBF16() {
			half = append(half, &way{name: l.Info.Name, path: pathLibrary, foreign: true, half: h})
		}
	}
	return float, half
}

// builtins returns the built-in products, of which the first is what the fixed rules take: the one in use, if there is
// one.
func builtins(variants []gemm.Variant, path path, use *gemm.Tiled) (list []*way) {
	for i, v := range variants {
		w := &way{name: library.Builtin, path: path}
		if i > 0 {
			w.name += " " + v.Name
		}
		if w.tiles = use; i > 0 || use == nil {
			w.tiles = v.New()
		}
		list = append(list, w)
	}
	return list
}

// startTuner begins to choose among ways, with what the cache file knows.
func (e *Engine) startTuner(mode string, float, half []*way, libraries []library.Loaded, file string) {
	env := tune.Environment{Processor: cpu.Model(), Instructions: cpu.Level(), Threads: e.threads,
		Program: usercache.Program()}
	for _, has := range []struct {
		is   bool
		name string
	}{{cpu.HasBF16, "bf16"}, {cpu.HasAMX, "amx"}, {e.bf16, "products in bf16"}} {
		if has.is {
			env.Instructions += ", " + has.name
		}
	}
	for _, w := range float {
		env.Kernels = append(env.Kernels, w.name)
	}
	for _, w := range half {
		env.Kernels = append(env.Kernels, "bf16 "+w.name)
	}
	for _, l := range libraries {
		if l.Info.File != "" {
			env.Kernels = append(env.Kernels,
				fmt.Sprintf("%s %s from %s, %s", l.Info.Name, l.Info.Version, l.Info.File,
					usercache.Stamp(l.Info.File)))
			e.among = append(e.among, strings.TrimSpace(l.Info.Name+" "+l.Info.Version))
			continue
		}
		e.among = append(e.among, l.Info.Name)
	}
	if len(float) > 0 && float[0].name == library.Builtin && !slices.Contains(e.among, library.Builtin) {
		e.among = append(e.among, library.Builtin)
	}
	t := &tuner{e: e, mode: mode, float: float, half: half, table: tune.NewTable(env, mode, file),
		builtin: &way{name: library.Builtin, backend: gemm.Builtin()}, decided: map[tune.Key]*decision{},
		dropped: map[*way]bool{},
		ends:    map[string]int{}, slow: map[*way][]bool{}, left: budget(mode)}
	e.tuner = t
	for _, n := range t.table.Notes() {
		e.warn(n)
	}
}

// Follow makes the engine go on with the kernels of a run, product by product. With alone it takes nothing else, and
// measures nothing: processes that train together so have the same. Choices of another engine are not taken.
func (e *Engine) Follow(c Choices, alone bool) {
	switch {
	case e.tuner == nil:
	case c.Engine == e.Describe():
		e.tuner.table.Follow(c.Products, alone)
	case alone:
		e.tuner.table.Follow(nil, true)
	}
}

// Choices returns the kernels of all products that the engine knows: those of the run that it goes on with, of the
// cache and of this process.
func (e *Engine) Choices() Choices {
	c := Choices{Engine: e.Describe(), Products: map[string]string{}}
	if e.tuner != nil {
		c.Products = e.tuner.table.All()
	}
	return c
}

// Chosen returns Choices of the products that were computed, and those of the run that the engine goes on with.
func (e *Engine) Chosen() Choices {
	c := Choices{Engine: e.Describe(), Products: map[string]string{}}
	if e.tuner == nil {
		return c
	}
	for product, kernel := range e.tuner.table.RunAll() {
		c.Products[product] = kernel
	}
	for _, d := range e.tuner.decided {
		if _, has := c.Products[d.product]; !has {
			c.Products[d.product] = d.Kernel
		}
	}
	return c
}

// Decided returns the number of products with a choice, which never shrinks.
func (e *Engine) Decided() int {
	if e.tuner == nil {
		return 0
	}
	return len(e.tuner.decided)
}

// SaveTuning writes what was measured to the user's cache folder, for the processes that follow.
func (e *Engine) SaveTuning() {
	if e.tuner == nil {
		return
	}
	e.tuner.rest()
	if err := e.tuner.table.Save(); err != nil {
		e.warn(fmt.Sprintf("the measurements of matrix products are not kept: %v", err))
	}
}

// Tuning returns how kernels are chosen, with the products that were computed, those with most operations first.
func (e *Engine) Tuning() Tuning {
	s := Tuning{Mode: e.tuning, Reason: e.untuned}
	if e.tuner == nil {
		s.Mode = tune.Off
		return s
	}
	s.File, s.Known, s.Kernels, s.Seconds = e.tuner.table.Path(), e.tuner.table.Known(), e.among,
		e.tuner.spent.Seconds()
	for key, d := range e.tuner.decided {
		s.Products = append(s.Products, TunedProduct{Product: d.product, Choice: d.Choice, GFLOP: key.GFLOP(),
			From: d.from})
	}
	slices.SortFunc(s.Products, func(a, b TunedProduct) int {
		return cmp.Or(cmp.Compare(b.GFLOP, a.GFLOP), strings.Compare(a.Product, b.Product))
	})
	return s
}

// String says it in a line.
func (t Tuning) String() string {
	if t.Mode == tune.Off {
		if t.Reason != "" {
			return "off, since " + t.Reason
		}
		return tune.Off
	}
	return fmt.Sprintf("%s: the best of %s for each product; %d known in %s", t.Mode, strings.Join(t.Kernels, ", "),
		t.Known, t.File)
}

// budget is the time that an engine may measure in a mode.
func budget(mode string) time.Duration {
	if mode == tune.On {
		return onBudget
	}
	return cacheBudget
}
