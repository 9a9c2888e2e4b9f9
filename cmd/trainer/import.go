package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/run/convert"
)

func newImportCommand() *cobra.Command {
	var f configFlags
	var out outputFlags
	var o convert.ImportOptions
	var settings bool
	c := &cobra.Command{
		Use:   "import",
		Short: "Import a model of Hugging Face, timm, open_clip, clip-mtob or ALBEF as a run",
		Long: `import reads a stored model and writes a run folder, which eval, embed, search, serve, finetune,
report, inspect and export use like that of any run: a model with an image and a text tower (CLIP,
SigLIP, open_clip, clip-mtob, ALBEF), or one encoder (BERT, RoBERTa, MPNet, ViT, DeiT, DINOv2, ResNet, a folder
of sentence-transformers with its pooling, Dense layers, length and prompts). It prints what was
read, resampled and left out. The settings of the weights are put over those of --config, and --set
over both.

One encoder is used as it is. A run trains from it with init.text.path, init.image.path or
init.checkpoint. --settings prints the settings of the towers of any weights as flags for the command
line. docs/families.md lists the files that are read.

A --from that is not a file or folder is the name of a model of the Hugging Face hub, with
@REVISION or without, which is fetched into the cache that other programs have too (trainer models).`,
		Example: `  trainer import --from clip-vit-base-patch32 --out runs/clip
  trainer import --from sentence-transformers/all-MiniLM-L6-v2    # fetched from the hub, to runs/all-MiniLM-L6-v2
  trainer import --from bert-base-uncased --adapter adapters --out runs/adapted
  trainer import --from ALBEF.pth --set data.vocab=/models/bert-base-uncased/vocab.txt --out runs/albef
  trainer import --from siglip-base-patch16-224 --dry-run --json
  trainer import --from bert-base-uncased --settings`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dry := o.DryRun
			switch {
			case o.From == "":
				return usageError{errors.New("import needs --from: the file or folder with the weights, or a name of the hub")}
			}
			var err error
			name := o.From
			if o.From, err = fetched(c, "from", o.From, out.quiet); err != nil {
				return err
			}
			if o.Out == "" && !dry {
				o.Out = filepath.Join("runs", runName(name))
			}
			o.File, o.Set, o.Log = f.file, f.sets, out.note(c)
			if settings {
				if err := apart(c, "settings", "config", "set", "seed", "out", "allow-missing", "dry-run", "adapter"); err != nil {
					return err
				}
				return printSettings(c, o, out.json)
			}
			r, err := convert.Import(c.Context(), o)
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if out.json {
				return printJSON(w, r)
			}
			fmt.Fprintln(w, r)
			switch {
			case dry:
				fmt.Fprintf(w, "settings:\n  %s\n", strings.Join(r.Settings, "\n  "))
			default:
				fmt.Fprintf(w, "run folder: %s\n", r.Path)
			}
			return nil
		},
	}
	f.add(c)
	out.add(c)
	c.Flags().StringVar(&o.From, "from", "", "`PATH` of a file, an index of shards or a folder with weights, or a name of the hub")
	c.Flags().StringVar(&o.Family, "family", "",
		"`NAME` of the family of the weights, where they look like another one")
	c.Flags().StringVar(&o.Adapter, "adapter", "", "`folder` of PEFT with adapters of the weights (LoRA), which are merged into them")
	c.Flags().StringVar(&o.Out, "out", "", "run `folder` to write (default runs/NAME, after --from)")
	c.Flags().BoolVar(&o.AllowMissing, "allow-missing", false,
		"parameters that the weights lack start from random numbers")
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "print what would be read and the settings, and write nothing")
	c.Flags().BoolVar(&settings, "settings", false, "print the settings of the weights as flags, and write nothing")
	return c
}

// runName is the name of the run of weights: that of their folder or model, or of their file without its ending.
func runName(from string) string {
	from, _, _ = strings.Cut(from, "@")
	base := filepath.Base(filepath.Clean(from))
	if st, err := os.Stat(from); err == nil && !st.IsDir() {
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return base
}

// printSettings prints the settings of weights as flags, one a line, and beside them what was assumed.
func printSettings(c *cobra.Command, o convert.ImportOptions, asJSON bool) error {
	list, err := convert.WeightSettings(o.From, o.Family)
	if err != nil {
		return err
	}
	w := c.OutOrStdout()
	if asJSON {
		return printJSON(w, map[string][]string{"settings": list.Settings, "flags": list.Flags, "notes": list.Notes})
	}
	tell(o.Log, list.Notes)
	fmt.Fprintln(w, strings.Join(list.Flags, " \\\n"))
	return nil
}
