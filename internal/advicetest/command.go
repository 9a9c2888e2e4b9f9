package advicetest

import (
	"regexp"
	"slices"
	"strings"
)

// Change is what a message about a command line tells to do with it: flags with their values to leave out, then
// arguments to add.
type Change struct {
	Text string
	Drop []string // names of flags without their dashes
	Add  []string
}

// Apply returns the arguments after the change. boolean says of a flag that it has no value.
func (c Change) Apply(args []string, boolean func(flag string) bool) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		if strings.HasPrefix(args[i], "--") && slices.Contains(c.Drop, name) {
			if !joined && !boolean(name) {
				i++
			}
			continue
		}
		out = append(out, args[i])
	}
	return append(out, c.Add...)
}

const flagName = `--([a-z][a-z0-9-]*)`

var (
	apart     = regexp.MustCompile(`^` + flagName + ` and ` + flagName + ` do not go together: leave one out`)
	leaveOut  = regexp.MustCompile(`leave out ((?:--[a-z-]+(?:, | and )?)+)`)
	leaveIt   = regexp.MustCompile(`^` + flagName + `\b.*: leave it out$`)
	leaveFlag = regexp.MustCompile(`leave ` + flagName + ` out`)
	flagRange = regexp.MustCompile(`^` + flagName + ` must be (.*?)(?: \(got|, |: |$)`)
	flagWords = regexp.MustCompile(`^` + flagName + ` must be (?:one of )?([a-z]+(?:, [a-z]+)*(?: or [a-z]+)?) \(got`)
	anotherTo = regexp.MustCompile(`(?:another folder|another file)[^:;]*with --out`)
	withFlag  = regexp.MustCompile(`(?:with|add|use|by) ` + flagName + ` ([a-z0-9][a-z0-9._]*)(?:$|[,;:. )])`)
	addFlag   = regexp.MustCompile(`: add ` + flagName + ` `)
	meant     = regexp.MustCompile(`^--set ([^=]+)=([^:]*): .*unknown key; did you mean ([a-z0-9_.]+)\?`)
	meantFlag = regexp.MustCompile(`did you mean (--(?:config|set) [^?]+)\?`)
)

// OfCommand returns the changes of a command line that an error tells to make; errors of configuration give theirs by
// OfProblem. Words in capitals, such as FOLDER, stand for what only the reader knows, and give none.
func OfCommand(k Keys, msg, newFolder string) (list []Change) {
	add := func(drop []string, args ...string) { list = append(list, Change{msg, drop, args}) }
	if m := apart.FindStringSubmatch(msg); m != nil {
		add(m[1:2])
		add(m[2:3])
	}
	if m := leaveOut.FindStringSubmatch(msg); m != nil {
		var names []string
		for _, f := range regexp.MustCompile(flagName).FindAllStringSubmatch(m[1], -1) {
			names = append(names, f[1])
		}
		add(names)
	}
	if m := leaveIt.FindStringSubmatch(msg); m != nil {
		add(m[1:2])
	}
	if m := leaveFlag.FindStringSubmatch(msg); m != nil {
		add(m[1:2])
	}
	if m := flagWords.FindStringSubmatch(msg); m != nil {
		for _, w := range regexp.MustCompile(`[a-z]+`).FindAllString(m[2], -1) {
			if w != "or" {
				add(m[1:2], "--"+m[1], w)
			}
		}
	} else if m := flagRange.FindStringSubmatch(msg); m != nil {
		r := reader{Keys: k, path: m[1]}
		for _, way := range r.within("must be " + m[2]) {
			_, v, _ := strings.Cut(way[0], "=")
			add(m[1:2], "--"+m[1]+"="+v)
			break
		}
	}
	if anotherTo.MatchString(msg) {
		add([]string{"out"}, "--out", newFolder)
	}
	for _, m := range withFlag.FindAllStringSubmatch(msg, -1) {
		if slices.Contains([]string{"instead", "in", "or", "and", "to", "for", "which"}, m[2]) { // of the sentence
			continue
		}
		add([]string{m[1]}, "--"+m[1], m[2])
	}
	if m := addFlag.FindStringSubmatch(msg); m != nil {
		add(nil, "--"+m[1])
	}
	if m := meantFlag.FindStringSubmatch(msg); m != nil {
		flag, value, _ := strings.Cut(m[1], " ")
		// instead of the bare word
		list = append(list, Change{msg, []string{"\x00" + value}, []string{flag, value}})
	}
	if m := meant.FindStringSubmatch(msg); m != nil {
		list = append(list, Change{msg, []string{"\x00" + m[1] + "=" + m[2]}, []string{"--set", m[3] + "=" + m[2]}})
	}
	return list
}

// Bare is Apply where a Change replaces a word that is not a flag.
func (c Change) Bare() (word string, ok bool) {
	if len(c.Drop) == 1 && strings.HasPrefix(c.Drop[0], "\x00") {
		return c.Drop[0][1:], true
	}
	return "", false
}

// Sets are the overrides that the words of an error tell to give, each as OfProblem has them of a hint.
func Sets(k Keys, msg string) (list []Advice) {
	_, hint, found := strings.Cut(msg, ": ")
	if !found {
		return nil
	}
	return slices.DeleteFunc(reader{Keys: k}.hint("", hint), func(a Advice) bool {
		return slices.ContainsFunc(a.Ways, func(w []string) bool {
			return slices.ContainsFunc(w, func(s string) bool {
				return strings.HasPrefix(s, "=") ||
					strings.HasSuffix(s, "=")
			})
		})
	})
}

// Named is what a message names that must be there.
type Named struct {
	Flags    []string // without dashes
	Keys     []string
	Docs     []string
	Commands [][]string // the words behind "trainer", such as data stats
}

var (
	anyFlag    = regexp.MustCompile(`(?:^|[ (,])` + flagName + `\b`)
	docs       = regexp.MustCompile(`\bdocs/[a-z0-9_-]+\.md\b`)
	commandRef = regexp.MustCompile(`\btrainer ((?:[a-z][a-z_-]* ?)+)`)
)

// NamesOf returns what a message names.
func NamesOf(msg string) (n Named) {
	for _, m := range anyFlag.FindAllStringSubmatch(msg, -1) {
		n.Flags = append(n.Flags, m[1])
	}
	n.Docs = docs.FindAllString(msg, -1)
	for _, m := range commandRef.FindAllStringSubmatch(msg, -1) {
		n.Commands = append(n.Commands, strings.Fields(m[1]))
	}
	n.Keys = regexp.MustCompile(`\b(?:run|data|model|momentum|queue|objective|optimizer|schedule|train|eval|compute|init|parallel)(?:\.[a-z0-9_]+)+`).FindAllString(msg, -1)
	return n
}
