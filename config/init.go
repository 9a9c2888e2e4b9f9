package config

// Init says what the parameters start from.
type Init struct {
	Checkpoint string `toml:"checkpoint" fixed:"run"` // checkpoint or run folder whose parameters are the start; empty: random
}

func (i *Init) defaults() {}

func (i *Init) check(k *checker, c *Config) {
	k.require("init.checkpoint", i.Checkpoint == "" || !c.Model.Fitted(), "must be empty", c.Model.named()+" is fitted to the training pairs anew and starts from no parameters")
}
