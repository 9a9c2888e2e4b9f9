// Command gen writes third_party.txt: the licences of all modules that trainer is built from, on any system.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// systems are those whose modules are collected.
var systems = []string{"linux", "darwin", "windows"}

// names are those of files with terms, whatever stands behind them.
var names = []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS", "THIRD_PARTY_LICENSES"}

func main() {
	modules := map[string]string{"Go and its standard library": output("go", "env", "GOROOT")}
	for _, system := range systems {
		list := exec.Command("go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "github.com/geoalign/geoalign/cmd/trainer")
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		list.Stderr = os.Stderr
		out, err := list.Output()
		if err != nil {
			log.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				modules[name] = dir
			}
		}
	}
	under := map[string][]string{} // text -> modules
	for name, dir := range modules {
		entries, err := os.ReadDir(dir)
		if err != nil {
			log.Fatal(err)
		}
		var terms []string
		for _, e := range entries {
			if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(e.Name(), n) }) || e.IsDir() {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				log.Fatal(err)
			}
			terms = append(terms, plain(string(text)))
		}
		if len(terms) == 0 {
			log.Fatalf("%s has no file with its licence", name)
		}
		text := strings.Join(terms, "\n\n")
		under[text] = append(under[text], name)
	}
	var parts []string
	for text, list := range under {
		slices.Sort(list)
		parts = append(parts, strings.Join(list, "\n")+"\n\n"+text+"\n")
	}
	slices.Sort(parts)
	rule := "\n" + strings.Repeat("=", 80) + "\n\n"
	if err := os.WriteFile("third_party.txt", []byte(strings.Join(parts, rule)), 0o644); err != nil {
		log.Fatal(err)
	}
}

// plain is a text with the line ends of Unix and no blanks around it.
func plain(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// output is what a command prints, without the end of the line.
func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		log.Fatal(fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err))
	}
	return strings.TrimSpace(string(out))
}
