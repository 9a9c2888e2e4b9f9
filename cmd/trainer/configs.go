package main

import (
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/configs"
)

// errNoConfig is what train says without a configuration.
var errNoConfig = usageError{errors.New("train needs a configuration: give a TOML file, or one of the built-in " +
	"configurations, as in --config quickstart; trainer configs lists them")}

func newConfigsCommand() *cobra.Command {
	var out outputFlags
	c := &cobra.Command{
		Use:   "configs [NAME]",
		Short: "List the built-in configurations, or print one",
		Long: `configs lists the configurations built into the program. --config takes their names wherever it
takes a file, and so does base = "NAME" in a file of your own, which then only has what differs.

With a NAME it prints that configuration, as the start of a file of your own.`,
		Example: `  trainer configs
  trainer configs flickr8k > photos.toml
  trainer train --config quickstart`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			w := c.OutOrStdout()
			if len(args) == 1 {
				text, err := configs.Copy(args[0])
				if errors.Is(err, fs.ErrNotExist) {
					return usageError{fmt.Errorf("there is no built-in configuration %q: trainer configs lists them",
						args[0])}
				}
				if err == nil {
					_, err = w.Write(text)
				}
				return err
			}
			if out.json {
				return printJSON(w, configs.List())
			}
			table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			for _, s := range configs.List() {
				fmt.Fprintf(table, "%s\t%s\n", s.Name, s.Summary)
			}
			return table.Flush()
		},
	}
	out.add(c)
	return c
}
