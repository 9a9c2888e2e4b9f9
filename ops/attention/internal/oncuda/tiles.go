package oncuda

import (
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/cuda"
)

// tiles is how a kernel cuts up its work.
type tiles struct {
	kernel *cuda.Kernel
	grid   cuda.Grid
}

// halfTiles is how a kernel in bfloat16 cuts it up; halves.cuh says what these are.
type halfTiles struct {
	groups, warps, blocks, tile, chunk int
	together, alone                    bool
}

// otherTiles, which benchmarks set, changes what is chosen for a kernel.
var otherTiles func(name string, t *halfTiles)

// tiled returns a kernel whose blocks hold pieces of the fixed tokens of so many heads, and pass over the moving ones,
// which go through shared memory: those of several rows if again.
func (x *work) tiled(name string, fixed, moving, many int, again bool) tiles {
	macros := append(slices.Clone(x.macros), cuda.Is(strings.ToUpper(name), true))
	if !x.halves {
		// Blocks of 64 rows of 64 or 128 values, and of 64 x 64 scores, of floats; see floats.cu.
		width, panels := 64, map[string]int{"attend": 3}[name]
		if x.e > 64 {
			width = 128
		}
		if panels == 0 {
			panels = 4
		}
		return tiles{
			kernel: cuda.Load(x.c, floatsSource, name, macros...),
			grid: cuda.Grid{X: cuda.Blocks(fixed, 64) * many, Threads: 256,
				Shared: 4 * 64 * (panels*(width+4) + 64 + 4)},
		}
	}
	t := x.halfTiles(name, fixed, moving, again)
	if otherTiles != nil {
		otherTiles(name, &t)
	}
	stages := 2
	if moving <= t.tile && !again || t.alone {
		stages = 1
	}
	mine := 16 * t.groups
	var grid int
	switch {
	case t.together:
		grid = (x.seqs + 1) * x.Heads
	case t.alone:
		grid = cuda.Blocks(many, t.warps)
	default:
		grid = cuda.Blocks(fixed, mine*t.warps) * many
	}
	return tiles{
		kernel: cuda.Load(x.c, halvesSource, name,
			append(macros, cuda.Value("GROUPS", t.groups), cuda.Value("WARPS", t.warps),
				cuda.Value("BLOCKS", t.blocks), cuda.Value("TILE", t.tile), cuda.Value("STAGES", stages),
				cuda.Value("CHUNK", t.chunk),
				cuda.Is("TOGETHER", t.together), cuda.Is("ALONE", t.alone))...),
		grid: cuda.Grid{X: grid, Threads: 32 * t.warps, Shared: x.shared(name, t, stages)},
	}
}

// halfTiles chooses by the shapes.
func (x *work) halfTiles(name string, fixed, moving int, again bool) halfTiles {
	t := halfTiles{groups: 2, blocks: 1, tile: 64, chunk: 32}
	if moving <= 32 {
		t.tile = 32
	}
	if name == "attend_dbias" {
		rows := cuda.Blocks(fixed, 16)
		t.groups, t.warps, t.chunk = 1, cuda.Blocks(rows, cuda.Blocks(rows, 6)), 16
		return t
	}
	if fixed <= 16 || x.e > 64 {
		t.groups = 1
	}
	// Warps of a multiprocessor whose registers hold what each needs: 168 of them in the forward kernel, 255 in the
	// others and with a bias. They are four or a multiple, one for each of its parts.
	atOnce := 8
	if name == "attend" && x.Bias < 0 || t.groups == 1 {
		atOnce = 12
	}
	units := cuda.Blocks(fixed, 16*t.groups)
	switch {
	case name != "attend_dkv" && x.Index >= 0 && units == 1 && x.rows <= 8*x.seqs:
		t.together, t.warps = true, min(1+cuda.Blocks(x.rows, x.seqs), 4)
	case name != "attend_dkv" && units == 1 && moving <= 32:
		t.alone, t.warps = true, 4
		if x.e > 64 { // shared memory of smaller devices
			t.warps = 2
		}
	case t.groups == 1:
		t.warps = cuda.Blocks(units, cuda.Blocks(units, 6))
	case name == "attend":
		t.warps = cuda.Blocks(units, cuda.Blocks(units, 4))
	case units == 1 || cuda.Blocks(units, 4)*4 == units || cuda.Blocks(units, 4)*2 == cuda.Blocks(units, 2):
		t.warps = min(units, 4)
	default:
		t.warps = 2
	}
	if name == "attend_dkv" {
		t.chunk = 16
	}
	if x.e <= 64 {
		t.blocks = atOnce / t.warps
	}
	return t
}

// shared returns the bytes of shared memory of a block: the first stage, and after it the second one or, before that,
// the warps' own rows.
func (x *work) shared(name string, t halfTiles, stages int) int {
	row := 2 * ((x.e+15)/16*16 + 8)
	stage, own := 2*t.tile*row, t.warps*16*t.groups*row
	if name != "attend" {
		own *= 2
	}
	if name == "attend_dkv" {
		stage += 2 * t.tile * 4
		if x.Bits >= 0 {
			stage += t.tile * (t.warps*16*t.groups/32 + 1) * 4
		}
	}
	if t.alone {
		return t.warps*stage + own
	}
	return stage + max((stages-1)*stage, own)
}
