package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// kernel is a function of the assembly of amd64, of which the body for AVX2 is kept.
type kernel struct {
	name, signature string
	bytes           int // of arguments and results
	lines           []line
}

// line is an instruction or, without an opcode, a label.
type line struct {
	label, opcode string
	operands      []string
}

// table is read-only memory of 32-bit words.
type table struct {
	name  string
	words []uint32
}

var (
	textLine = regexp.MustCompile(`^TEXT ·(\w+)\(SB\), NOSPLIT, \$\d+-(\d+)$`)
	dataLine = regexp.MustCompile(`^DATA (\w+)<>\+(\d+)\(SB\)/(\d), \$0x([0-9a-f]+)$`)
	codeLine = regexp.MustCompile(`^\t([A-Z0-9_.]+)\s*(.*)$`)
)

// narrowLabel is where the body for AVX2 begins, in functions that have one for AVX-512 before it.
const narrowLabel = "narrow"

// read reads the functions and tables of a file that avo wrote.
func read(file string) (kernels []*kernel, tables map[string]*table, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	tables = map[string]*table{}
	var k *kernel
	var signature string
	s := bufio.NewScanner(f)
	for s.Scan() {
		text := s.Text()
		if sig, ok := strings.CutPrefix(text, "// func "); ok {
			signature = sig
		}
		if m := textLine.FindStringSubmatch(text); m != nil {
			bytes, _ := strconv.Atoi(m[2])
			k = &kernel{name: m[1], signature: "func" + strings.TrimPrefix(signature, m[1]), bytes: bytes}
			kernels = append(kernels, k)
			continue
		}
		if m := dataLine.FindStringSubmatch(text); m != nil {
			if err := addWords(tables, m); err != nil {
				return nil, nil, err
			}
			continue
		}
		if k == nil {
			continue
		}
		if name, ok := strings.CutSuffix(text, ":"); ok && !strings.HasPrefix(text, "\t") {
			if name == narrowLabel {
				k.lines = nil
				continue
			}
			k.lines = append(k.lines, line{label: name})
		} else if m := codeLine.FindStringSubmatch(text); m != nil {
			k.lines = append(k.lines, line{opcode: m[1], operands: operands(m[2])})
		}
	}
	return kernels, tables, s.Err()
}

// addWords adds what a DATA line holds to its table; they come in order.
func addWords(tables map[string]*table, m []string) error {
	t := tables[m[1]]
	if t == nil {
		t = &table{name: m[1]}
		tables[m[1]] = t
	}
	v, err := strconv.ParseUint(m[4], 16, 64)
	if at, _ := strconv.Atoi(m[2]); err != nil || at != 4*len(t.words) {
		return fmt.Errorf("%s: data out of order", m[1])
	}
	t.words = append(t.words, uint32(v))
	if m[3] == "8" {
		t.words = append(t.words, uint32(v>>32))
	}
	return nil
}

// operands splits what follows an opcode.
func operands(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ", ")
}

// declarations returns the declarations of a file that avo wrote, by function, with their comments.
func declarations(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, part := range strings.Split(string(text), "\n\n") {
		if at := strings.LastIndex(part, "\nfunc "); at >= 0 {
			name, _, _ := strings.Cut(part[at+len("\nfunc "):], "(")
			out[name] = strings.TrimSpace(part)
		}
	}
	return out, nil
}
