package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/propose"
)

func newInitCommand() *cobra.Command {
	var out, base string
	var output outputFlags
	c := &cobra.Command{
		Use:   "init DATA",
		Short: "Write a configuration for your images and captions",
		Long: `init looks at a table (.csv, .tsv, .parquet), a list (.json, .token), shards (.tar), or a folder with
one of these, and writes the configuration that trains on it: kind, columns, where the images
lie, how it is divided, and how many tokens a caption has. All of it is commented, to be changed.

It is written over a built-in configuration (--base), a small model from random weights that two
processors train. With few pairs a pretrained model is the better start: init prints the command.`,
		Example: `  trainer init photos/captions.csv --out my.toml
  trainer init /data/flickr30k > my.toml
  trainer init shards --base geomm-clip --out my.toml`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := propose.Look(args[0])
			if err != nil {
				return err
			}
			text, err := proposal(c, p, base, output)
			if err != nil {
				return err
			}
			if output.json {
				return printJSON(c.OutOrStdout(), struct {
					*propose.Proposal
					Config string `json:"config"`
				}{p, text})
			}
			if out == "" {
				_, err = c.OutOrStdout().Write([]byte(text))
			} else if _, missing := os.Lstat(out); !errors.Is(missing, fs.ErrNotExist) {
				return usageError{fmt.Errorf("--out: %s is there already: choose another name", out)}
			} else {
				err = files.Replace(out, []byte(text))
			}
			if err != nil {
				return err
			}
			file := cmp.Or(out, "my.toml")
			note := output.note(c)
			for _, n := range p.Notes {
				fmt.Fprintf(note, "note: %s\n", n)
			}
			fmt.Fprintf(note, "next: trainer data check --config %s, trainer data preview --config %s --out sheet.png, "+
				"trainer train --config %s\n", file, file, file)
			fmt.Fprintf(note, "or from a pretrained model: trainer import --from openai/clip-vit-base-patch32 --out runs/clip, then\n"+
				"  trainer finetune --checkpoint runs/clip --out runs/mine --set optimizer.lr=1e-5 --max-steps 1000 \\\n    --set '%s'\n", strings.Join(p.Sets(), "' --set '"))
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "`file` to write; without it the configuration is printed")
	c.Flags().StringVar(&base, "base", "photos", "`name` of the built-in configuration that it is written over, or a file")
	output.add(c)
	return c
}

// proposal is the text of the configuration, once the data could be read by it.
func proposal(c *cobra.Command, p *propose.Proposal, base string, output outputFlags) (string, error) {
	cfg, err := config.Load(base, append(p.Sets(), "train.eval_every_steps=0"))
	if err != nil {
		return "", err
	}
	r, err := shown(c, output, func(ctx context.Context, progress func(phase string, done, of int)) (*statsReport, error) {
		return statistics(ctx, cfg, "train", progress)
	})
	if err != nil {
		return "", fmt.Errorf("the data are of kind %s, and cannot be read so: %w", p.Kind, err)
	}
	s := r.Splits[0]
	tokens, fits := fitting(s.Histogram, cfg.Model.Text.Positions)
	header := []string{
		fmt.Sprintf("Written by trainer init on %s for %s: %s with %s in the split train,",
			time.Now().Format(time.DateOnly), p.Of,
			words.Count(s.Images, "image"), words.Count(s.Captions, "caption")),
		fmt.Sprintf("which have %d words as a rule and %d at most.", s.WordLengths.P50, s.WordLengths.Max),
	}
	return p.Text(base, header, tokens, fits), nil
}

// share is that of captions that are read whole.
const share = 0.99

// fitting is the number of tokens that most captions have, at most the positions of the text tower.
func fitting(histogram []int, positions int) (tokens int, fits string) {
	all := 0
	for _, n := range histogram {
		all += n
	}
	whole := 0
	for tokens < len(histogram)-1 && float64(whole) < share*float64(all) && tokens < positions {
		tokens++
		whole += histogram[tokens]
	}
	return tokens, fmt.Sprintf("which %.3g %% of the captions do not exceed", 100*float64(whole)/float64(max(all, 1)))
}
