package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
)

// clipEps is the epsilon of the towers' layer norms, PyTorch's default.
const clipEps = 1e-5

// clip is a dual encoder (Radford et al. 2021) with the towers and heads of clip-mtob (its
// section 3.1): a pre-norm vision transformer and a post-norm text encoder, each with a
// projection without bias onto the topology of model.head. The paper trains it by symmetric
// contrast within the batch alone; a teacher and a queue are a matter of configuration.
func clip(cfg config.Config, o Options, space space.Space) design {
	vit, bert := towers(cfg, o, space)
	vit.NoPatchBias, vit.PreNorm, vit.Eps, vit.TorchStart = true, true, clipEps, true
	bert.NoTokenType, bert.FinalNorm, bert.Eps, bert.TorchStart = true, true, clipEps, true
	head := encoders.Projection{Space: space, NoBias: true, Gaussian: true}
	return design{
		image:   side{name: "image", tower: encoders.ImageTower{ViT: vit}, proj: "image_proj", head: head},
		text:    side{name: "text", tower: encoders.TextTower{BERT: bert, Tokens: cfg.Data.Tokens}, proj: "text_proj", head: head},
		teacher: cfg.Momentum.Enabled,
		keys:    teacherKeys(cfg),
	}
}
