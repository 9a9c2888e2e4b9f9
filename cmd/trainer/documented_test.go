package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/internal/check"
)

// TestDocumentedCommands: every command line of the pages, of the shipped configurations and of the help is one that
// this program takes: its command, its flags, the keys of --set and the files of the repository that it names are
// there.
func TestDocumentedCommands(t *testing.T) {
	texts := map[string]string{}
	for _, root := range []string{"README.md", "docs", "configs"} {
		err := filepath.WalkDir(filepath.Join(repository, root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains([]string{".md", ".toml"}, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			texts[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var started bool
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		texts[c.CommandPath()+" --help"] = c.Long + "\n" + c.Example
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(&started))
	lines := 0
	for place, text := range texts {
		for _, line := range commandLines(text) {
			lines++
			checkCommandLine(t, place, line)
		}
	}
	t.Logf("%d command lines of %d texts", lines, len(texts))
	if lines < 300 {
		t.Errorf("%d command lines alone", lines)
	}
}

var (
	commandStart = regexp.MustCompile(`(?m)^(?:[#\s$]*)(?:[A-Z_]+=\S+ )*(?:bin/)?trainer ([a-z].*)$`)
	inlineStart  = regexp.MustCompile("`(?:bin/)?trainer ([a-z][^`]* --[^`]*)`")
)

// commandLines returns the arguments of the command lines of a text, those that go on in the next line put together.
func commandLines(text string) (list []string) {
	text = regexp.MustCompile(`\$\(.*\)`).ReplaceAllString(text, "") // a command within a command
	text = regexp.MustCompile(`\\\n[#\s]*`).ReplaceAllString(text, " ")
	for _, m := range commandStart.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	for _, m := range inlineStart.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.Join(strings.Fields(m[1]), " "))
	}
	return list
}

// words splits a command line as a shell does, up to a comment, a pipe or a second command.
func shellWords(line string) (words []string) {
	word, quote, some := "", rune(0), false
	end := func() {
		if some {
			words = append(words, word)
		}
		word, some = "", false
	}
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word += string(r)
			}
		case r == '\'' || r == '"':
			quote, some = r, true
		case r == ' ' || r == '\t':
			end()
			if strings.HasPrefix(line[i:], "   ") { // a column with an explanation
				return words
			}
		case !some && strings.ContainsRune("#|&;>", r):
			return words
		default:
			word, some = word+string(r), true
		}
	}
	end()
	return words
}

