package main

import (
	"github.com/spf13/cobra"
)

func newDataCommand() *cobra.Command {
	return groupCommand("data", "Look at the data of a run before training on it",
		`  trainer data stats --config configs/quickstart.toml
  trainer data check --config my.toml
  trainer data preview --config my.toml --out sheet.png`,
	)
}
