package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/weights"
	"github.com/geoalign/geoalign/weights/hub"
)

// fetched returns where the weights are that --from names: a file or folder that is there, else the folder of a model of
// the Hugging Face hub, which is fetched if it is not in the cache.
func fetched(c *cobra.Command, flag, from string, quiet bool) (string, error) {
	_, missing := os.Stat(from)
	if missing == nil || isPath(from) {
		return from, nil
	}
	if _, err := hub.Parse(from); err != nil {
		return "", usageError{fmt.Errorf("--%s: there is no file or folder %q, and %w", flag, from, err)}
	}
	client, err := hub.FromEnvironment()
	if err != nil {
		return "", err
	}
	bar := newPhaseBar(c.ErrOrStderr(), quiet)
	defer bar.done()
	client.Progress = func(file string, done, size int64) {
		const unit = 1 << 20
		bar.show(file+" (MiB)", int(done/unit), int(max(size, unit)/unit))
	}
	dir, err := client.Fetch(c.Context(), from, weights.Wanted)
	if err != nil {
		return "", fmt.Errorf("there is no file or folder %q here: %w", from, err)
	}
	return dir, nil
}

// isPath says whether what is not there can only be a file or folder.
func isPath(from string) bool {
	ends := []string{".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".json", ".gguf"}
	return strings.HasPrefix(from, ".") || filepath.IsAbs(from) || slices.Contains(ends, filepath.Ext(from))
}

func newModelsCommand() *cobra.Command {
	var out outputFlags
	c := &cobra.Command{
		Use:   "models",
		Short: "List the Hugging Face models on this machine",
		Long: `models lists the cache of models of the Hugging Face hub, which other programs share: what
import --from NAME needs no network for. A name is ORGANISATION/NAME, with @REVISION (a branch, tag
or commit) or without. --update has the next import of a model look for a newer commit.

HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE and HTTPS_PROXY are heard as in
huggingface_hub. The families of models that are read are in docs/families.md.`,
		Example: `  trainer models
  trainer models --json | jq -r '.[].repo'
  trainer import --from openai/clip-vit-base-patch32 --out runs/clip    # fetches what is not there yet
  trainer models --update openai/clip-vit-base-patch32`,
		Args: noArgs,
	}
	var update string
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := hub.FromEnvironment()
		if err != nil {
			return err
		}
		if c.Flags().Changed("update") {
			if update == "" {
				return usageError{errors.New("--update: want the name of a model (got \"\")")}
			}
			return client.Update(update)
		}
		models, err := client.Models()
		if err != nil {
			return err
		}
		w := c.OutOrStdout()
		if out.json {
			return printJSON(w, slices.Concat([]hub.Model{}, models))
		}
		if len(models) == 0 {
			fmt.Fprintf(w, "no models in %s: import --from NAME fetches one\n", client.Cache)
			return nil
		}
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "model\trevisions\tMB\tfiles")
		for _, m := range models {
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\n", m.Repo, strings.Join(m.Revisions, ", "),
				words.Thousands(int(m.Bytes/1e6)), len(m.Files))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(w, "in %s\n", client.Cache)
		return nil
	}
	out.add(c)
	c.Flags().StringVar(&update, "update", "", "`NAME` of a model whose branch is looked up anew by the next import")
	return c
}
