package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/convert"
)

func newExportCommand() *cobra.Command {
	var f runFlags
	var path string
	var twin bool
	var o export.Options
	c := &cobra.Command{
		Use:   "export RUN",
		Short: "Export a model to Hugging Face, sentence-transformers, timm, open_clip, ALBEF or ONNX",
		Long: `export writes the model of a checkpoint in the form of another program. --to names it:

  geoalign    all tensors under the names of this module, config.toml, tokenizer.json
  hf          a folder for from_pretrained of transformers: CLIPModel or SiglipModel of both
              towers, and with --side image or text the class of that tower: CLIP, SigLIP,
              ViT, DeiT, DINOv2, BERT, RoBERTa, MPNet
  timm        the image tower, for timm.create_model("local-dir:DIR", pretrained=True)
  open_clip   both towers, for open_clip.create_model_from_pretrained("local-dir:DIR")
  albef       towers, fusion layers, heads, momentum encoder and queues under ALBEF's names
  sentence-transformers
              the text tower with its pool, layers, length and prompts, for SentenceTransformer
  peft        the adapters of a run with model.lora, for peft.PeftModel: of BERT, RoBERTa, MPNet
              and CLIP; --base-model names the model that it was tuned from
  onnx        image.onnx, text.onnx and dual.onnx with heads and scores, opset 17; weights of
              more than 1.5 GB lie beside them

Beside the weights lie config.json, preprocessor_config.json and the files of the tokenizer,
where the program reads them, and of hf, sentence-transformers and peft a model card (README.md)
with the numbers of the last evaluation. What the towers are decides which class fits: by which keys they
were made does not matter. A model that a form cannot hold, such as one with oblique heads in
CLIP, is refused with the key and the forms that can. Adapters (model.lora), scales
and shifts (model.tuning.ssf) are merged on the way, but for peft.

--dtype fp16 or bf16 halves the files of all forms but onnx. A number that fp16 cannot hold is
refused with the name of its tensor.

The folder is written beside --out and renamed when it is complete. Memory holds a tensor at a time.`,
		Example: `  trainer export runs/clip --to hf --out clip
  trainer export runs/albef --to hf --side text --out bert
  trainer export runs/clip --to timm --out tower
  trainer export runs/albef --to albef --out albef
  trainer export runs/minilm --to sentence-transformers --out minilm
  trainer export runs/minilm --to sentence-transformers --dtype bf16 --out minilm-bf16
  trainer export runs/adapted --to peft --base-model bert-base-uncased --out adapters
  trainer export runs/quickstart --to onnx --out onnx --momentum-encoder
  trainer export runs/quickstart --to geoalign --out plain --json`,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case path == "":
				return usageError{errors.New("export needs RUN: a run or step folder")}
			case o.To == "":
				return usageError{fmt.Errorf("export needs --to: one of %s", strings.Join(export.Forms(), ", "))}
			case !slices.Contains(export.Forms(), o.To):
				return usageError{fmt.Errorf("--to must be one of %s (got %q)", strings.Join(export.Forms(), ", "),
					o.To)}
			case !slices.Contains([]string{"", "image", "text"}, o.Side):
				return usageError{fmt.Errorf("--side must be image or text (got %q)", o.Side)}
			case !slices.Contains(export.DTypes(), o.DType):
				return usageError{fmt.Errorf("--dtype must be one of %s (got %q)", strings.Join(export.DTypes(), ", "),
					o.DType)}
			case o.Out == "":
				return usageError{errors.New("export needs --out: the folder to write")}
			}
			opening := f.opening(c)
			opening.Twin = twin
			t, err := run.Open(path, opening)
			if err != nil {
				return err
			}
			defer t.Close()
			w, err := convert.Export(t, o)
			if err != nil {
				return err
			}
			if f.output.json {
				return printJSON(c.OutOrStdout(), w)
			}
			printExport(c.OutOrStdout(), f.output.note(c), w)
			return nil
		},
	}
	f.config.add(c)
	overCheckpoint(c)
	f.output.add(c)
	takesRun(c, &path)
	c.Flags().StringVar(&o.To, "to", "", "`form`: "+strings.Join(export.Forms(), ", "))
	c.Flags().StringVar(&o.Out, "out", "", "`folder` to write, which is not there or empty")
	c.Flags().StringVar(&o.Side, "side", "", "image or text: that tower alone")
	c.Flags().StringVar(&o.DType, "dtype", "fp32", "`type` of the numbers: "+strings.Join(export.DTypes(), ", "))
	c.Flags().StringVar(&o.Base, "base-model", "", "`NAME` of the model that the run was tuned from, for adapters and the card of the model")
	c.Flags().StringVar(&o.License, "license", "", "`NAME` of the licence, such as apache-2.0, for the card of the model")
	addTwin(c, &twin)
	return c
}

// addTwin declares --momentum-encoder, and --twin, which it was called before.
func addTwin(c *cobra.Command, twin *bool) {
	c.Flags().BoolVar(twin, "momentum-encoder", false, "the momentum encoder instead of the trained parameters")
	c.Flags().BoolVar(twin, "twin", false, "see --momentum-encoder")
	_ = c.Flags().MarkHidden("twin") // there is such a flag
}

// printExport writes what was written for a person.
func printExport(w, notes io.Writer, x export.Written) {
	for _, n := range x.Notes {
		fmt.Fprintf(notes, "note: %s\n", n)
	}
	what := x.To
	if x.Class != "" {
		what += ", " + x.Class
	}
	fmt.Fprintf(w, "%s: %s of %s numbers in %s (%s)\n", what, words.Count(x.Tensors, "tensor"),
		words.Thousands(x.Numbers), x.Path, strings.Join(x.Files, ", "))
	if x.Load != "" {
		fmt.Fprintf(w, "read it with %s\n", x.Load)
	}
}
