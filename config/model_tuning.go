package config

import (
	"fmt"
	"strings"
)

// Tuning trains transformer towers by few parameters, alone or combined and beside model.lora: all their others keep the
// values that they start with.
type Tuning struct {
	AdapterWidth      int    `toml:"adapter_width" fixed:"model" max:"65536"`                       // bottleneck of the adapters behind the attention and the feed-forward part of every block (Houlsby et al. 2019); 0: none
	AdapterActivation string `toml:"adapter_activation" read:"bottlenecks" fixed:"model"`           // of adapters: gelu | relu
	BitFit            bool   `toml:"bitfit" fixed:"run"`                                            // the biases of the towers are trained (Ben Zaken et al. 2022)
	PartialBlocks     int    `toml:"partial_blocks" fixed:"run" max:"128"`                          // so many of the last blocks of a tower are trained, and what stands behind them: the last norm, pooling, fusion layers; 0: none
	PromptTokens      int    `toml:"prompt_tokens" fixed:"model" max:"1024"`                        // learned tokens without positions in every sequence of a tower, which attention reads (Jia et al. 2022, VPT); 0: none
	PromptDeep        bool   `toml:"prompt_deep" read:"prompts" fixed:"model"`                      // every block has prompts of its own in the place of those before (VPT-deep); else those of the first block pass all
	SSF               bool   `toml:"ssf" fixed:"model"`                                             // linear layers and norms have a scale and a shift of each channel that they give (Lian et al. 2022)
	Metric            string `toml:"metric" read:"low rank" fixed:"model"`                          // learned in the paths of low rank, of model.lora and of adapters, which read x M in the place of x (GSSF): empty (none) | diag | block_diag | dense
	MetricBlocks      int    `toml:"metric_blocks" read:"low rank blocks" fixed:"model" max:"8192"` // of metric "block_diag", a divisor of the inputs of every layer that has one; 0: of 8 channels each
}

func (t *Tuning) defaults() { *t = Tuning{AdapterActivation: "gelu"} }

// Tunes says whether transformer towers are trained by model.lora or model.tuning.
func (m Model) Tunes() bool {
	return !m.Stored() && (m.LoRA.Rank > 0 || len(m.Tuning.methods()) > 0)
}

// methods are the keys by which something is trained.
func (t Tuning) methods() (keys []string) {
	for _, x := range []struct {
		key string
		on  bool
	}{{"adapter_width", t.AdapterWidth > 0}, {"bitfit", t.BitFit}, {"partial_blocks", t.PartialBlocks > 0}, {"prompt_tokens", t.PromptTokens > 0}, {"ssf", t.SSF}} {
		if x.on {
			keys = append(keys, "model.tuning."+x.key)
		}
	}
	return keys
}

// Folded is m without what weights can take in, or that says nothing of a trained model: low-rank adapters,
// scales and shifts, and which of its own parameters were trained. Bottlenecks and prompts stay, with their keys.
func (m Model) Folded() Model {
	var d Config
	d.Model.LoRA.defaults()
	d.Model.Tuning.defaults()
	now := m.Tuning
	m.LoRA, m.Tuning = d.Model.LoRA, d.Model.Tuning
	m.Tuning.AdapterWidth, m.Tuning.AdapterActivation = now.AdapterWidth, now.AdapterActivation
	m.Tuning.PromptTokens, m.Tuning.PromptDeep = now.PromptTokens, now.PromptDeep
	if now.AdapterWidth > 0 {
		m.Tuning.Metric, m.Tuning.MetricBlocks = now.Metric, now.MetricBlocks
	}
	return m
}

// Folds says whether there is something that weights can take in.
func (m Model) Folds() bool { return m.Adapts() || m.Tuning.SSF && !m.Stored() }

// lowRank says whether there are paths of low rank.
func (m Model) lowRank() bool { return !m.Stored() && (m.LoRA.Rank > 0 || m.Tuning.AdapterWidth > 0) }

// tunedTower is a tower that tuning reaches.
type tunedTower struct {
	width, blocks       int
	widthKey, blocksKey string
	style, styleKey     string
}

// tunedTowers are the transformers of the system that are not frozen; the fusion layers are among the text tower, which they
// keep in the list where it is frozen.
func (c *Config) tunedTowers() (list []tunedTower) {
	m := c.Model
	if m.Stored() {
		return nil
	}
	if m.Image.Transforms() && !m.Image.Freeze {
		list = append(list, tunedTower{m.Image.Width, m.Image.Depth, "model.image.width", "model.image.depth", m.Image.Style, "model.image.style"})
	}
	if fused := m.traits().fusion && m.Text.FusionLayers > 0; m.traits().words && m.Text.Style != StyleGRU && (!m.Text.Freeze || fused) {
		list = append(list, tunedTower{m.Text.Width, m.Text.Layers, "model.text.width", "model.text.layers", m.Text.Style, "model.text.style"})
	}
	return list
}

// thaw says what to do where no transformer is trained: those that are frozen can be, towers of other kinds cannot.
func (c *Config) thaw() string {
	var frozen []string
	m := c.Model
	if m.seesImages() && m.Image.Transforms() && m.Image.Freeze {
		frozen = append(frozen, "set model.image.freeze = false")
	}
	if m.traits().words && m.Text.Style != StyleGRU && m.Text.Freeze {
		frozen = append(frozen, "set model.text.freeze = false")
	}
	if frozen == nil {
		return `model.image.style "regions" and "resnet" and model.text.style "gru" are trained as they are`
	}
	return strings.Join(frozen, " or ")
}

func (t *Tuning) check(k *checker, c *Config) {
	k.NotNegative("model.tuning.adapter_width", "model.tuning.partial_blocks", "model.tuning.prompt_tokens", "model.tuning.metric_blocks")
	k.OneOf("model.tuning.adapter_activation", "gelu", "relu")
	k.OneOfOrEmpty("model.tuning.metric", "diag", "block_diag", "dense")
	towers := c.tunedTowers()
	if len(towers) == 0 && !c.Model.Stored() {
		for _, key := range t.methods() {
			k.Training(key, false, "must be off without a transformer that is not frozen: there is nothing to tune", c.thaw())
		}
	}
	for _, x := range towers {
		k.Training("model.tuning.partial_blocks", t.PartialBlocks <= x.blocks, fmt.Sprintf("must be at most %s (%d)", x.blocksKey, x.blocks), "leave model.tuning off to train all")
		k.Require("model.tuning.prompt_tokens", t.PromptTokens == 0 || x.style != StyleMPNet, fmt.Sprintf("must be 0 with %s %q, whose attention reads distances that prompts have not", x.styleKey, x.style))
		if n := t.MetricBlocks; t.Metric == "block_diag" && c.Model.lowRank() {
			msg := fmt.Sprintf("must divide %s (%d)", x.widthKey, x.width)
			if n == 0 {
				k.Require("model.tuning.metric_blocks", x.width%metricChannels == 0, msg, fmt.Sprintf("0 stands for blocks of %d channels: choose a divisor", metricChannels))
			} else {
				k.Require("model.tuning.metric_blocks", n < 0 || x.width%n == 0, msg, "choose a divisor: the blocks have one size")
			}
		}
	}
}

// metricChannels is the size of a block where none is given (GSSF).
const metricChannels = 8
