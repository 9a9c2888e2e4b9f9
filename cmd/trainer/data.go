package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
)

func newDataCommand() *cobra.Command {
	return groupCommand("data", "Look at the data of a run before training on it",
		`  trainer data stats --config configs/flickr8k.toml --set data.root=/data/flickr8k
  trainer data check --config my.toml
  trainer data preview --config configs/quickstart.toml --out sheet.png
  trainer data bench --config my.toml --steps 10`,
		newDataBenchCommand(),
		newCheckCommand(),
		newPreviewCommand(),
		newStatsCommand(),
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

// checkFinite refuses what is no split and the endless one.
func checkFinite(cfg config.Config, split string) error {
	if err := checkSplit(split); err != nil {
		return err
	}
	if cfg.Data.Kind == "scenes" && split == "train" {
		return usageError{errors.New("the train split of the scenes is endless: choose val or test")}
	}
	return nil
}

// namedSplit is a split with its name.
type namedSplit struct {
	name string
	ds   data.Dataset
}

// openSplits returns the split that is asked for, or, for "all", every split that
// the configuration has, train first. The endless train stream of the scenes is
// not a finite data set and is left out.
func openSplits(cfg config.Config, split string) ([]namedSplit, error) {
	names := []string{split}
	if split == "all" {
		names = splitsOf(cfg.Data)
	} else if err := checkFinite(cfg, split); err != nil {
		return nil, err
	}
	var list []namedSplit
	for _, name := range names {
		ds, err := source.Split(cfg, name)
		if err != nil {
			return nil, err
		}
		list = append(list, namedSplit{name, ds})
	}
	return list, nil
}

// splitsOf lists the finite splits that a configuration names.
func splitsOf(d config.Data) []string {
	switch d.Kind {
	case "scenes":
		return []string{"val", "test"}
	case "captions":
		var list []string
		for i, files := range [][]string{d.TrainFiles, d.ValFiles, d.TestFiles} {
			if len(files) > 0 {
				list = append(list, splitNames[i])
			}
		}
		return list
	case "folder":
		if list, err := data.FolderSplits(d.Root); err == nil {
			return list
		}
		return splitNames // opening one of them says what is wrong
	default:
		return splitNames
	}
}
