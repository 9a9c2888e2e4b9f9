package main

import (
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shelves are the groups of commands in the order of the help of the program.
var shelves = []struct {
	title    string
	commands []string
}{
	{"Train", []string{"configs", "init", "validate", "train", "finetune", "ablate", "average", "merge"}},
	{"Evaluate and understand", []string{"eval", "report", "explain", "inspect"}},
	{"Embed and search", []string{"photos", "embed", "search", "serve", "gallery"}},
	{"Models of other programs", []string{"import", "export", "models"}},
	{"Data and features", []string{"data", "regions", "align-forecast"}},
	{"This program", []string{"doctor", "bench", "version", "licenses", "help"}},
}

// meant are words that people try for a command.
var meant = map[string][]string{
	"eval":     {"evaluate", "test", "score"},
	"train":    {"fit", "run", "pretrain"},
	"finetune": {"fine-tune", "tune"},
	"embed":    {"encode", "features", "index"},
	"search":   {"query", "find"},
	"validate": {"check", "lint"},
	"inspect":  {"show", "info", "verify"},
	"report":   {"plot", "curves"},
	"doctor":   {"env", "system"},
}

// arrange puts the commands into groups, and says flags of yes or no by their name alone.
func arrange(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.SuggestFor = meant[c.Name()]
		for _, s := range shelves {
			if slices.Contains(s.commands, c.Name()) {
				c.GroupID = s.title
			}
		}
	}
	for _, s := range shelves {
		root.AddGroup(&cobra.Group{ID: s.title, Title: s.title + ":"})
	}
	addFlagUsages()
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(),
		".FlagUsages | trimTrailingWhitespaces", " | flagUsages | trimTrailingWhitespaces"))
}

// addFlagUsages is called once: cobra has one table of such functions for all roots.
var addFlagUsages = sync.OnceFunc(func() { cobra.AddTemplateFunc("flagUsages", flagUsages) })

// flagUsages is what pflag says of flags, but for the values of those of yes or no.
func flagUsages(flags *pflag.FlagSet) string {
	const values = "[=true|false]"
	return strings.ReplaceAll(flags.FlagUsages(), values, strings.Repeat(" ", len(values)))
}
