package config

// Karpathy is the file of data.kind = "karpathy".
type Karpathy struct {
	File      string `toml:"file"`       // the dataset_*.json
	ImageRoot string `toml:"image_root"` // folder of the images, below data.root unless absolute; empty: data.root
}

func (f *Karpathy) defaults() {}

func (f *Karpathy) check(k *checker, c *Config) {
	k.Require("data.karpathy.file", c.Data.Kind != "karpathy" || f.File != "", `must name the dataset_*.json for data.kind "karpathy"`)
}
