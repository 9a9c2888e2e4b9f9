package sentences

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
)

// Table implements tasks.Scores.
func (s Scores) Table() string {
	text := ""
	skipped := ""
	for _, t := range s.Tasks {
		if t.Skipped != "" {
			skipped += fmt.Sprintf("%s: %s\n", t.Task, t.Skipped)
		}
	}
	for _, part := range []string{tasks.Aligned(s.correlations()), tasks.Aligned(s.accuracies()) + skipped,
		tasks.Aligned(s.isotropies()), strings.Join(s.Notes, "\n")} {
		if text != "" && part != "" {
			text += "\n"
		}
		text += part
	}
	return strings.TrimSuffix(text, "\n") + "\n"
}

// named is a task with its split.
func named(t PairScores) string { return strings.TrimSpace(t.Task + " " + t.Split) }

// correlations are lines for each task with scores and its files.
func (s Scores) correlations() [][]string {
	rows := [][]string{{"similarity, %", "pairs", "Spearman", "Pearson"}}
	line := func(name string, pairs int, c eval.Correlation) {
		rows = append(rows, []string{name, fmt.Sprint(pairs), fmt.Sprintf("%.2f", 100*c.Spearman),
			fmt.Sprintf("%.2f", 100*c.Pearson)})
	}
	words := func(t PairScores) {
		if t.Words != nil {
			line(named(t)+", TF-IDF", t.Pairs, *t.Words)
		}
	}
	for _, t := range s.scored() {
		if len(t.STS.Parts) == 1 {
			line(named(t), t.Pairs, t.STS.All)
			words(t)
			continue
		}
		for _, p := range t.STS.Parts {
			line(t.Task+" "+p.Name, p.Pairs, p.Correlation)
		}
		line(named(t)+", all pairs", t.Pairs, t.STS.All)
		line(named(t)+", mean of files", t.Pairs, t.STS.Mean)
		line(named(t)+", mean by pairs", t.Pairs, t.STS.Weighted)
		words(t)
	}
	return rows
}

// accuracies are a line for each task with classes.
func (s Scores) accuracies() [][]string {
	rows := [][]string{slices.Concat([]string{"accuracy, %", "pairs", "training"}, s.Rules,
		[]string{"majority", "always the nearest class"})}
	for _, t := range s.Tasks {
		if t.STS != nil {
			continue
		}
		row := func(name string, by map[string]float64) []string {
			list := []string{name, fmt.Sprint(t.Pairs), fmt.Sprint(t.Train)}
			for _, rule := range s.Rules {
				cell := "-"
				if v, ok := by[rule]; ok {
					cell = fmt.Sprintf("%.2f", v)
				}
				list = append(list, cell)
			}
			return list
		}
		class, share := t.Majority()
		rows = append(rows, append(row(named(t), t.Rules), fmt.Sprintf("%.2f (%s)", share, class),
			fmt.Sprintf("%.2f (%s)", t.Constant[t.Nearest], t.Classes[t.Nearest])))
		if len(t.WordRules) > 0 {
			rows = append(rows, append(row(named(t)+", TF-IDF", t.WordRules), "", ""))
		}
	}
	return rows
}

// isotropies are a line for each task whose isotropy was measured.
func (s Scores) isotropies() [][]string {
	rows := [][]string{{"isotropy", "sentences", "mean cosine", "effective rank", "participation", "IsoScore",
		"uniformity", "alignment", "positives"}}
	for _, t := range s.Tasks {
		i := t.Isotropy
		if i == nil {
			continue
		}
		alignment := "-"
		if i.Positives > 0 {
			alignment = fmt.Sprintf("%.4f", i.Alignment)
		}
		rows = append(rows, []string{t.Task, fmt.Sprint(i.Rows), fmt.Sprintf("%.4f", i.Cosine),
			fmt.Sprintf("%.1f", i.EffectiveRank), fmt.Sprintf("%.1f", i.Participation), fmt.Sprintf("%.4f", i.IsoScore),
			fmt.Sprintf("%.4f", i.Uniformity), alignment, fmt.Sprint(i.Positives)})
	}
	return rows
}
