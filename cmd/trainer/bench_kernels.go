package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/geoalign/geoalign/internal/kernel"
)

// printKernels writes the kernel of each product, with its speed and that of the fixed rules.
func printKernels(w io.Writer, t *kernel.Tuning) {
	if t == nil {
		return
	}
	fmt.Fprintf(w, "\nkernels: %s", t)
	if t.Seconds > 0 {
		fmt.Fprintf(w, ", %.2f s spent on measuring", t.Seconds)
	}
	fmt.Fprintln(w)
	if len(t.Products) == 0 {
		return
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "product\tGFLOP\tkernel\tGFLOP/s\tby fixed rules\tGFLOP/s\tfrom\n")
	for _, p := range t.Products {
		fmt.Fprintf(tw, "%s\t%.2f\t%s\t%s\t%s\t%s\t%s\n", p.Product, p.GFLOP, p.Kernel, known(p.GFLOPS, "%.0f"), p.Default, known(p.DefaultGFLOPS, "%.0f"), p.From)
	}
	tw.Flush()
}
