// Package ablation describes comparisons of training runs and tells what they show: the
// matrix file that lists the runs, the order in which they are made, and the table with
// means, spreads and tests over seeds. It trains nothing and opens no file.
//
//	m, err := ablation.Parse("matrix.toml", text)
//	jobs, err := m.Plan(nil)       // what to run, one after another
//	r := ablation.Results{...}     // every value of every seed
//	fmt.Print(r.Markdown())
//
// The tests are two-sided t-tests at 5 % without a correction for the number of
// comparisons: paired where both runs have the same seeds, Welch's otherwise.
package ablation
