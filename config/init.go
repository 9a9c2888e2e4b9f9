package config

// Init says what the parameters start from.
type Init struct {
	Checkpoint string `toml:"checkpoint" fixed:"run"` // checkpoint or run folder whose parameters are the start; empty: random
}

func (i *Init) defaults() {}

func (i *Init) check(*checker, *Config) {}
