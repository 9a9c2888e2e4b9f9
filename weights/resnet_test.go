package weights

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
)

// Residual networks of torchvision and transformers compute here what they compute there: the places of the last layer behind their
// mean, and the mean.
func TestResNetsCompute(t *testing.T) {
	for name, width := range map[string]int{"resnet18": 16, "resnet_hf": 64} {
		m, e := open1(t, golden(name)), expect(t, name)
		sets := []string{"model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "model.head.identity=image",
			"model.head.topology=euclid", "objective.itc.score=inner"}
		for _, s := range m.Settings() {
			sets = append(sets, s.String())
		}
		cfg, err := config.Parse("", nil, append(sets, "model.image.size=40", "model.head.dim="+map[int]string{16: "16", 64: "64"}[width]))
		if err != nil {
			t.Fatal(err)
		}
		engine := check.Get(compute.New(compute.Options{Threads: 1}))(t)
		p := check.Get(model.Open(cfg, model.Options{Engine: engine, Vocab: 24}, m))(t)
		t.Cleanup(func() { p.Close() })
		b := batch.New(2)
		b.SetFloats(batch.Images, e.floats("pixel_values"))
		states, features := check.Get2(p.Image().Encode(t.Context(), b))(t)
		hidden, pooled := e.floats("hidden"), e.floats("pooled")
		var want []float32
		for i := range 2 {
			want = append(want, pooled[i*width:][:width]...)
			want = append(want, hidden[i*len(hidden)/2:][:len(hidden)/2]...)
		}
		near(t, name+" tokens", states, want, width, nil)
		near(t, name+" mean", features, pooled, width, nil)
		if left := m.Report().Unread; len(left) > 0 {
			t.Errorf("%s: nothing read %v", name, left)
		}
	}
}

// Checkpoints of MoCo and SwAV have a network of torchvision beside other parts; others whose blocks are not these are
// refused by what they are.
func TestResNetFiles(t *testing.T) {
	altered := func(change func(x safetensors.Tensor) []safetensors.Tensor) string {
		return write(t, t.TempDir(), "a.safetensors", contents(t, golden("resnet_hf"), func(list []safetensors.Tensor) (out []safetensors.Tensor) {
			for _, x := range list {
				if name, ok := strings.CutPrefix(x.Name, "resnet."); ok { // under torchvision's names
					name = strings.NewReplacer("embedder.embedder.convolution", "conv1", "embedder.embedder.normalization", "bn1", ".shortcut.convolution", ".downsample.0", ".shortcut.normalization", ".downsample.1",
						"encoder.stages.0.layers", "layer1", "encoder.stages.1.layers", "layer2", "encoder.stages.2.layers", "layer3", "encoder.stages.3.layers", "layer4",
						".layer.0.convolution", ".conv1", ".layer.1.convolution", ".conv2", ".layer.2.convolution", ".conv3",
						".layer.0.normalization", ".bn1", ".layer.1.normalization", ".bn2", ".layer.2.normalization", ".bn3").Replace(name)
					x.Name = name
					out = append(out, change(x)...)
				}
			}
			return out
		}))
	}
	moco := open1(t, altered(func(x safetensors.Tensor) []safetensors.Tensor {
		key, query := x, x
		key.Name, query.Name = "encoder_k."+x.Name, "encoder_q."+x.Name
		return []safetensors.Tensor{query, key}
	}))
	if r := moco.Report(); moco.Family != "resnet" || len(r.Missing)+len(r.Unexpected) > 0 || !moco.Has("image/layer4/02/bn3/running_var") {
		t.Errorf("MoCo is %+v", r)
	}
	clip := open1(t, write(t, t.TempDir(), "a.safetensors", contents(t, golden("open_clip"), func(list []safetensors.Tensor) (out []safetensors.Tensor) {
		for _, x := range list {
			if !strings.HasPrefix(x.Name, "visual.") {
				out = append(out, x)
			}
		}
		return append(out, safetensors.Tensor{Name: "visual.attnpool.c_proj.weight", Shape: []int{2}, Data: make([]float32, 2)})
	})))
	if notes := strings.Join(clip.Notes, " "); !strings.Contains(notes, "the image tower is not read: its tensors are of none that is (visual.attnpool.c_proj.weight)") || !clip.Has("text/norm/weight") {
		t.Errorf("notes of CLIP with a ResNet: %s", notes)
	}
	small := open1(t, altered(func(x safetensors.Tensor) []safetensors.Tensor {
		if x.Name == "conv1.weight" {
			x.Shape, x.Data = []int{2, 3, 3, 3}, make([]float32, 54)
		}
		return []safetensors.Tensor{x}
	}))
	if s := fmt.Sprint(small.Settings()); !strings.Contains(s, "model.image.size=32") || !strings.Contains(s, "model.image.resnet.small_stem=true") || strings.Contains(s, "model.image.crop=") {
		t.Errorf("a network with the small stem has the settings %s", s)
	}
	for want, change := range map[string]func(x safetensors.Tensor) []safetensors.Tensor{
		"it has bn2.weight: a stem of several convolutions": func(x safetensors.Tensor) []safetensors.Tensor {
			second := x
			second.Name = "bn2" + strings.TrimPrefix(x.Name, "bn1")
			if strings.HasPrefix(x.Name, "bn1.") {
				return []safetensors.Tensor{x, second}
			}
			return []safetensors.Tensor{x}
		},
		"it has attnpool.c_proj.weight: a stem": func(x safetensors.Tensor) []safetensors.Tensor {
			if x.Name == "conv1.weight" {
				return []safetensors.Tensor{x, {Name: "attnpool.c_proj.weight", Shape: []int{2}, Data: make([]float32, 2)}}
			}
			return []safetensors.Tensor{x}
		},
		"its first convolution is of 5 x 5: 7 x 7 and 3 x 3 are read": func(x safetensors.Tensor) []safetensors.Tensor {
			if x.Name == "conv1.weight" {
				x.Shape, x.Data = []int{2, 3, 5, 5}, make([]float32, 150)
			}
			return []safetensors.Tensor{x}
		},
	} {
		m, err := Open(altered(change))
		if err == nil {
			m.Close()
		}
		check.Error(t, err, want)
	}
	for want, change := range map[string]func(x safetensors.Tensor) []safetensors.Tensor{
		`"rb k3 s1 e8 c32", "rb k3 s1 e8 c32", "rb k3 s1 e8 c32", "rb k3 s1 e8 c32", "rb k3 s2 e16 c64"`: func(x safetensors.Tensor) []safetensors.Tensor {
			if strings.HasPrefix(x.Name, "layer3.5.") {
				return nil
			}
			return []safetensors.Tensor{x}
		},
		`"rb k3 s1 e4 c16 g2"`: func(x safetensors.Tensor) []safetensors.Tensor {
			if x.Name == "layer2.1.conv2.weight" {
				x.Shape, x.Data = []int{4, 2, 3, 3}, make([]float32, 72)
			}
			return []safetensors.Tensor{x}
		},
	} {
		m := open1(t, altered(change))
		if s := fmt.Sprint(m.Settings()); m.Family != "resnext" || !strings.Contains(s, want) {
			t.Errorf("of family %s: %s, want %s", m.Family, s, want)
		}
	}
}

