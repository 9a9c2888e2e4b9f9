package export

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// card adds the README.md by which the Hugging Face hub and readers know a model: what it is, how it is used, and what
// the run has measured.
func (x *job) card() {
	name := filepath.Base(filepath.Clean(x.Out))
	library, pipeline := "transformers", x.pipeline()
	tags := []string{"geoalign"}
	switch x.To {
	case Sentence:
		library, tags = "sentence-transformers", append(tags, "sentence-transformers", "feature-extraction")
	case PEFT:
		library, tags = "peft", append(tags, "lora")
	}
	var b strings.Builder
	b.WriteString("---\n")
	field := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, strconv.Quote(value)) // which YAML reads too
		}
	}
	field("library_name", library)
	field("pipeline_tag", pipeline)
	b.WriteString("tags:\n")
	for _, tag := range tags {
		fmt.Fprintf(&b, "- %s\n", tag)
	}
	field("base_model", x.Base)
	field("license", x.License)
	fmt.Fprintf(&b, "---\n\n# %s\n\n%s Written by geoalign.\n\n## Usage\n\n```python\n%s```\n", name, x.about(), x.usage(name))
	if len(x.Metrics) > 0 {
		b.WriteString("\n## Results\n\nOf the last evaluation of the run:\n\n| metric | value |\n|---|---|\n")
		for _, key := range slices.Sorted(maps.Keys(x.Metrics)) {
			fmt.Fprintf(&b, "| %s | %.4g |\n", strings.TrimPrefix(key, "eval/"), x.Metrics[key])
		}
	}
	x.text("README.md", []byte(b.String()))
}

// pipeline is the task that the hub lists a model under.
func (x *job) pipeline() string {
	switch {
	case x.To == Sentence:
		return "sentence-similarity"
	case x.class == "CLIPModel", x.class == "SiglipModel":
		return "zero-shot-image-classification"
	case strings.HasSuffix(x.class, "ForMaskedLM"):
		return "fill-mask"
	case x.Side == "image":
		return "image-feature-extraction"
	}
	return "feature-extraction"
}

// about is a sentence about a model.
func (x *job) about() string {
	switch {
	case x.To == Sentence:
		return fmt.Sprintf("It makes a vector of %d numbers of a text of up to %d tokens.", x.sides.Text.Head.Dimension(), x.Config.Data.Tokens)
	case x.To == PEFT:
		return fmt.Sprintf("Adapters of rank %d for a %s of transformers.", x.Config.Model.LoRA.Rank, x.class)
	}
	return fmt.Sprintf("A %s of transformers with %s parameters.", x.class, words.Thousands(x.size))
}

// usage is a program of Python that loads a model of a name.
func (x *job) usage(name string) string {
	switch x.To {
	case Sentence:
		return fmt.Sprintf(`from sentence_transformers import SentenceTransformer

model = SentenceTransformer(%q)
vectors = model.encode(["a dog on a beach", "a puppy near the sea"])
print(model.similarity(vectors, vectors))
`, name)
	case PEFT:
		base := "BASE" // of which nobody has said the name
		if x.Base != "" {
			base = x.Base
		}
		return fmt.Sprintf("import peft\nimport transformers\n\nbase = transformers.%s.from_pretrained(%q)\nmodel = peft.PeftModel.from_pretrained(base, %q)\n",
			x.class, base, name)
	}
	text := fmt.Sprintf("import transformers\n\nmodel = transformers.%s.from_pretrained(%q)\n", x.class, name)
	for _, part := range []struct{ file, name, class string }{{"tokenizer.json", "tokenizer", "AutoTokenizer"}, {"preprocessor_config.json", "processor", "AutoImageProcessor"}} {
		if x.files[part.file] != nil {
			text += fmt.Sprintf("%s = transformers.%s.from_pretrained(%q)\n", part.name, part.class, name)
		}
	}
	return text
}
