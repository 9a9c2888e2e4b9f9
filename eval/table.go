package eval

import (
	"fmt"
	"strings"
)

// Result is a column of a table.
type Result struct {
	Name    string
	Metrics Metrics
}

// Table formats results for people: a line per metric, a column per result and
// one for chance, ending in a line break.
func Table(results []Result, chance Metrics) string {
	columns := append(append([]Result(nil), results...), Result{"chance", chance})
	const label = 30
	widths := make([]int, len(columns))
	var b strings.Builder
	line := func(name string, cell func(c Result) string) {
		fmt.Fprintf(&b, "%-*s", label, name)
		for i, c := range columns {
			fmt.Fprintf(&b, "  %*s", widths[i], cell(c))
		}
		b.WriteByte('\n')
	}
	for i, c := range columns {
		widths[i] = max(8, len([]rune(c.Name)))
	}
	line("", func(c Result) string { return c.Name })
	for _, d := range []struct {
		name string
		of   func(m Metrics) Direction
	}{
		{"image to text", func(m Metrics) Direction { return m.I2T }},
		{"text to image", func(m Metrics) Direction { return m.T2I }},
	} {
		line(d.name+"  R@1  %", func(c Result) string { return percent(d.of(c.Metrics).R1) })
		line("               R@5  %", func(c Result) string { return percent(d.of(c.Metrics).R5) })
		line("               R@10 %", func(c Result) string { return percent(d.of(c.Metrics).R10) })
		line("               mean rank", func(c Result) string { return fmt.Sprintf("%.1f", d.of(c.Metrics).MeanRank) })
		line("               median rank",
			func(c Result) string { return fmt.Sprintf("%.1f", d.of(c.Metrics).MedianRank) })
	}
	line("sum of recalls", func(c Result) string { return percent(c.Metrics.RSum()) })
	line("mean of recalls %", func(c Result) string { return percent(c.Metrics.RMean()) })
	return b.String()
}

// percent shows small values, such as chance, with more digits.
func percent(v float64) string {
	if v != 0 && v < 1 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
