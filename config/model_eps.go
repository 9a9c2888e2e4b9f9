package config

// torchEps is the epsilon of PyTorch's layer norms, which CLIP and RoBERTa leave as it is.
const torchEps = 1e-5

// LayerNormEps returns the epsilon of the layer norms of image towers in a system, what 0 stands for included.
func (i Image) LayerNormEps(system string) float64 {
	switch {
	case i.Eps != 0:
		return i.Eps
	case i.Style == StyleDeiT:
		return 1e-12
	case i.Style == StyleCLIP, i.Style == "" && system == "clip": // clip-mtob's
		return torchEps
	}
	return 1e-6
}

// LayerNormEps returns the epsilon of the layer norms of text towers in a system, what 0 stands for included.
func (t Text) LayerNormEps(system string) float64 {
	switch {
	case t.Eps != 0:
		return t.Eps
	case t.Style == StyleSigLIP:
		return 1e-6
	case t.Style == StyleRoBERTa, t.Style == StyleMPNet, t.Style == StyleCLIP, t.Style == "" && system == "clip":
		return torchEps
	}
	return 1e-12
}
