package weights

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
)

var _ model.Source = (*Model)(nil)

// golden is the file of a model of tools/goldens/weights.py.
func golden(name string) string {
	for _, file := range []string{"model.safetensors", "open_clip_model.safetensors", "deit.pth", "resnet18.pth", "epoch_3.pt", "checkpoint_03.pth", "checkpoint_best.pth", "vit.pt"} {
		if path := filepath.Join("testdata", name, file); exists(path) {
			return path
		}
	}
	return filepath.Join("testdata", name)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func open1(t *testing.T, path string) *Model {
	t.Helper()
	m := check.Get(Open(path))(t)
	t.Cleanup(func() { m.Close() })
	return m
}

// values reads a parameter in its own shape.
func values(t *testing.T, m *Model, name string) []float32 {
	t.Helper()
	shape := m.Shape(name)
	dst := make([]float32, count(shape))
	check.OK(t, m.Read(name, shape, dst))
	return dst
}

const (
	imageSizes = "model.image.size=12 model.image.patch=4 model.image.depth=2 model.image.width=8 "
	textSizes  = "model.text.layers=2 model.text.fusion_layers=0 model.text.width=8 model.text.heads=2 model.text.mlp=16 model.text.positions=6 "
	clipImages = "model.image.mean=[0.48145466, 0.4578275, 0.40821073] model.image.std=[0.26862954, 0.26130258, 0.27577711] model.image.resize=\"crop\" model.image.interpolation=\"bicubic\" "
	netImages  = "model.image.mean=[0.485, 0.456, 0.406] model.image.std=[0.229, 0.224, 0.225] model.image.resize=\"crop\" model.image.interpolation=\"bicubic\""
	halfImages = "model.image.mean=[0.5, 0.5, 0.5] model.image.std=[0.5, 0.5, 0.5] "
)

// goldens has for each golden model what it is and what its settings are.
var goldens = []struct{ name, family, settings string }{
	{"bert", "bert", `model.text.style="bert" ` + textSizes + `model.text.activation="gelu" model.text.pool="class"`},
	{"roberta", "roberta", `model.text.style="roberta" ` + textSizes + `model.text.activation="gelu" model.text.pool="class"`},
	{"mpnet", "mpnet", `model.text.style="mpnet" ` + textSizes + `model.text.activation="gelu" model.text.pool="class"`},
	{"vit", "vit", `model.image.style="deit" ` + imageSizes + `model.image.heads=2 model.image.mlp=16 model.image.activation="gelu" model.image.pool="class" ` +
		halfImages + `model.image.resize="squash" model.image.interpolation="bilinear"`},
	{"deit", "vit", `model.image.style="deit" ` + imageSizes + `model.image.heads=2 model.image.mlp=16 model.image.activation="gelu" model.image.pool="class" model.image.registers=1 ` + netImages + ` model.image.centre="down"`},
	{"dinov2", "dinov2", `model.image.style="dinov2" ` + imageSizes + `model.image.heads=2 model.image.mlp=16 model.image.activation="gelu" model.image.pool="class" ` + netImages + ` model.image.centre="down"`},
	{"dinov2_registers", "dinov2", `model.image.style="dinov2" ` + imageSizes + `model.image.heads=2 model.image.mlp=16 model.image.activation="swiglu" model.image.pool="class" model.image.registers=2 ` + netImages + ` model.image.centre="down"`},
	{"timm", "timm", `model.image.style="vit" ` + imageSizes + `model.image.heads=2 model.image.mlp=16 model.image.activation="gelu" model.image.pool="class" ` +
		halfImages + `model.image.resize="crop" model.image.interpolation="bicubic" model.image.crop=0.9`},
	{"timm_registers", "timm", `model.image.style="dinov2" ` + imageSizes + `model.image.heads=2 model.image.mlp=16 model.image.activation="gelu" model.image.pool="class" model.image.registers=4 ` + netImages},
	{"timm_siglip", "timm", `model.image.style="siglip" ` + imageSizes + `model.image.heads=2 model.image.mlp=16 model.image.activation="gelu" model.image.pool="attention" ` +
		halfImages + `model.image.resize="crop" model.image.interpolation="bicubic" model.image.crop=0.9`},
	{"deit_distilled", "timm", `model.image.style="vit" ` + imageSizes + `model.image.heads=1 model.image.mlp=16 model.image.activation="gelu" model.image.pool="class" model.image.registers=1 ` + netImages},
	{"resnet18", "resnet", `model.image.style="resnet" model.image.size=224 model.image.resnet.depth=18 model.image.resnet.width=2 model.image.resnet.small_stem=false ` +
		`model.image.mean=[0.485, 0.456, 0.406] model.image.std=[0.229, 0.224, 0.225] model.image.resize="crop" model.image.interpolation="bilinear" model.image.crop=0.875`},
	{"resnet_hf", "resnet_hf", `model.image.style="resnet" model.image.size=40 model.image.resnet.depth=50 model.image.resnet.width=2 model.image.resnet.small_stem=false ` + netImages + ` model.image.crop=0.875 model.image.centre="down"`},
	{"clip", "clip", `model.system="clip" objective.itm.weight=0 objective.mlm.weight=0 model.image.style="clip" ` + imageSizes + `model.image.heads=2 model.image.mlp=16 model.image.activation="quick_gelu" model.image.pool="class" ` + clipImages +
		`model.image.centre="down" model.text.style="clip" ` + textSizes + `model.text.activation="quick_gelu" model.text.pool="end" data.tokens=6 model.head.dim=6`},
	{"siglip", "siglip", `model.system="clip" objective.itm.weight=0 objective.mlm.weight=0 model.image.style="siglip" ` + imageSizes + `model.image.heads=2 model.image.mlp=16 model.image.activation="gelu_tanh" model.image.pool="attention" ` +
		halfImages + `model.image.resize="squash" model.image.interpolation="bicubic" model.text.style="siglip" ` + textSizes +
		`model.text.activation="gelu_tanh" model.text.pool="end" data.tokens=6 model.head.dim=8 model.head.identity="image"`},
	{"open_clip", "open_clip", `model.system="clip" objective.itm.weight=0 objective.mlm.weight=0 model.image.style="clip" ` + imageSizes + `model.image.heads=2 model.image.mlp=16 model.image.activation="quick_gelu" model.image.pool="class" ` + clipImages +
		`model.text.style="clip" ` + textSizes + `model.text.activation="quick_gelu" model.text.pool="end" data.tokens=6 model.head.dim=6`},
	{"open_clip_checkpoint", "open_clip", `model.system="clip" objective.itm.weight=0 objective.mlm.weight=0 model.image.style="clip" ` + imageSizes + `model.image.heads=1 model.image.mlp=16 model.image.activation="gelu" model.image.pool="class" ` + clipImages +
		`model.text.style="clip" ` + strings.Replace(textSizes, "heads=2", "heads=1", 1) + `model.text.activation="gelu" model.text.pool="end" data.tokens=6 model.head.dim=6`},
	{"open_clip_siglip", "open_clip_timm", `model.system="clip" objective.itm.weight=0 objective.mlm.weight=0 model.image.style="siglip" ` + imageSizes + `model.image.heads=1 model.image.mlp=16 model.image.activation="gelu" model.image.pool="attention" ` +
		halfImages + `model.image.resize="squash" model.image.interpolation="bicubic" model.text.style="siglip" ` + textSizes +
		`model.text.activation="gelu" model.text.pool="end" data.tokens=6 model.head.dim=8 model.head.identity="image"`},
	{"open_clip_vit", "open_clip_timm", `model.system="clip" objective.itm.weight=0 objective.mlm.weight=0 model.image.style="vit" ` + imageSizes + `model.image.heads=1 model.image.mlp=16 model.image.activation="gelu" model.image.pool="class" ` + clipImages +
		`model.text.style="clip" ` + textSizes + `model.text.activation="gelu" model.text.pool="end" data.tokens=6 model.head.dim=6`},
	{"clip_mtob", "clip-mtob", `model.system="clip" objective.itm.weight=0 objective.mlm.weight=0 model.image.style="clip" ` + imageSizes + `model.image.heads=1 model.image.mlp=32 model.image.activation="gelu" model.image.pool="class" ` + clipImages +
		`model.text.style="" ` + strings.NewReplacer("heads=2", "heads=1", "mlp=16", "mlp=32", "positions=6", "positions=21").Replace(textSizes) + `model.text.activation="gelu" model.text.pool="class" data.tokens=6 model.head.dim=32 model.head.topology="Multi(2,16)"`},
	{"clip_mtob_ref", "clip-mtob", `model.system="clip" objective.itm.weight=0 objective.mlm.weight=0 model.image.style="clip" ` + imageSizes + `model.image.heads=1 model.image.mlp=32 model.image.activation="gelu" model.image.pool="class" ` + clipImages +
		`model.text.style="" ` + strings.NewReplacer("heads=2", "heads=1", "mlp=16", "mlp=32").Replace(textSizes) + `model.text.activation="gelu" model.text.pool="class" data.tokens=6 model.head.dim=32`},
	{"albef", "albef", `model.system="albef" model.image.style="vit" ` + imageSizes + `model.image.heads=1 model.image.mlp=16 model.image.activation="gelu" model.image.pool="class" model.text.style="bert" ` +
		strings.NewReplacer("heads=2", "heads=1", "fusion_layers=0", "fusion_layers=1").Replace(textSizes) + `model.text.activation="gelu" model.text.pool="class" model.head.dim=6 queue.size=4`},
	{"albef_retrieval", "albef", `model.system="albef" model.image.style="vit" ` + imageSizes + `model.image.heads=1 model.image.mlp=16 model.image.activation="gelu" model.image.pool="class" model.text.style="bert" ` +
		strings.NewReplacer("heads=2", "heads=1", "fusion_layers=0", "fusion_layers=1").Replace(textSizes) + `model.text.activation="gelu" model.text.pool="class" model.head.dim=6 queue.size=4`},
}

// Every model of a package is recognised, with its settings, and nothing of it is missing, unknown or
// unreadable.
func TestGoldens(t *testing.T) {
	for _, g := range goldens {
		m := open1(t, golden(g.name))
		var settings []string
		for _, s := range m.Settings() {
			settings = append(settings, s.String())
		}
		if got := strings.Join(settings, " "); m.Family != g.family || got != g.settings {
			t.Errorf("%s: %s\n%s\nwant %s\n%s", g.name, m.Family, got, g.family, g.settings)
		}
		for _, name := range m.Names() {
			values(t, m, name)
		}
		r := m.Report()
		if r.Read != len(m.Names()) || len(r.Missing)+len(r.Unexpected)+len(r.Unread)+len(r.Resampled)+len(r.Cut) != 0 {
			t.Errorf("%s: %+v", g.name, r)
		}
	}
}

// tensors reads tensors of a safetensors file one after the other.
func tensors(t *testing.T, path string, names ...string) (all []float32) {
	t.Helper()
	f := check.Get(safetensors.Open(path))(t)
	defer f.Close()
	for _, name := range names {
		x := check.Get(f.Float32(name))(t)
		all = append(all, x...)
	}
	return all
}

// What parameters are made of, for each way of making them.
func TestShapings(t *testing.T) {
	for _, c := range []struct {
		model, name string
		shape       []int
		want        func(get func(names ...string) []float32) []float32
	}{
		{"bert", "text/layers/01/attention/qkv/weight", []int{24, 8}, func(get func(...string) []float32) []float32 {
			p := "bert.encoder.layer.1.attention.self."
			return get(p+"query.weight", p+"key.weight", p+"value.weight")
		}},
		{"bert", "text/mlm/bias", []int{24}, func(get func(...string) []float32) []float32 { return get("cls.predictions.bias") }},
		{"clip", "image/patch_embed/weight", []int{8, 48}, func(get func(...string) []float32) []float32 {
			return get("vision_model.embeddings.patch_embedding.weight")
		}},
		{"clip", "temperature", []int{}, func(get func(...string) []float32) []float32 {
			return []float32{float32(math.Exp(-float64(get("logit_scale")[0])))}
		}},
		{"siglip", "siglip/log_scale", []int{}, func(get func(...string) []float32) []float32 { return get("logit_scale") }},
		{"siglip", "image/pool/qkv/bias", []int{24}, func(get func(...string) []float32) []float32 { return get("vision_model.head.attention.in_proj_bias") }},
		{"vit", "image/pos_embed", []int{10, 8}, func(get func(...string) []float32) []float32 { return get("vit.embeddings.position_embeddings") }},
		{"vit", "image/cls_token", []int{8}, func(get func(...string) []float32) []float32 { return get("vit.embeddings.cls_token") }},
		{"deit", "image/pos_embed", []int{10, 8}, func(get func(...string) []float32) []float32 {
			x := get("deit.embeddings.position_embeddings")
			return append(slices.Clone(x[:8]), x[16:]...)
		}},
		{"deit", "image/registers", []int{1, 8}, func(get func(...string) []float32) []float32 {
			x, at := get("deit.embeddings.distillation_token"), get("deit.embeddings.position_embeddings")[8:16]
			for i := range x {
				x[i] += at[i]
			}
			return x
		}},
		{"timm_registers", "image/registers", []int{4, 8}, func(get func(...string) []float32) []float32 { return get("reg_token") }},
		{"timm_registers", "image/pos_embed", []int{10, 8}, func(get func(...string) []float32) []float32 { return append(make([]float32, 8), get("pos_embed")...) }},
		{"timm_siglip", "image/pos_embed", []int{9, 8}, func(get func(...string) []float32) []float32 { return get("pos_embed") }},
		{"timm_siglip", "image/pool/qkv/weight", []int{24, 8}, func(get func(...string) []float32) []float32 { return get("attn_pool.q.weight", "attn_pool.kv.weight") }},
		{"dinov2_registers", "image/blocks/00/mlp/fc1/weight", []int{32, 8}, func(get func(...string) []float32) []float32 { return get("encoder.layer.0.mlp.weights_in.weight") }},
		{"dinov2", "image/blocks/01/scale2", []int{8}, func(get func(...string) []float32) []float32 { return get("encoder.layer.1.layer_scale2.lambda1") }},
		{"mpnet", "text/relative/weight", []int{32, 2}, func(get func(...string) []float32) []float32 { return get("encoder.relative_attention_bias.weight") }},
		{"mpnet", "text/embeddings/position/weight", []int{6, 8}, func(get func(...string) []float32) []float32 {
			return get("embeddings.position_embeddings.weight")[16:]
		}},
		{"roberta", "text/embeddings/position/weight", []int{6, 8}, func(get func(...string) []float32) []float32 {
			x, kind := get("roberta.embeddings.position_embeddings.weight")[16:], get("roberta.embeddings.token_type_embeddings.weight")
			for i := range x {
				x[i] += kind[i%8]
			}
			return x
		}},
		{"open_clip", "image_proj/weight", []int{6, 8}, func(get func(...string) []float32) []float32 { return swapped(get("visual.proj"), 8, 6) }},
		{"open_clip", "text_proj/weight", []int{6, 8}, func(get func(...string) []float32) []float32 { return swapped(get("text_projection"), 8, 6) }},
	} {
		path := golden(c.model)
		m := open1(t, path)
		if !m.Has(c.name) || !slices.Equal(m.Shape(c.name), c.shape) {
			t.Errorf("%s of %s has shape %v, want %v", c.name, c.model, m.Shape(c.name), c.shape)
			continue
		}
		want := c.want(func(names ...string) []float32 { return tensors(t, path, names...) })
		if got := values(t, m, c.name); !slices.Equal(got, want) {
			t.Errorf("%s of %s: %v, want %v", c.name, c.model, got, want)
		}
	}
}

// swapped is the transpose of x (n, m).
func swapped(x []float32, n, m int) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i%m*n+i/m] = v
	}
	return y
}

