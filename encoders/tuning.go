package encoders

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"gorgonia.org/gorgonia"
)

// Tuning trains transformer towers by few parameters, alone or combined and beside model.lora: all their others keep
// the values that they start with.
//
// Parameters are some of the transformer's own, or stand beside them; the others are locked. The zero value trains
// none. Towers that are no transformers, pools of theirs and heads are trained as ever.
type Tuning struct {
	// bottleneck of the adapters behind the attention and the feed-forward part of every block (Houlsby et al. 2019);
	// 0: none
	AdapterWidth int `toml:"adapter_width" fixed:"model" max:"65536"`
	// of adapters: gelu | relu
	AdapterActivation string `toml:"adapter_activation" when:"adapter_width>0" fixed:"model"`
	// the biases of the towers are trained (Ben Zaken et al. 2022)
	BitFit bool `toml:"bitfit" fixed:"run"`
	// so many of the last blocks of a tower are trained, and what stands behind them: the last norm, pooling, fusion
	// layers; 0: none
	PartialBlocks int `toml:"partial_blocks" fixed:"run" max:"128"`
	// learned tokens without positions in every sequence of a tower, which attention reads (Jia et al. 2022, VPT); 0:
	// none
	PromptTokens int `toml:"prompt_tokens" fixed:"model" max:"1024"`
	// every block has prompts of its own in the place of those before (VPT-deep); else those of the first block pass
	// all
	PromptDeep bool `toml:"prompt_deep" when:"prompt_tokens>0" fixed:"model"`
	// linear layers and norms have a scale and a shift of each channel that they give (Lian et al. 2022)
	SSF bool `toml:"ssf" fixed:"model"`
	// learned in the paths of low rank, of model.lora and of adapters, which read x M in the place of x (GSSF): empty
	// (none) | diag | block_diag | dense
	Metric string `toml:"metric" when:"low rank" fixed:"model"`
	// of metric "block_diag", a divisor of the inputs of every layer that has one; 0: of 8 channels each
	MetricBlocks int `toml:"metric_blocks" when:"low rank and metric=block_diag" fixed:"model" max:"8192"`
}

// metricChannels is the size of a block of a metric where the number of blocks is not said (GSSF).
const metricChannels = 8

// Defaults implements section.Defaulter.
func (t *Tuning) Defaults() { *t = Tuning{AdapterActivation: "gelu"} }

// Gives implements section.Giver.
func (t *Tuning) Gives() (list []section.Fact) {
	if t.AdapterWidth > 0 {
		list = append(list, section.LowRank)
	}
	if len(t.Methods()) > 0 {
		list = append(list, section.Tuned)
	}
	if t.SSF {
		list = append(list, section.Foldable)
	}
	return list
}

// Methods are the keys by which something is trained.
func (t Tuning) Methods() (keys []string) {
	for _, x := range []struct {
		key string
		on  bool
	}{
		{"adapter_width", t.AdapterWidth > 0}, {"bitfit", t.BitFit}, {"partial_blocks", t.PartialBlocks > 0},
		{"prompt_tokens", t.PromptTokens > 0}, {"ssf", t.SSF},
	} {
		if x.on {
			keys = append(keys, "model.tuning."+x.key)
		}
	}
	return keys
}

// Folded is t without what weights can take in, or that says nothing of a trained model: scales and shifts, and
// which of the parameters were trained. Bottlenecks and prompts stay, with their keys.
func (t Tuning) Folded() (f Tuning) {
	f.AdapterWidth, f.AdapterActivation = t.AdapterWidth, t.AdapterActivation
	f.PromptTokens, f.PromptDeep = t.PromptTokens, t.PromptDeep
	if t.AdapterWidth > 0 {
		f.Metric, f.MetricBlocks = t.Metric, t.MetricBlocks
	}
	return f
}

// Check implements section.Checked.
func (t *Tuning) Check(k *section.Checker) {
	k.NotNegative("adapter_width", "partial_blocks", "prompt_tokens", "metric_blocks")
	k.OneOf("adapter_activation", "gelu", "relu")
	k.OneOfOrEmpty("metric", MetricDiag, MetricBlockDiag, MetricDense)
	towers := tunedTowers(k)
	if len(towers) == 0 && k.Has(section.Towers) {
		for _, key := range t.Methods() {
			k.Training(key, false, "must be off without a transformer that is not frozen: there is nothing to tune",
				thaw(k))
		}
	}
	for _, x := range towers {
		k.Training("partial_blocks", t.PartialBlocks <= x.blocks,
			fmt.Sprintf("must be at most %s (%d)", x.blocksKey, x.blocks),
			"leave model.tuning off to train all")
		k.Require("prompt_tokens", t.PromptTokens == 0 || x.style != StyleMPNet && x.style != StyleBlock,
			fmt.Sprintf("must be 0 with %s.style %q, whose attention reads distances that prompts have not", x.path,
				x.style))
		if n := t.MetricBlocks; t.Metric == MetricBlockDiag && k.Has(section.LowRank) {
			msg := fmt.Sprintf("must divide %s.width (%d)", x.path, x.width)
			if n == 0 {
				k.Require("metric_blocks", x.width%metricChannels == 0, msg,
					fmt.Sprintf("0 stands for blocks of %d channels: choose a divisor", metricChannels))
			} else {
				k.Require("metric_blocks", n < 0 || x.width%n == 0, msg, "choose a divisor: the blocks have one size")
			}
		}
	}
}

