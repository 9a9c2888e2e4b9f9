package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/bench"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// allConfigs are the configurations of bench --all. The first one tells how long a start takes.
var allConfigs = []string{"albef-small", "clip-small", "heads", "albef-base"}

// productTime is how long each matrix product is measured at least; 0: none is. Tests leave them out: without vector
// instructions they take minutes.
var productTime = 50 * time.Millisecond

// allDir is where they lie, from the root of the repository.
var allDir = "configs/bench"

// measureAll measures everything that is known of a machine.
func (f *benchFlags) measureAll(c *cobra.Command, o bench.Options, done func()) error {
	var before bench.Machine
	if f.compare != "" {
		var err error
		if before, err = bench.ReadMachine(f.compare); err != nil {
			return err
		}
		if _, err := bench.CompareMachine(f.compare, before, bench.Machine{Hardware: bench.ThisMachine()}); err != nil {
			return err // before minutes of measuring
		}
	}
	o.Product = productTime
	configs, err := f.allConfigs(c)
	if err != nil {
		return err
	}
	if terminalOf(c.ErrOrStderr()) == nil { // where there is no bar
		o.Row = func(line string) { fmt.Fprintln(f.output.note(c), line) }
	}
	m, err := bench.MeasureMachine(c.Context(), configs, o)
	done()
	if len(m.Steps) == 0 {
		return err
	}
	m.Source = "trainer " + strings.Join(argsOf(c), " ")
	if old, err := bench.ReadMachine(f.save); err == nil && old.Hardware.Same(m.Hardware) {
		m.Name = old.Name // which somebody has written into the file that is replaced
	}
	return errors.Join(f.machine(c, before, m), err) // what was measured before an interruption
}

// allConfigs reads the configurations in every precision of the processor.
func (f *benchFlags) allConfigs(c *cobra.Command) (list []config.Config, err error) {
	precisions := []string{"fp32"}
	if cpu.HasBF16 {
		precisions = append(precisions, "bf16")
	}
	for _, name := range allConfigs {
		for _, p := range precisions {
			flags := f.config
			flags.file = filepath.Join(allDir, name+".toml")
			if _, err := os.Stat(flags.file); err != nil {
				return nil, fmt.Errorf("--all: %w: start it in the root of the repository", err)
			}
			cfg, err := flags.load(c, "compute.precision="+p)
			if err != nil {
				return nil, err
			}
			list = append(list, cfg)
		}
	}
	return list, nil
}

// machine reports what was measured of a machine, beside an earlier file if there is one.
func (f *benchFlags) machine(c *cobra.Command, before, now bench.Machine) error {
	kept := f.keep(c, now)
	w := c.OutOrStdout()
	var beside bench.Comparison
	if f.compare != "" {
		var err error
		if beside, err = bench.CompareMachine(f.compare, before, now); err != nil {
			return errors.Join(err, kept)
		}
		for _, warning := range beside.Warnings {
			fmt.Fprintf(f.output.note(c), "note: %s\n", warning)
		}
	}
	switch {
	case f.output.json && f.compare != "":
		if err := printJSON(w, map[string]any{"machine": now, "comparison": beside}); err != nil {
			return errors.Join(err, kept)
		}
	case f.output.json:
		if err := printJSON(w, now); err != nil {
			return errors.Join(err, kept)
		}
	default:
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for i, g := range now.Figures() {
			fmt.Fprintf(t, "%s\t%s\t%.4g %s\t", g.Group, g.Name, g.Value, g.Unit)
			if f.compare != "" {
				fmt.Fprintf(t, "before\t%s\tnow/before\t%s\t", known(beside.Rows[i].Before, "%.4g"),
					known(beside.Rows[i].Ratio, "%.2f"))
			}
			fmt.Fprintln(t)
		}
		t.Flush()
		if s := now.Steps[0].First; s != nil {
			fmt.Fprintf(w, "\nstart to first step of %s: %.2f s to its beginning, %.2f s to its end\n",
				now.Steps[0].Config, s.Begin, s.End)
		}
	}
	if f.failBelow > 0 && len(beside.Below("training step", math.Inf(1))) == 0 {
		return errors.Join(fmt.Errorf("bench: --fail-below compares nothing: %s has no training step that was measured now", f.compare), kept)
	}
	if slow := beside.Below("training step", f.failBelow); len(slow) > 0 {
		var names []string
		for _, r := range slow {
			names = append(names, fmt.Sprintf("%s (%.2f)", r.Name, r.Ratio))
		}
		return errors.Join(fmt.Errorf("bench: slower than --fail-below %g of %s: %s", f.failBelow, f.compare,
			strings.Join(names, ", ")), kept)
	}
	return kept
}

// machines prints the table over the machines of a folder.
func (f *benchFlags) machines(c *cobra.Command) error {
	list, err := bench.ReadMachines(f.table)
	if err != nil {
		return err
	}
	if f.output.json {
		return printJSON(c.OutOrStdout(), list)
	}
	fmt.Fprint(c.OutOrStdout(), bench.MachineTable(list))
	return nil
}
