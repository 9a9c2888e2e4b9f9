package config

// TextProbe names the labelled pairs of texts that --task textprobe fits a classifier to and tests it on: .tsv, .csv, .jsonl
// or .parquet files with the columns text_a, text_b and label, or .json files {"id": {"text_a", "text_b", "label"}}. Paths start
// from data.root.
type TextProbe struct {
	Train string `toml:"train"` // file of the pairs that the classifier is fitted to
	Test  string `toml:"test"`  // file of those that it is tested on
}

func (*TextProbe) defaults() {}

func (p *TextProbe) check(k *checker, _ *Config) {
	k.Require("eval.textprobe.train", p.Train != "" || p.Test == "", "must name a file beside that of eval.textprobe.test")
	k.Require("eval.textprobe.test", p.Test != "" || p.Train == "", "must name a file beside that of eval.textprobe.train")
}