// tunedTower is a tower that tuning reaches.
type tunedTower struct {
	path, blocksKey string
	width, blocks   int
	style           string
}

// tunedTowers are the transformers of the system that are not frozen. The fusion layers are part of the text tower,
// which they keep in the list where it is frozen.
func tunedTowers(k *section.Checker) (list []tunedTower) {
	image, text := section.Of[ImageOptions](k), section.Of[TextOptions](k)
	if k.Has(section.Patches) && !image.Freeze {
		list = append(list, tunedTower{"model.image", "model.image.depth", image.Width, image.Depth, image.Style})
	}
	if fused := k.Has(section.Fusion) && text.FusionLayers > 0; k.Has(section.WordAttention) &&
		(!text.Freeze || fused) {
		list = append(list, tunedTower{"model.text", "model.text.layers", text.Width, text.Layers, text.Style})
	}
	return list
}

// thaw says what to do where no transformer is trained: those that are frozen can be, towers of other kinds cannot.
func thaw(k *section.Checker) string {
	var frozen []string
	if k.Has(section.Patches) && section.Of[ImageOptions](k).Freeze {
		frozen = append(frozen, "set model.image.freeze = false")
	}
	if k.Has(section.WordAttention) && section.Of[TextOptions](k).Freeze {
		frozen = append(frozen, "set model.text.freeze = false")
	}
	if frozen == nil {
		return `model.image.style "regions", "resnet" and "convnet" and model.text.style "gru" are trained as they are`
	}
	return strings.Join(frozen, " or ")
}

// tuning is that of a scope.
type tuning struct {
	Tuning
	LoRA
	context *Context // of dropout
	blocks  int      // of the transformer
}

// Tuned returns s with the tuning of the transformers that are built in it; the dropout of adapters is
// that of the context.
func (s Scope) Tuned(t Tuning, l LoRA, c *Context) Scope {
	if l.Rank > 0 || len(t.Methods()) > 0 {
		s.tunes = &tuning{Tuning: t, LoRA: l, context: c}
	}
	return s
}

// transformer is the scope of a transformer of so many blocks, locked where it is tuned.
func (s Scope) transformer(blocks int) Scope {
	if s.tunes == nil {
		return s
	}
	t := *s.tunes
	t.blocks = blocks
	s.tuned = &t
	return s.As(Traits{Locked: true})
}

// given tells the context of the dropout of adapters that a transformer is given so many samples.
func (s Scope) given(n int) {
	if s.tuned != nil && s.tuned.context != nil {
		s.tuned.context.given(n, 1)
	}
}

// trains says whether a parameter of the transformer itself is trained.
func (t *tuning) trains(name string, of Traits) bool {
	if t.BitFit && of.Group == GroupBias {
		return true
	}
	i, inBlock := LayerOf(name)
	return t.PartialBlocks > 0 && !of.Front && (!inBlock || i >= t.blocks-t.PartialBlocks)
}

// added is the scope of what tuning adds to s, which is trained and not tuned itself.
func (s Scope) added() Scope {
	s.traits.Locked, s.tuned, s.tunes = false, nil, nil
	return s.As(Traits{Added: true})
}

// layer is the name of s.
func (s Scope) layer() string { return strings.TrimSuffix(s.prefix, "/") }

// linear says whether what the linear layer s gives is changed by tuning.
func (s Scope) tunesLinear() bool { return s.adapts() || s.tuned != nil && s.tuned.SSF }

// tunedLinear returns the output y (R, n) of the linear layer s for x (R, in), which is its columns from
// the given one on of out, as tuning changes it. The layer may have a bias or not.
func (s Scope) tunedLinear(x, y *gorgonia.Node, from, out int, bias bool) *gorgonia.Node {
	return s.scaledShifted(s.adapted(x, y, from, out), from, out, bias)
}

// metric returns x (R, in) M in the place of x, with M the parameter of a name, where tuning has a metric.
func (s Scope) metric(name string, t *tuning, x *gorgonia.Node) *gorgonia.Node {
	m := Metric{Form: t.Metric, Blocks: t.MetricBlocks, Dim: columns("metric", x)}
	if m.Form == "block_diag" {
		if m.Blocks == 0 && m.Dim%metricChannels == 0 {
			m.Blocks = m.Dim / metricChannels
		}
		if m.Blocks < 1 || m.Dim%m.Blocks != 0 {
			misuse("metric", x, "model.tuning.metric_blocks must divide the %d inputs of %s (got %d, and 0 stands for blocks of %d): choose a divisor, or leave the layer out of model.lora.layers", m.Dim, s.layer(), m.Blocks, metricChannels)
		}
	}
	shape := m.Shape()
	if shape == nil {
		return x
	}
	s = s.As(Traits{Group: GroupMetric, Settings: "model.tuning.metric and model.tuning.metric_blocks to those"})
	return FoldImages(x, s.Param(name, identity(shape...), shape...))
}
