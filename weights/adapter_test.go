package weights

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// Adapters that are not understood as a whole, or are of other weights, are one error that says which.
func TestAdapterRefused(t *testing.T) {
	base := filepath.Join("testdata", "bert")
	const module = "base_model.model.encoder.layer.0.attention.self.query"
	m := check.Get(Open(base))(t)
	width := m.Shape("text/layers/00/attention/output/weight")[0]
	check.OK(t, m.Close())
	tensor := func(name string, shape ...int) safetensors.Tensor {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return safetensors.Tensor{Name: name, Shape: shape, Data: make([]float32, n)}
	}
	a, b := tensor(module+".lora_A.weight", 2, width), tensor(module+".lora_B.weight", width, 2)
	const plain = `{"peft_type": "LORA", "r": 2, "lora_alpha": 4}`
	for _, c := range []struct {
		config  string
		tensors []safetensors.Tensor
		want    string
	}{
		{"", nil, "adapter_config.json: file does not exist: give the folder that PEFT has saved an adapter in"},
		{`{"peft_type": "IA3"}`, nil, `has peft_type = "IA3", and plain adapters of low rank`},
		{`{"peft_type": "LORA", "use_dora": true}`, nil, "has use_dora = true"},
		{`{"peft_type": "LORA", "r": "two"}`, nil, "adapter_config.json"},
		{plain, nil, "has adapter_config.json and neither of adapter_model.safetensors, adapter_model.bin"},
		{plain, []safetensors.Tensor{a}, "has one of lora_A.weight and lora_B.weight alone"},
		{plain, []safetensors.Tensor{a, tensor(module+".lora_B.weight", width, 3)}, "is it an adapter of these weights?"},
		{plain, []safetensors.Tensor{a, b, tensor(module+".lora_magnitude_vector", width)}, "lora_magnitude_vector, and lora_A.weight and lora_B.weight of linear layers are read"},
		{`{"peft_type": "LORA", "base_model_name_or_path": "some/gpt"}`, []safetensors.Tensor{tensor("base_model.model.h.0.attn.lora_A.weight", 2, 3), tensor("base_model.model.h.0.attn.lora_B.weight", 3, 2)},
			"has 0 tensors of that name: is it an adapter of these weights, of some/gpt?"},
		{plain, []safetensors.Tensor{a, b, tensor("base_model.model.embeddings.LayerNorm.bias", width+1)}, "embeddings.LayerNorm.bias of shape"},
	} {
		dir := t.TempDir()
		if c.config != "" {
			check.OK(t, os.WriteFile(filepath.Join(dir, AdapterConfig), []byte(c.config), 0o666))
		}
		if c.tensors != nil {
			check.OK(t, files.ReplaceFrom(filepath.Join(dir, "adapter_model.safetensors"), func(w io.Writer) error { return safetensors.Write(w, c.tensors, nil) }))
		}
		_, err := OpenAdapted(base, "", dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant %s", c.config, err, c.want)
		}
	}
}

// Of a matrix with an adapter any elements can be read: what is added is that of their rows, wherever a piece begins and ends.
func TestAdapterInPieces(t *testing.T) {
	const rows, columns, rank = 5, 4, 2
	x := lowRank{down: make([]float32, rank*columns), up: make([]float32, rows*rank), rank: rank, scale: 0.5}
	for i := range x.down {
		x.down[i] = float32(i*i%7) - 3
	}
	for i := range x.up {
		x.up[i] = float32(i*i%5) - 2
	}
	for from := range rows * columns {
		for end := from; end <= rows*columns; end++ {
			got := make([]float32, end-from)
			x.add(got, from, columns)
			for i, v := range got {
				row, column, want := (from+i)/columns, (from+i)%columns, float32(0)
				for k := range rank {
					want += 0.5 * x.up[row*rank+k] * x.down[k*columns+column]
				}
				if v != want {
					t.Fatalf("elements %d to %d: element %d is %v, want %v", from, end, from+i, v, want)
				}
			}
		}
	}
}