// The same model in other files has the same parameters: a checkpoint of open_clip in bfloat16, with its wrappers and
// text tower elsewhere, one of ALBEF's retrieval in float16 under other names.
func TestOtherFilesOfOneModel(t *testing.T) {
	for _, c := range []struct {
		a, b    string
		rounded float64
		only    []string // of a
	}{
		{"open_clip", "open_clip_checkpoint", 1. / 256, nil},
		{"albef", "albef_retrieval", 1. / 1024, []string{"momentum/", "text/mlm/"}},
	} {
		a, b := open1(t, golden(c.a)), open1(t, golden(c.b))
		compared := 0
		for _, name := range a.Names() {
			if slices.ContainsFunc(c.only, func(p string) bool { return strings.HasPrefix(name, p) }) {
				if b.Has(name) {
					t.Errorf("%s has %s", c.b, name)
				}
				continue
			}
			x, y := values(t, a, name), values(t, b, name)
			for i := range x {
				if d := math.Abs(float64(x[i] - y[i])); d > c.rounded*math.Abs(float64(x[i]))+1e-7 {
					t.Errorf("%s[%d] is %v in %s and %v in %s", name, i, x[i], c.a, y[i], c.b)
					break
				}
			}
			compared++
		}
		if compared != len(b.Names()) || compared < 60 {
			t.Errorf("%d of %d parameters compared", compared, len(b.Names()))
		}
	}
}

