package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/advicetest"
)

// followed is the share of the advices of failed command lines that is followed: each takes a run of the command.
var followed = flag.Int("follow", 8, "follow one of so many advices of the command lines that fail in tests; 1: all, 0: none")

// followedAdvices counts them.
var followedAdvices atomic.Int64

// checkAdvice looks at the error of a command line: what it names must be there, and what it tells to do must help.
// Every test of a command line that fails comes here.
func checkAdvice(t *testing.T, args []string, stderr string) {
	t.Helper()
	for line := range strings.Lines(stderr) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "trainer: ")
		checkNamed(t, args, line)
		for i, c := range changes(line, filepath.Join(t.TempDir(), "elsewhere")) {
			key := fmt.Sprint(withoutPlaces(strings.Join(args, " ")), withoutPlaces(line), i)
			if *followed > 0 && crc32.ChecksumIEEE([]byte(key))%uint32(*followed) == 0 {
				followChange(t, args, line, c)
			}
		}
	}
}

// changes are what a line of an error tells to do with the command line.
func changes(line, elsewhere string) []advicetest.Change {
	list := advicetest.OfCommand(defaults{}, line, elsewhere)
	for _, a := range advicetest.Sets(defaults{}, line) {
		if len(a.Ways) == 1 { // the words give the value
			c := advicetest.Change{Text: line}
			for _, s := range a.Ways[0] {
				c.Add = append(c.Add, "--set", s)
			}
			list = append(list, c)
		}
	}
	return list
}

// defaults is the keys of the default configuration; open values are tried in the tests of package config.
type defaults struct{}

func (defaults) Value(path string) (any, bool) {
	c := config.Default()
	return c.Get(path)
}
func (defaults) Open(string) []string { return nil }

// checkNamed fails for a flag, key, command or page that a line names and that is not there. A flag must be one of
// the command that failed, or of one that the line names.
func checkNamed(t *testing.T, args []string, line string) {
	t.Helper()
	if strings.Contains(line, "unknown flag") || strings.Contains(line, "unknown key") || strings.Contains(line, "unknown shorthand") {
		return
	}
	n := advicetest.NamesOf(line)
	commands := []*cobra.Command{commandOf(args)}
	for _, words := range n.Commands {
		c := commandOf(words)
		if c.Name() == "trainer" {
			t.Errorf("%q: there is no command %q: %s", args, words, line)
		}
		commands = append(commands, c)
	}
	for _, name := range n.Flags {
		if !slices.ContainsFunc(commands, func(c *cobra.Command) bool { return name == "help" || c.Flags().Lookup(name) != nil }) {
			t.Errorf("%q: %s has no flag --%s: %s", args, commands[0].CommandPath(), name, line)
		}
	}
	for _, page := range n.Docs {
		if _, err := os.Stat(filepath.Join(repository, page)); err != nil {
			t.Errorf("%q: there is no %s: %s", args, page, line)
		}
	}
}

// repository is the root of the source tree, whatever folder a test is in.
var repository = func() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
}()

// commandOf returns the command of some arguments.
func commandOf(args []string) *cobra.Command {
	var started bool
	root := newRoot(&started)
	var words []string
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			break
		}
		words = append(words, a)
	}
	c, _, err := root.Find(words)
	for err != nil && len(words) > 0 {
		words = words[:len(words)-1]
		c, _, err = root.Find(words)
	}
	return c
}

var (
	testFolder = regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/Test[^/ "']+/\d{3}`)
	anyNumber  = regexp.MustCompile(`\d+`)
)

// withoutPlaces is a text without what differs from run to run.
func withoutPlaces(s string) string {
	return anyNumber.ReplaceAllString(testFolder.ReplaceAllString(s, "DIR"), "N")
}

// followChange runs the changed command line on copies of the folders that it names. The error must not be the same
// again.
func followChange(t *testing.T, args []string, line string, c advicetest.Change) {
	t.Helper()
	if slices.Contains(args, "--ranks") || c.Text == "" {
		return
	}
	changed := slices.Clone(args)
	if word, ok := c.Bare(); ok {
		i := slices.Index(changed, word)
		if i < 0 {
			return
		}
		if i > 0 && changed[i-1] == "--set" {
			changed = slices.Delete(changed, i-1, i)
			i--
		}
		changed = append(slices.Delete(changed, i, i+1), c.Add...)
	} else {
		command := commandOf(args)
		changed = c.Apply(changed, func(name string) bool {
			f := command.Flags().Lookup(name)
			return f != nil && f.NoOptDefVal != ""
		})
	}
	copied := map[string]string{}
	for i, a := range changed {
		changed[i] = testFolder.ReplaceAllStringFunc(a, func(dir string) string {
			if copied[dir] == "" {
				copied[dir] = filepath.Join(t.TempDir(), "copy")
				if err := os.CopyFS(copied[dir], os.DirFS(dir)); err != nil {
					copied[dir] = dir // what cannot be read cannot be spoiled
				}
			}
			return copied[dir]
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if args[0] == "serve" {
		time.AfterFunc(time.Second, cancel)
	}
	var stdout, stderr bytes.Buffer
	code := execute(ctx, changed, &stdout, &stderr)
	followedAdvices.Add(1)
	if code == exitDone {
		return
	}
	for now := range strings.Lines(stderr.String()) {
		now = strings.TrimPrefix(strings.TrimSpace(now), "trainer: ")
		for dir, copy := range copied {
			now = strings.ReplaceAll(now, copy, dir)
		}
		if withoutPlaces(now) == withoutPlaces(line) {
			t.Errorf("%q: %s\n  what it tells does not help: %q", args, line, changed)
		}
	}
}
