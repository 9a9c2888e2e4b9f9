package probe

import "github.com/geoalign/geoalign/config/section"

// EvalTexts names the labelled pairs of texts that --task textprobe fits a classifier to and tests it on: .tsv, .csv,
// .jsonl or .parquet files with the columns text_a, text_b and label, or .json files {"id": {"text_a", "text_b",
// "label"}}. Paths start from data.root.
type EvalTexts struct {
	// file of the pairs that the classifier is fitted to
	Train string `toml:"train"`
	// file of those that it is tested on
	Test string `toml:"test"`
}

// Check implements section.Checked.
func (p *EvalTexts) Check(k *section.Checker) {
	k.Require("train", p.Train != "" || p.Test == "", "must name a file beside that of eval.textprobe.test")
	k.Require("test", p.Test != "" || p.Train == "", "must name a file beside that of eval.textprobe.train")
}
