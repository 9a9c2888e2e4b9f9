package export

import (
	"cmp"
	"fmt"
	"io"
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/export/onnx"
	"github.com/geoalign/geoalign/weights"
)

// external is the size from which weights lie in a file beside a model: a protocol buffer has at most 2 GB.
const external = 1_500_000_000

// onnx writes each side with its head as a model, and both with their scores as another.
func (x *job) onnx() error {
	var features []string
	var axes []int
	dual := onnx.New(x.Params)
	fold, err := x.folded()
	if err != nil {
		return err
	}
	images := "" // that are folded
	if fold != nil {
		x.note("image_folded are images with the score %s folded into them: their products with text_embeds are the scores, without another norm", x.Config.EvalTerms()[0].Kind)
	}
	for _, side := range []string{"image", "text"} {
		if x.Side != "" && x.Side != side {
			continue
		}
		g := onnx.New(x.Params)
		for i, g := range []*onnx.Graph{g, dual} {
			f, err := x.encoder(g, side, i == 0)
			if err != nil {
				return err
			}
			if i == 1 {
				features = append(features, f)
			}
			if side != "image" || fold == nil {
				continue
			}
			if f = g.Fold(f, fold); i == 0 {
				g.Output("image_folded", f, "images", x.dim(side))
			} else {
				images = f
			}
		}
		if err := x.graph(side, g); err != nil {
			return err
		}
		axes = append(axes, x.dim(side))
	}
	if x.sides.Views { // heads of images alone, such as that of classes, read image_pooled
		x.class = "image.onnx"
		x.leftOut(x.below(nil, "image/", "image_proj/"))
	}
	x.class = fmt.Sprintf("opset %d", onnx.Opset)
	x.load = fmt.Sprintf("onnxruntime.InferenceSession(%q)", x.Out+"/image.onnx")
	if x.Side == "text" {
		x.load = fmt.Sprintf("onnxruntime.InferenceSession(%q)", x.Out+"/text.onnx")
	}
	if len(features) == 2 {
		if err := x.dual(dual, features, cmp.Or(images, features[0]), axes); err != nil {
			return err
		}
	}
	if x.sides.Fusion != nil {
		x.note("the %d fusion layers and the heads that read them are left out", x.sides.Fusion.FusionLayers)
	}
	if !x.Config.Has(section.Stored) {
		if x.Side != "text" {
			x.processor()
		}
		if x.Side != "image" {
			return x.tokenizerFiles()
		}
	}
	return nil
}

// dim is C, the channels of the features of a side.
func (x *job) dim(side string) int {
	if side == "image" {
		return x.sides.Image.Head.Dimension()
	}
	return x.sides.Text.Head.Dimension()
}

// encoder adds a side with its head to a model and returns its features. alone gives it the outputs of a model of this
// side: the features, and what the head reads.
func (x *job) encoder(g *onnx.Graph, side string, alone bool) (string, error) {
	s := x.sides.Image
	if side == "text" {
		s = x.sides.Text
	}
	var classes string // (B, m, D)
	switch t := s.Tower.(type) {
	case encoders.ImageTower:
		if t.Style == encoders.StyleBlock {
			return "", x.noBlock()
		}
		classes = g.Image(s.Name, t.ViT)
	case encoders.ResNetTower:
		classes = g.ResNet(s.Name, t.ResNet)
	case encoders.RegionTower, encoders.ConvNetTower:
		return "", x.noRegions()
	case encoders.TextTower:
		if _, ok := t.Encoder.(encoders.GRU); ok {
			return "", x.refuse("model.text.style", x.Config.Model.Text.Style,
				"recurrent layers are written in no other form")
		}
		if _, ok := t.Encoder.(encoders.BlockText); ok {
			return "", x.refuse("model.text.style", x.Config.Model.Text.Style,
				"layers of model.text.block are written in no other form")
		}
		if p, ok := t.Encoder.(encoders.PreNormText); ok && p.Behind {
			return "", x.behind()
		}
		if t.Pool == encoders.PoolGPO || t.Pool == encoders.PoolESA ||
			t.Pool == encoders.PoolFirstLast {
			return "", x.refuse("model.text.pool", string(t.Pool), "this pool is written in no other form")
		}
		classes = g.Text(s.Name, t)
	case encoders.FeatureTower:
		classes = g.Features(side+"_features", side+"s", s.Name, t)
	default:
		return "", fmt.Errorf("the %s tower is a %T, which no form has: use %s", side, t, asGeoalign)
	}
	features := g.Head(s.Proj, s.Head, classes)
	if alone {
		_, width := s.Tower.Shape()
		g.Output(side+"_embeds", features, side+"s", s.Head.Dimension())
		g.Output(side+"_pooled", g.Flat(classes), side+"s", s.Tower.Classes()*width)
		if x.Config.Has(section.OneEncoder) && g.States() != "" {
			g.Output("last_hidden_state", g.States(), side+"s", "tokens", width)
		}
	}
	return features, nil
}

// dual writes the model of both sides, with the scores of all pairs where the score is a product; images are
// their features, folded where the score is to be folded into them.
func (x *job) dual(g *onnx.Graph, features []string, images string, axes []int) error {
	score, err := x.score()
	if err != nil {
		return err
	}
	if score.Folds() && !x.Config.Has(section.TokenScores) {
		scale, bias, err := x.scaleAndBias()
		if err != nil {
			return err
		}
		g.Output("logits", g.Logits(images, features[1], scale, bias), "images", "texts")
	} else {
		x.note("dual.onnx has no logits: the score %s (eval.score) is no product of features", score)
	}
	g.Output("image_embeds", features[0], "images", axes[0])
	g.Output("text_embeds", features[1], "texts", axes[1])
	return x.graph("dual", g)
}

// scaleAndBias are those of the scores.
func (x *job) scaleAndBias() (scale, bias float32, err error) {
	number := func(p weights.Param) float32 {
		v := []float32{0}
		if err == nil {
			err = p.Read(v)
		}
		return v[0]
	}
	if p, ok := x.params["siglip/log_scale"]; ok {
		return float32(math.Exp(float64(number(p)))), number(x.params["siglip/bias"]), err
	}
	return 1 / number(x.temperature()), 0, err
}

// graph adds the files of a model.
func (x *job) graph(name string, g *onnx.Graph) error {
	file, data := name+".onnx", ""
	most := x.External
	if most == 0 {
		most = external
	}
	if g.Bytes() > most {
		data = file + ".data"
		x.files[data] = g.WriteData
	}
	tensors, numbers := g.Tensors()
	x.count, x.size = x.count+tensors, x.size+numbers
	x.files[file] = func(w io.Writer) error { return g.Write(w, data) }
	return nil
}