// ALBEF's twins have the names of their parameters, and what is behind them is theirs.
func TestALBEFTwinsAndQueues(t *testing.T) {
	m := open1(t, golden("albef"))
	twins := 0
	for _, name := range m.Names() {
		own, ok := strings.CutPrefix(name, "momentum/")
		if !ok {
			continue
		}
		twins++
		x, y := values(t, m, own), values(t, m, name)
		for i := range x {
			if y[i] != x[i]+1 { // as weights.py makes them
				t.Fatalf("%s[%d] is %v and its twin %v", own, i, x[i], y[i])
			}
		}
	}
	if lacks := len(m.Names()) - 2*twins; lacks != 5 { // itm_head, temperature, two queues
		t.Errorf("%d twins, %d parameters without", twins, lacks)
	}
	if got := values(t, m, "temperature")[0]; got != 0.07 {
		t.Errorf("temperature %v", got)
	}
	if got := m.Shape("queue/image"); !slices.Equal(got, []int{4, 6}) {
		t.Errorf("queue of shape %v", got)
	}
}

// Position tables are read in other shapes, nothing else is.
func TestOtherShapes(t *testing.T) {
	m := open1(t, golden("siglip"))
	grid, all := make([]float32, 25*8), values(t, m, "text/embeddings/position/weight")
	if err := m.Read("image/pos_embed", []int{25, 8}, grid); err != nil {
		t.Error(err)
	}
	some := make([]float32, 4*8)
	if err := m.Read("text/embeddings/position/weight", []int{4, 8}, some); err != nil || !slices.Equal(some, all[:32]) {
		t.Error(some, err)
	}
	r := m.Report()
	if !slices.Equal(r.Resampled, []string{"image/pos_embed"}) || !slices.Equal(r.Cut, []string{"text/embeddings/position/weight"}) || r.Read != 2 {
		t.Errorf("%+v", r)
	}
	if s := r.String(); !strings.Contains(s, "siglip: 2 parameters read\n1 resampled: image/pos_embed\n1 cut: text/") {
		t.Error(s)
	}
	for want, c := range map[string]struct {
		name  string
		shape []int
		n     int
	}{
		"has 6 positions in testdata/siglip/model.safetensors, and 7 are wanted: set model.text.positions = 6": {"text/embeddings/position/weight", []int{7, 8}, 56},
		"26 are wanted, which are no square grid":                                                              {"image/pos_embed", []int{26, 8}, 208},
		"text/norm/weight has shape [8] in testdata":                                                           {"text/norm/weight", []int{9}, 9},
		"the settings of the weights are model.text.style=\"siglip\" model":                                    {"text/norm/weight", []int{9}, 9},
		"has nothing that image/cls_token is made of":                                                          {"image/cls_token", []int{8}, 8},
		"shape [8] has 8 elements, and 9 are to be read":                                                       {"text/norm/weight", []int{8}, 9},
	} {
		check.Error(t, m.Read(c.name, c.shape, make([]float32, c.n)), want)
	}
	// With a class token its row stays.
	vit := open1(t, golden("vit"))
	table := make([]float32, 17*8)
	if err := vit.Read("image/pos_embed", []int{17, 8}, table); err != nil || !slices.Equal(table[:8], values(t, vit, "image/pos_embed")[:8]) {
		t.Error(err)
	}
}

// A program resamples positions of images with or without antialias, and so are they read.
func TestPositionsAsTheProgramResamples(t *testing.T) {
	for name, smooth := range map[string]bool{
		"vit": false, "deit": false, "deit_distilled": true, "dinov2": false, "dinov2_registers": true, "timm": true, "timm_registers": true, "timm_siglip": true,
		"clip": false, "siglip": false, "open_clip": true, "open_clip_checkpoint": true, "open_clip_siglip": true, "open_clip_vit": true, "albef": false, "clip_mtob": false,
	} {
		m := open1(t, golden(name))
		classes := 0
		if m.Has("image/cls_token") {
			classes = count(m.Shape("image/cls_token")) / 8
		}
		stored := values(t, m, "image/pos_embed")
		for _, side := range []int{2, 5} {
			law := encoders.InterpolatePositions
			if smooth {
				law = encoders.SmoothPositions
			}
			want := check.Get(law(stored, 8, classes, side))(t)
			got := make([]float32, len(want))
			if err := m.Read("image/pos_embed", []int{classes + side*side, 8}, got); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s to a grid of %d: antialias must be %v (%v)", name, side, smooth, err)
			}
		}
	}
}
