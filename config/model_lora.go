package config

import "path"

// LoRA adapts towers by matrices of low rank beside their linear layers (Hu et al. 2021).
type LoRA struct {
	Rank    int      `toml:"rank" fixed:"model" max:"4096"`                     // rank of an adapter; transformers and fusion layers keep their parameters and adapters, heads and losses are trained; 0: no adapters
	Alpha   float64  `toml:"alpha" read:"adapters" fixed:"model" max:"1000000"` // an adapter adds alpha/rank times its product
	Dropout float64  `toml:"dropout" read:"adapters"`                           // of the input of an adapter
	Layers  []string `toml:"layers" read:"adapters" fixed:"model"`              // layers with an adapter, as globs of the names of their weights without /weight, such as "text/layers/*/ffn/*" (trainer inspect lists the names); empty: those of attention
}

func (l *LoRA) defaults() { *l = LoRA{Alpha: 16} }

// attentionLayers are the linear layers of attention in towers and fusion layers.
var attentionLayers = []string{"image/blocks/*/attn/*", "text/layers/*/attention/*", "text/layers/*/crossattention/*"}

// Globs returns the globs of the layers with an adapter.
func (l LoRA) Globs() []string {
	if len(l.Layers) == 0 {
		return attentionLayers
	}
	return l.Layers
}

// Adapts says whether linear layers have adapters, which those of towers may have.
func (m Model) Adapts() bool { return m.LoRA.Rank > 0 && !m.Stored() }

func (l *LoRA) check(k *checker, c *Config) {
	k.NotNegative("model.lora.rank")
	k.Positive("model.lora.alpha")
	k.BelowOne("model.lora.dropout")
	for _, glob := range l.Layers {
		_, err := path.Match(glob, "")
		k.Require("model.lora.layers", err == nil && glob != "", "must be globs of names", "such as \"text/layers/*/attention/*\"")
	}
	k.Training("model.lora.rank", !c.Model.Adapts() || len(c.tunedTowers()) > 0, "must be 0 without a transformer that is not frozen: nothing has adapters", c.thaw())
}
