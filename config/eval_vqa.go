package config

// EvalVQA says how a model answers questions about pictures: it ranks candidates, or it writes.
type EvalVQA struct {
	Generate   bool   `toml:"generate"`                                  // write answers freely; else rank candidates
	Candidates string `toml:"candidates" read:"ranked answers"`          // file of candidates, one on each line or a JSON list; relative to data.root; empty: the commonest answers of the training data
	Common     int    `toml:"common" read:"common answers" max:"100000"` // how many of these; 0: all
	Top        int    `toml:"top" read:"ranked answers" max:"100000"`    // candidates that are read whole, those with the likeliest first word; 0: all
	Beams      int    `toml:"beams" read:"written answers" max:"1000"`   // texts that the search for an answer follows
}

func (e *EvalVQA) defaults() { *e = EvalVQA{Common: 3192, Top: 128, Beams: 3} }

func (e *EvalVQA) check(k *checker, _ *Config) {
	k.NotNegative("eval.vqa.common", "eval.vqa.top")
	k.Positive("eval.vqa.beams")
}
