package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/licenses"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Say which build this is",
		Long:    `version says the version, the commit and the version of Go of this build; trainer doctor says what it computes with.`,
		Example: `  trainer version`,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "trainer", version())
			return err
		},
	}
}

// version describes the build: module version, revision and Go version.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown build)"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12 && !strings.Contains(v, s.Value[:12]):
			v += " " + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true" && !strings.Contains(v, "dirty"):
			v += " modified"
		}
	}
	return strings.TrimSpace(v + " " + info.GoVersion)
}

func newLicensesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "licenses",
		Short: "Print the licences of this program and of the modules in it",
		Long: `licenses prints under which terms geoalign is used (Apache License 2.0) and the terms of
every module that this program is built from, each text once below the modules that are under it.`,
		Example: `  trainer licenses | less`,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), "geoalign\nCopyright 2026 The geoalign authors\n\nLicensed under the Apache License, Version 2.0, "+
				"http://www.apache.org/licenses/LICENSE-2.0\n\nIt contains the following modules.\n\n"+licenses.ThirdParty)
			return err
		},
	}
}
