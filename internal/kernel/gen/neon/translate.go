package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// translator writes one kernel. The two halves of a vector of AVX2 are registers of their own, so that lanes and the
// order of sums, and with them all bits of a result, are those of AVX2.
type translator struct {
	*writer
	k         *kernel
	constants *constants
	uses      map[string]bool // tables
	labels    int
	err       error
}

// constants are values that fill a register, in one table.
type constants struct {
	at    map[string]int // offset of each, by symbol
	words []uint32
}

// untranslated are kernels that are plain Go on arm64: those of bfloat16, of AVX-512 alone, and some that gather values or
// work on integers.
var untranslated = []string{"addToHalvesVec", "addGELUToHalvesVec", "addHalfVec", "dropoutAddHalfVec",
	"fromHalfRowsVec", "toHalfRowsVec", "geluHalvesVec", "geluGradHalvesVec", "geluDropoutHalvesVec",
	"geluDropoutGradHalvesVec", "pathCosVec", "pathCosSlopeVec", "dropoutBitsVec", "dotCodesVec", "dotBitsVec"}

// translate writes the kernels of a file.
func (w *writer) translate(file string) error {
	kernels, tables, err := read(file)
	if err != nil {
		return err
	}
	declared, err := declarations(strings.TrimSuffix(file, ".s") + ".go")
	if err != nil {
		return err
	}
	all, uses := &constants{at: map[string]int{}}, map[string]bool{}
	for _, k := range kernels {
		if slices.Contains(untranslated, k.name) {
			continue
		}
		fmt.Fprintf(&w.stubs, "\n%s\n", declared[k.name])
		t := &translator{writer: w, k: k, constants: all, uses: uses}
		if err := t.write(tables); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	w.stubs.WriteString("\n// Never called: plain Go does these on arm64.\n")
	w.stubs.WriteString("const noVectors = \"kernel: no vector kernel for arm64\"\n")
	for _, k := range kernels {
		if slices.Contains(untranslated, k.name) {
			fmt.Fprintf(&w.stubs, "\nfunc %s%s { panic(noVectors) }\n", k.name, strings.TrimPrefix(k.signature, "func"))
		}
	}
	w.table("vecConstants", all.words)
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		w.table(name, tables[name].words)
	}
	return nil
}

// table writes read-only memory.
func (w *writer) table(name string, words []uint32) {
	w.text.WriteByte('\n')
	for i, v := range words {
		fmt.Fprintf(&w.text, "DATA %s<>+%d(SB)/4, $0x%08x\n", name, 4*i, v)
	}
	fmt.Fprintf(&w.text, "GLOBL %s<>(SB), RODATA|NOPTR, $%d\n", name, 4*len(words))
}

// write writes the kernel.
func (t *translator) write(tables map[string]*table) error {
	fmt.Fprintf(&t.text, "\n// func %s%s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", t.k.name,
		strings.TrimPrefix(t.k.signature, "func"), t.k.name, t.k.bytes)
	uses := false
	for _, l := range t.k.lines {
		for _, o := range l.operands {
			m, ok := memoryOf(o)
			if !ok || m.symbol == "" || m.argument || !isConstant(tables[m.symbol]) {
				continue
			}
			if _, known := t.constants.at[m.symbol]; !known {
				t.constants.at[m.symbol] = 4 * len(t.constants.words)
				t.constants.words = append(t.constants.words, tables[m.symbol].words[:quad]...)
			}
			uses = true
		}
	}
	if uses {
		t.line("MOVD $vecConstants<>(SB), %v", regConstants)
	}
	for _, l := range t.k.lines {
		if l.opcode == "" {
			t.label(l.label)
			continue
		}
		if !t.general(l) && !t.vector(l) && t.err == nil {
			t.err = fmt.Errorf("cannot translate %s %s", l.opcode, strings.Join(l.operands, ", "))
		}
		if t.err != nil {
			return t.err
		}
	}
	return nil
}

// isConstant says whether all words of a table are the same.
func isConstant(x *table) bool {
	if x == nil {
		return false
	}
	for _, v := range x.words {
		if v != x.words[0] {
			return false
		}
	}
	return true
}