// What timm says of a network beside its tensors is heard: others compute something else with the same ones.
func TestResNetsOfTimm(t *testing.T) {
	tensors := check.Get(os.ReadFile(golden("resnet18")))(t)
	for _, c := range []struct{ architecture, more, want string }{
		{"resnet18", ``, "model.image.size=224 "},
		{"resnet18", `, "pretrained_cfg": {"input_size": [3, 160, 160]}`, "model.image.size=160 "},
		{"resnet18", `, "pretrained_cfg": {"input_size": [3, 128, 64]}`, "pretrained_cfg.input_size: images of 128 x 64 are not square"},
		{"resnetblur18", ``, `architecture = "resnetblur18" and aa_layer = resnetblur: networks that blur`},
		{"resnet18", `, "model_args": {"aa_layer": "blurpc"}`, "aa_layer = blurpc: networks that blur"},
		{"resnet18", `, "model_args": {"output_stride": 8}`, "output_stride = 8 in model_args: networks with dilation"},
		{"resnet18", `, "model_args": {"output_stride": 32, "act_layer": "relu", "global_pool": "avg"}`, "model.image.size=224 "},
		{"resnet18", `, "model_args": {"replace_stem_pool": true}`, "a convolution in the place of the pool"},
		{"resnet18", `, "model_args": {"act_layer": "silu"}`, `act_layer "silu" in model_args: the networks here have relu`},
		{"resnet18", `, "model_args": {"global_pool": "max"}`, `note: an image is pooled by "max"`},
	} {
		folder := t.TempDir()
		write(t, folder, "resnet18.pth", tensors)
		write(t, folder, "config.json", []byte(`{"architecture": "`+c.architecture+`"`+c.more+"}"))
		m, err := Open(folder)
		said := ""
		if err != nil {
			said = err.Error()
		} else {
			said = fmt.Sprint(m.Settings(), m.Report())
			m.Close()
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s%s: %s\nwant %s", c.architecture, c.more, said, c.want)
		}
	}
}
