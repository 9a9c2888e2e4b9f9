package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func newDataCommand() *cobra.Command {
	return groupCommand("data", "Look at the data of a run before training on it",
		`  trainer data preview --config configs/quickstart.toml --out sheet.png`,
		newPreviewCommand(),
	)
}

var (
	errEmpty   = errors.New("it is empty")
	splitNames = []string{"train", "val", "test"}
)

// checkSplit refuses a split that does not exist.
func checkSplit(split string) error {
	if slices.Contains(splitNames, split) {
		return nil
	}
	return usageError{fmt.Errorf("--split must be one of %s (got %q)", strings.Join(splitNames, ", "), split)}
}
