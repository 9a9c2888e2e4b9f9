package main

import (
	"errors"
	"fmt"
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
		Short: "Make a run of weights of Hugging Face, timm, open_clip or ALBEF",
		Long: `import reads a stored model with an image and a text tower (CLIP, SigLIP, open_clip, ALBEF)
and writes a run folder, which eval, embed, search, finetune, report and inspect use like that
of any run. It prints what was read, resampled and left out. The settings of the weights are
put over those of --config, and --set over both.

A model of one tower (BERT, RoBERTa, MPNet, ViT, DeiT, DINOv2) is not a run: train from it with
init.image.path or init.text.path. --settings prints the settings of any weights as flags for
the command line. docs/weights.md lists the files that are read.

A --from that is not a file or folder is the name of a model of the Hugging Face hub, with
@REVISION or without, which is fetched into the cache that other programs have too (trainer models).`,
		Example: `  trainer import --from clip-vit-base-patch32 --out runs/clip
  trainer import --from ALBEF.pth --set data.vocab=/models/bert-base-uncased/vocab.txt --out runs/albef
  trainer import --from siglip-base-patch16-224 --dry-run --json
  trainer import --from bert-base-uncased --settings
  trainer import --from openai/clip-vit-base-patch32 --out runs/clip    # fetched from the Hugging Face hub`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dry := o.DryRun
			switch {
			case o.From == "":
				return usageError{errors.New("import needs --from: the file or folder with the weights, or a name of the hub")}
			case o.Out == "" && !dry && !settings:
				return usageError{errors.New("import needs --out: the run folder to write")}
			}
			var err error
			if o.From, err = fetched(c, o.From, out.quiet); err != nil {
				return err
			}
			o.File, o.Set, o.Log = f.file, f.sets, out.note(c)
			if settings {
				if err := apart(c, "settings", "config", "set", "seed", "out", "allow-missing", "dry-run"); err != nil {
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
	c.Flags().StringVar(&o.Out, "out", "", "run `folder` to write")
	c.Flags().BoolVar(&o.AllowMissing, "allow-missing", false,
		"parameters that the weights lack start from random numbers")
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "print what would be read and the settings, and write nothing")
	c.Flags().BoolVar(&settings, "settings", false, "print the settings of the weights as flags, and write nothing")
	return c
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
