package run

import (
	"fmt"
	"strings"
)

// aligned writes rows below a head, the first column to the left and the others to the right; nothing of a head alone.
func aligned(rows [][]string) string {
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
