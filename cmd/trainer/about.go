package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/licenses"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this build",
		Long:    `version prints the version, commit and Go version of this build. trainer doctor shows what it computes with.`,
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
		Short: "Print the licences of this program and its modules",
		Long: `licenses prints the licence of geoalign (Apache License 2.0) and of every module in this program;
modules with the same text are listed together.`,
		Example: `  trainer licenses | less`,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), "geoalign\nCopyright 2026 The geoalign authors\n\nLicensed under the Apache License, Version 2.0, "+
				"http://www.apache.org/licenses/LICENSE-2.0\n\nIt contains the following modules.\n\n"+licenses.ThirdParty)
			return err
		},
	}
}

//go:generate go run . reference ../../docs/commands.md

// newReferenceCommand writes the page of all commands, of what --help prints.
func newReferenceCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "reference FILE",
		Short:   "Write the help of all commands as one page",
		Long:    `reference writes the --help of all commands to one Markdown file, docs/commands.md.`,
		Example: `  trainer reference commands.md`,
		Args:    cobra.ExactArgs(1),
		Hidden:  true,
		RunE: func(c *cobra.Command, args []string) error {
			var list, pages strings.Builder
			var visit func(c *cobra.Command)
			visit = func(c *cobra.Command) {
				if c.Hidden || c.Name() == "help" {
					return
				}
				name := c.CommandPath()
				if !c.HasSubCommands() || c.HasParent() {
					fmt.Fprintf(&list, "| [`%s`](#%s) | %s |\n", name, strings.ReplaceAll(name, " ", "-"), c.Short)
					fmt.Fprintf(&pages, "\n## %s\n\n```\n%s\n\n%s\n```\n", name, c.Long,
						strings.TrimSpace(c.UsageString()))
				}
				for _, sub := range c.Commands() {
					visit(sub)
				}
			}
			visit(c.Root())
			page := "# Commands\n\nWhat `trainer COMMAND --help` prints. `go generate ./cmd/trainer` writes this page.\n\n" +
				"| command | what it does |\n|---|---|\n" +
				list.String() + pages.String()
			return os.WriteFile(args[0], []byte(page), 0o666)
		},
	}
}
