package config

// Views is the head of the systems of images alone, moco and swav, through which both views
// of an image pass.
type Views struct {
	Hidden int `toml:"hidden" fixed:"model" max:"262144"` // hidden width of the MLP that projects an image; 0: as wide as a token of the image tower
}

func (v *Views) defaults() {}

func (v *Views) check(k *checker, _ *Config) { k.NotNegative("model.views.hidden") }
