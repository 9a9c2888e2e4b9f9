package bench

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ReadMachines reads all files of a folder of machines, in the order of their names.
func ReadMachines(dir string) (list []Machine, err error) {
	files, err := fs.Glob(os.DirFS(dir), "*.json")
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no file *.json in %s: write one with trainer bench --all --save FILE", dir)
	}
	for _, f := range files {
		m, err := ReadMachine(filepath.Join(dir, f))
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, err
}

// MachineTable is the table over machines in Markdown: what each is, then its training steps, a row for each.
// What a file does not hold is an empty cell.
func MachineTable(list []Machine) string {
	var b strings.Builder
	b.WriteString("| machine | processor | family, model | kernels | CPUs | date |\n| --- | --- | --- | --- | --: | --- |\n")
	for _, m := range list {
		h, numbers := m.Hardware, ""
		if h.Family > 0 {
			numbers = fmt.Sprintf("%d, %d", h.Family, h.Number)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %s |\n", m.title(), h.Model, numbers, m.Software.Kernels, h.CPUs,
			m.Date)
	}
	b.WriteString("\n| training step |")
	for _, m := range list {
		fmt.Fprintf(&b, " %s samples/s | GFLOP/s | of peak | MB |", m.title())
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --: | --: | --: | --: |", len(list)) + "\n")
	var names []string
	for _, m := range list {
		for _, r := range m.Steps {
			if n := r.Config + " " + r.Precision; !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	for _, n := range names {
		fmt.Fprintf(&b, "| %s |", n)
		for _, m := range list {
			i := slices.IndexFunc(m.Steps, func(r Result) bool { return r.Config+" "+r.Precision == n })
			if i < 0 {
				b.WriteString("  |  |  |  |")
				continue
			}
			r := m.Steps[i]
			fmt.Fprintf(&b, " %s | %s | %s | %s |", cell(r.Samples, "%.4g"), cell(r.GFLOPS, "%.1f"),
				cell(100*r.Share, "%.1f %%"), cell(r.PeakMB, "%.0f"))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// cell formats a figure, nothing where it is not known.
func cell(v float64, format string) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(format, v)
}

// title names the kind of machine.
func (m Machine) title() string { return cmp.Or(m.Name, m.Hardware.Model) }
