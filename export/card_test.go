package export_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/export/exporttest"
	"github.com/geoalign/geoalign/internal/check"
)

// The card of a model says what it is, how it is loaded under the name of its folder, and what was measured; forms without
// a place on the hub have none.
func TestCard(t *testing.T) {
	for _, c := range []struct {
		name string
		o    export.Options
		want []string
	}{
		{"vit_bert", export.Options{To: export.Sentence, Base: "some/base", License: "apache-2.0"}, []string{
			"---\nlibrary_name: \"sentence-transformers\"\npipeline_tag: \"sentence-similarity\"\ntags:\n- geoalign\n- sentence-transformers\n",
			"base_model: \"some/base\"\nlicense: \"apache-2.0\"\n---\n\n# out\n\nIt makes a vector of 8 numbers of a text of up to 6 tokens.",
			`model = SentenceTransformer("out")`, "| retrieval/i2t_r1 | 61.25 |"}},
		{"clip", export.Options{To: export.HF}, []string{"pipeline_tag: \"zero-shot-image-classification\"",
			`model = transformers.CLIPModel.from_pretrained("out")`, `tokenizer = transformers.AutoTokenizer.from_pretrained("out")`, "processor = "}},
		{"vit_bert", export.Options{To: export.HF, Side: "image"}, []string{"pipeline_tag: \"image-feature-extraction\"", "A ViTModel of transformers with "}},
		{"vit_bert", export.Options{To: export.HF, Side: "text"}, []string{"pipeline_tag: \"feature-extraction\"", "BertModel"}},
		{"vit_bert", export.Options{To: export.PEFT, Side: "text"}, []string{"library_name: \"peft\"", "- lora\n---", `base = transformers.BertModel.from_pretrained("BASE")`}},
		{"clip", export.Options{To: export.Timm}, nil},
	} {
		x := exporttest.New(t, exporttest.Find(t, c.name, "model.lora.rank=2"))
		if c.o.To != export.PEFT {
			x.Model = withoutAdapters(t, x.Model)
		}
		x.Metrics = map[string]float64{"eval/retrieval/i2t_r1": 61.251}
		w := written(t, x, c.o)
		text, err := os.ReadFile(filepath.Join(w.Path, "README.md"))
		if c.want == nil {
			if err == nil {
				t.Errorf("%s has a card", c.o.To)
			}
			continue
		}
		check.OK(t, err)
		for _, want := range c.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s to %s: no %q in\n%s", c.name, c.o.To, want, text)
			}
		}
	}
}
