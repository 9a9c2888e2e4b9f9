package tasks

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// Aligned writes rows below a head, the first column to the left and the others to the right; nothing of a head alone.
func Aligned(rows [][]string) string {
	if len(rows) < 2 {
		return ""
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for k, cell := range row {
			widths[k] = max(widths[k], len(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&b, "%-*s", widths[0], row[0])
		for k, cell := range row[1:] {
			fmt.Fprintf(&b, "  %*s", widths[k+1], cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// KindScore is the outcome of the examples of a kind.
type KindScore struct {
	Kind     string  `json:"kind"`
	Examples int     `json:"examples"`
	Accuracy float64 `json:"accuracy"` // in percent
}

// KindTable is the accuracy by what is asked, "" where examples are of no kind.
func KindTable(list []KindScore) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-20s %10s %10s\n", "kind", "examples", "accuracy")
	for _, k := range list {
		fmt.Fprintf(&b, "%-20s %10s %10.2f\n", k.Kind, words.Thousands(k.Examples), k.Accuracy)
	}
	return b.String()
}

// AddKinds adds the accuracy by what is asked to the numbers of the log.
func AddKinds(values map[string]float64, list []KindScore) {
	for _, k := range list {
		values["accuracy/"+k.Kind] = k.Accuracy
	}
}
