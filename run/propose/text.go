package propose

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Sets are the keys as overrides of a command line.
func (p *Proposal) Sets() []string {
	sets := []string{"data.kind=" + strconv.Quote(p.Kind), "data.root=" + strconv.Quote(filepath.ToSlash(p.Root))}
	for _, k := range p.Keys {
		sets = append(sets, "data."+k.Name+"="+k.Value)
	}
	return sets
}

// Has says whether a split of a name is there, besides training.
func (p *Proposal) Has(split string) bool {
	return p.Kind == "karpathy" || slices.ContainsFunc(p.Keys, func(k Key) bool {
		_, name, _ := strings.Cut(k.Name, ".")
		return name == split || strings.HasPrefix(name, split+"_")
	})
}

// Name is what a run over the data may be called: the file, or its folder where any data's is called so.
func (p *Proposal) Name() string {
	abs, err := filepath.Abs(p.Of)
	if err != nil {
		abs = p.Of
	}
	name, _, _ := strings.Cut(filepath.Base(abs), ".")
	for _, usual := range []string{"train", "captions", "metadata", "data", "index", "results"} {
		if strings.HasPrefix(strings.ToLower(name), usual) && filepath.Base(filepath.Dir(abs)) != "" {
			return filepath.Base(filepath.Dir(abs))
		}
	}
	return name
}

// Text is a configuration: what was found, over a shipped configuration of a model. Lines of comments come first;
// tokens of a caption are read (0: as many as base says), which fits gives the reason for.
func (p *Proposal) Text(base string, header []string, tokens int, fits string) string {
	var b strings.Builder
	for _, line := range header {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	fmt.Fprintf(&b, "\nbase = %q # a built-in configuration: trainer configs %s prints it\n\n[run]\nname = %q\n\n[data]\nkind = %q\nroot = %q # from where the command runs; images and lists are named from here\n",
		base, base, p.Name(), p.Kind, filepath.ToSlash(p.Root))
	if tokens > 0 {
		fmt.Fprintf(&b, "tokens = %d # %s\n", tokens, fits)
	}
	section := ""
	for _, k := range p.Keys {
		of, key, _ := strings.Cut(k.Name, ".")
		if of != section {
			fmt.Fprintf(&b, "\n[data.%s]\n", of)
			section = of
		}
		fmt.Fprintf(&b, "%s = %s", key, k.Value)
		if k.Why != "" {
			fmt.Fprintf(&b, " # %s", strings.Map(func(r rune) rune {
				if r < ' ' {
					return ' '
				}
				return r
			}, k.Why))
		}
		b.WriteString("\n")
	}
	switch {
	case p.Has("val"):
	case p.Has("test"):
		b.WriteString("\n[eval]\nsplit = \"test\" # there is no split val\n")
	default:
		b.WriteString("\n[train]\neval_every_steps = 0 # there is no split to evaluate\n")
	}
	return b.String()
}