// checkCommandLine fails for what this program would refuse before it looks at any file.
func checkCommandLine(t *testing.T, place, line string) {
	t.Helper()
	args := shellWords(line)
	c := commandOf(args)
	if c.Name() == "trainer" {
		if len(args) > 1 && strings.HasPrefix(args[1], "--") { // else a sentence that begins with the name
			t.Errorf("%s: trainer %s: there is no such command", place, line)
		}
		return
	}
	for i, a := range args {
		name, value, joined := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		if !strings.HasPrefix(a, "--") || strings.ToLower(name) != name {
			continue
		}
		name = strings.TrimRight(name, ".,;:)")
		f := c.Flags().Lookup(name)
		if f == nil {
			f = c.InheritedFlags().Lookup(name)
		}
		if f == nil {
			if name != "help" {
				t.Errorf("%s: trainer %s: %s has no flag --%s", place, line, c.CommandPath(), name)
			}
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch name {
		case "set":
			if key, _, ok := strings.Cut(value, "="); ok && strings.Contains(key, ".") && strings.ToLower(key) == key && !slices.Contains(config.Paths(), key) && key != "train.bach_size" { // the README's mistake
				t.Errorf("%s: trainer %s: there is no key %s", place, line, key)
			}
		case "config":
			if strings.HasPrefix(value, "configs/") {
				if _, err := os.Stat(filepath.Join(repository, value)); err != nil {
					t.Errorf("%s: trainer %s: %v", place, line, err)
				}
			}
		}
	}
}

// TestProposedQueries: the words of the queries that texts propose for the built-in scenes are words of their captions.
func TestProposedQueries(t *testing.T) {
	known := map[string]bool{"a": true}
	for s := range scenes.Shape(8) {
		known[s.String()] = true
	}
	for c := range scenes.Colour(8) {
		known[c.String()] = true
	}
	for _, w := range []string{scenes.Small.String(), scenes.Big.String(), "at", "the", "in", "on", "and", "top", "left", "right", "bottom", "centre"} {
		known[w] = true
	}
	shapes := regexp.MustCompile(`"((?:a|one|two) [a-z ]*(?:circle|square|triangle|star|cross|ring|heart|diamond)[a-z ]*)"`)
	found := 0
	for _, path := range []string{"README.md", "docs/start.md", "Makefile", "serve/page/index.html", "cmd/trainer/search.go", "docs/gera.md", "docs/serve.md"} {
		text := check.Get(os.ReadFile(filepath.Join(repository, path)))(t)
		for _, m := range shapes.FindAllStringSubmatch(string(text), -1) {
			found++
			for _, w := range strings.Fields(m[1]) {
				if !known[w] {
					t.Errorf("%s proposes %q: no caption of the scenes has the word %q", path, m[1], w)
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("%d queries alone", found)
	}
}

// TestDocumentedLinks: every link of the pages to a file of the repository, or to a heading, leads there.
func TestDocumentedLinks(t *testing.T) {
	fence := regexp.MustCompile("(?ms)^```.*?^```$")
	heading := regexp.MustCompile(`(?m)^#+ +(.*)$`)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pages := check.Get(filepath.Glob(filepath.Join(repository, "docs", "*.md")))(t)
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bench/peer/README.md", "tools/cudaemu/README.md"} {
		pages = append(pages, filepath.Join(repository, name))
	}
	texts, anchors := map[string]string{}, map[string]map[string]bool{}
	for _, page := range pages {
		text := fence.ReplaceAllString(string(check.Get(os.ReadFile(page))(t)), "")
		texts[page], anchors[page] = text, map[string]bool{}
		for _, m := range heading.FindAllStringSubmatch(text, -1) {
			anchors[page][anchor(m[1])] = true
		}
	}
	links := 0
	for page, text := range texts {
		for _, m := range link.FindAllStringSubmatch(regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "`"), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, place, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
			} else if has, known := anchors[target]; known && place != "" && !has[place] {
				t.Errorf("%s: %s: no such heading", page, m[1])
			}
		}
	}
	if links < 300 {
		t.Errorf("%d links alone", links)
	}
}

// anchor is how a heading is linked to: in small letters, with dashes for spaces, without punctuation.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

// TestDocumentedPapers: what a row of docs/papers.md names is there: its keys, its files, and the tests and cases of
// make parity that judge it. A row without any of the latter says that something is missing or links to a page.
func TestDocumentedPapers(t *testing.T) {
	tests := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	})
	check.OK(t, err)
	parity := string(check.Get(os.ReadFile(filepath.Join(repository, "docs", "interop.md")))(t))
	page := string(check.Get(os.ReadFile(filepath.Join(repository, "docs", "papers.md")))(t))
	named := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[0], "-") || strings.TrimSpace(cells[0]) == "where" {
			continue
		}
		rows++
		names := func(cell int) (list []string) {
			for _, m := range named.FindAllStringSubmatch(cells[cell], -1) {
				list = append(list, m[1])
			}
			return list
		}
		for _, key := range names(2) {
			if !slices.Contains(config.Paths(), key) && !strings.HasPrefix(key, "trainer ") {
				t.Errorf("%sthere is no key %s", line, key)
			}
		}
		if len(names(2)) == 0 && !strings.HasPrefix(strings.TrimSpace(cells[2]), "none: ") {
			t.Errorf("%sneither a key nor why there is none", line)
		}
		files := names(3)
		for _, file := range files {
			if _, err := os.Stat(filepath.Join(repository, file)); err != nil {
				t.Errorf("%s%v", line, err)
			}
		}
		judges := names(4)
		for _, judge := range judges {
			if !tests[judge] && !strings.Contains(parity, "\n| "+judge+", ") {
				t.Errorf("%s%s is neither a test nor a case of parity", line, judge)
			}
		}
		if len(files) == 0 || len(judges) == 0 && !regexp.MustCompile(`missing: |\]\(`).MatchString(cells[4]) {
			t.Errorf("%sno file, or nothing judges it", line)
		}
	}
	if rows < 90 {
		t.Errorf("%d rows alone", rows)
	}
}
