package main

import (
	"context"
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
		newFeaturesCommand(),
		newPreviewCommand(),
		newStatsCommand(),
	)
}

var errEmpty = errors.New("it is empty")

// loadToUse is load for what does not train, such as a look at the data: a look at pairs of sentences, or at samples of
// downstream tasks, needs no system and no loss that trains on them.
func (f *configFlags) loadToUse(c *cobra.Command, extra ...string) (config.Config, error) {
	cfg, err := f.load(c, extra...)
	if problems := (config.Errors)(nil); errors.As(err, &problems) {
		err = problems.Using()
	}
	return cfg, err
}

// checkSplit refuses a split that does not exist.
func checkSplit(split string) error {
	if slices.Contains(source.Splits, split) {
		return nil
	}
	return usageError{fmt.Errorf("--split must be one of %s (got %q)", strings.Join(source.Splits, ", "), split)}
}

// checkFinite refuses what is not a split and the endless one.
func checkFinite(cfg config.Config, split string) error {
	if err := checkSplit(split); err != nil {
		return err
	}
	if cfg.Data.Drawn() && split == "train" {
		return usageError{errors.New("the train split of the scenes is endless: choose val or test")}
	}
	return nil
}

// namedSplit is a split with its name.
type namedSplit struct {
	name string
	ds   data.Dataset
}

// finiteSplits names the split that is asked for, or, for "all", every split that the
// configuration has, train first. The endless train stream of the scenes is not a
// finite data set and is left out.
func finiteSplits(cfg config.Config, split string) ([]string, error) {
	if split == "all" {
		return source.Finite(cfg.Source())
	}
	return []string{split}, checkFinite(cfg, split)
}

// openSplits opens the finiteSplits.
func openSplits(ctx context.Context, cfg config.Config, split string, o source.Options) ([]namedSplit, error) {
	names, err := finiteSplits(cfg, split)
	if err != nil {
		return nil, err
	}
	var list []namedSplit
	for _, name := range names {
		ds, err := source.Split(ctx, cfg.Source(), name, o)
		if err != nil {
			return nil, err
		}
		list = append(list, namedSplit{name, ds})
	}
	return list, nil
}
