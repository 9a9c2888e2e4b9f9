package config

// Image is the vision transformer.
type Image struct {
	Size  int `toml:"size" fixed:"model" max:"8192"`    // side of the square input image in pixels, a multiple of patch
	Patch int `toml:"patch" fixed:"model" max:"8192"`   // side of a square patch in pixels
	Depth int `toml:"depth" fixed:"model" max:"128"`    // transformer blocks
	Width int `toml:"width" fixed:"model" max:"65536"`  // width of a token, a multiple of heads
	Heads int `toml:"heads" fixed:"meaning" max:"1024"` // attention heads
	MLP   int `toml:"mlp" fixed:"model" max:"262144"`   // hidden width of a block's MLP; 0: 4 x width
}

func (i *Image) defaults() { *i = Image{Size: 256, Patch: 16, Depth: 12, Width: 768, Heads: 12} }

func (i *Image) check(k *checker, _ *Config) {
	k.positive("model.image.size", "model.image.patch", "model.image.depth", "model.image.width", "model.image.heads")
	k.notNegative("model.image.mlp")
	k.require("model.image.size", i.Patch <= 0 || i.Size%i.Patch == 0, "must be a multiple of model.image.patch")
	k.require("model.image.width", i.Heads <= 0 || i.Width%i.Heads == 0, "must be a multiple of model.image.heads")
}
