package advicetest

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Advice is one thing that a message tells to do.
type Advice struct {
	Text string // the words of the message
	// overrides "key=value"; where the words leave the value open there are several, of which one must help
	Ways [][]string
}

// Keys is what is known of the keys of a configuration.
type Keys interface {
	// Value returns the present value of a key, and whether there is such a key.
	Value(path string) (any, bool)
	// Open returns values, as --set has them, to try where the words name a key and leave its value open, such as "set
	// KEY".
	Open(path string) []string
}

// OfProblem returns what the message and the hint about a key tell to do.
func OfProblem(k Keys, path, msg, hint string) []Advice {
	r := reader{Keys: k, path: path}
	list := r.message(msg)
	if literal.MatchString(msg) && len(list) > 0 {
		r.replaced = list[0].Ways[0][0]
	}
	return append(list, r.hint(msg, hint)...)
}

// reader reads the words about a key.
type reader struct {
	Keys
	path     string
	replaced string // the override by which the key is what it must be, where the message gives it; empty: none
}

// way is an override of the key itself.
func (r reader) way(value string) []string { return []string{r.path + "=" + value} }

const number = `-?\d+(?:\.\d+)?(?:e[+-]?\d+)?`

// bound is a number or a key whose value is one.
const bound = `(` + number + `|[a-z]+(?:\.[a-z0-9_]+)+)`

var (
	oneOf   = regexp.MustCompile(`^must be (?:empty or )?(?:one|some) of (.+)$`)
	literal = regexp.MustCompile(`^must (?:be|name the split|not be set) ?("[^"]*"|true|false|empty|off|none|` +
		number + `)(?:,| or | with| without| beside| when| for| \(|$)`)
	ranges = regexp.MustCompile(`(?:must be |be |, or |or |and |needs [^ ]+ )(>=|>|at least|at most|below|above) ` +
		bound)
	between  = regexp.MustCompile(`(?:between|lie between) ` + bound + ` and ` + bound)
	multiple = regexp.MustCompile(`^must be a multiple of (?:the number of processes, )?` + bound)
	divides  = regexp.MustCompile(`^must divide ` + bound + `(?: \((\d+)\))?`)
	needs    = regexp.MustCompile(`^needs ([a-z_.]+)(?: or ([a-z_.]+))? > 0`)
	ending   = regexp.MustCompile(`^must end in (.+)$`)
	bare     = regexp.MustCompile(`^must be ((?:[A-Za-z_]+, )*[A-Za-z_]+ or [A-Za-z_]+)(?: |,|$)`)
	anything = regexp.MustCompile(`^must (?:be a finite number|be UTF-8 text|name|have at least|not be empty|not hold)`)
)

// message reads what the key must be.
func (r reader) message(msg string) (list []Advice) {
	add := func(ways ...[]string) { list = append(list, Advice{msg, ways}) }
	if m := oneOf.FindStringSubmatch(msg); m != nil {
		for v := range strings.SplitSeq(m[1], ", ") {
			add(r.way(r.quoted(v)))
		}
		if strings.HasPrefix(msg, "must be empty or") {
			add(r.way(`""`))
		}
		return list
	}
	if m := literal.FindStringSubmatch(msg); m != nil {
		add(r.literal(m[1])...)
	}
	if m := bare.FindStringSubmatch(msg); m != nil {
		for _, word := range r.known(r.path, m[1]) {
			add(r.way(word))
		}
	}
	if m := needs.FindStringSubmatch(msg); m != nil {
		for _, key := range m[1:] {
			if key != "" {
				add([]string{key + "=1"})
			}
		}
	}
	if m := multiple.FindStringSubmatch(msg); m != nil {
		if n, ok := r.number(m[1]); ok && n > 0 {
			add(r.way(text(n)), r.way(text(2*n)), r.way(text(8*n)))
		}
	}
	if m := divides.FindStringSubmatch(msg); m != nil {
		n, ok := r.number(m[1])
		if v, err := strconv.ParseFloat(m[2], 64); err == nil {
			n, ok = v, true
		}
		if ok {
			add(r.divisors(n)...)
		}
	}
	if m := ending.FindStringSubmatch(msg); m != nil {
		for _, e := range regexp.MustCompile(`\.[a-z]+`).FindAllString(m[1], -1) {
			add(r.way(strconv.Quote("x" + e)))
		}
	}
	if len(list) == 0 {
		if ways := r.within(msg); ways != nil {
			add(ways...)
		} else if anything.MatchString(msg) {
			if v := r.Open(r.path); len(v) > 0 {
				add(r.ways(r.path, v)...)
			}
		}
	}
	return list
}

// within returns the ends of a range that the words name and what lies between, those that are outside of no other
// bound.
func (r reader) within(msg string) (ways [][]string) {
	lo, hi, openLo, openHi, found := -1e300, 1e300, false, false, false
	for _, m := range ranges.FindAllStringSubmatch(msg, -1) {
		n, ok := r.number(m[2])
		if !ok {
			return nil
		}
		found = true
		switch m[1] {
		case ">", "above":
			lo, openLo = n, true
		case ">=", "at least":
			lo = n
		case "below":
			hi, openHi = n, true
		case "at most":
			hi = n
		}
	}
	if m := between.FindStringSubmatch(msg); m != nil {
		a, okA := r.number(m[1])
		b, okB := r.number(m[2])
		if !okA || !okB {
			return nil
		}
		lo, hi, found = a, b, true
	}
	if !found {
		return nil
	}
	for _, v := range []float64{lo, hi, lo + 1, hi - 1, (lo + hi) / 2, lo + 0.5, 1, 2} {
		if v >= lo && v <= hi && !(v == lo && openLo) && !(v == hi && openHi) && v > -1e299 && v < 1e299 {
			ways = append(ways, r.way(text(v)))
		}
	}
	return ways
}

var (
	pair    = regexp.MustCompile(`([a-z]+(?:\.[a-z0-9_]+)+) = ("[^"]*"|\[[^\]]*\]|true|false|` + number + `)`)
	setTo   = regexp.MustCompile(`([a-z]+(?:\.[a-z0-9_]+)+) to (false|true|0)`)
	verb    = regexp.MustCompile(`(?:^|[ :,;(])(set|raise|lower|use|choose|write|leave|name|such as|give|add|drop) `)
	key     = regexp.MustCompile(`[a-z]+(?:\.[a-z0-9_]+)+`)
	quotes  = regexp.MustCompile(`"([^"]*)"`)
	written = regexp.MustCompile(`^(?:write|such as) (\[.*\]|"[^"]*")$`)
)

// hint reads what to do about it. Words between "or" and "or" are ways of their own; values joined by "and" or a comma
// belong together.
func (r reader) hint(msg, hint string) (list []Advice) {
	if m := written.FindStringSubmatch(hint); m != nil {
		v := m[1]
		if value, ok := r.Value(r.path); ok && strings.HasPrefix(v, `"`) &&
			strings.HasPrefix(fmt.Sprintf("%T", value), "[]") {
			v = "[" + v + "]"
		}
		return []Advice{{hint, [][]string{r.way(v)}}}
	}
	if _, systems, ok := strings.Cut(hint, " for model.system "); ok { // what the key names is for these
		for _, m := range quotes.FindAllString(systems, -1) {
			list = append(list, Advice{hint, [][]string{{"model.system=" + m}}})
		}
	}
	at := verb.FindStringIndex(hint)
	for at != nil {
		rest := strings.TrimLeft(hint[at[0]:], " :,;(")
		clause := rest
		next := verb.FindStringIndex(hint[at[1]:])
		if next != nil {
			clause = strings.TrimLeft(hint[at[0]:at[1]+next[0]], " :,;(")
			at = []int{at[1] + next[0], at[1] + next[1]}
		} else {
			at = nil
		}
		list = append(list, r.clause(msg, clause)...)
	}
	return list
}

// clause reads words that begin with a verb.
func (r reader) clause(msg, words string) (list []Advice) {
	add := func(ways ...[]string) {
		if len(ways) > 0 {
			list = append(list, Advice{words, ways})
		}
	}
	if i := strings.Index(words, "; "); i >= 0 {
		words = words[:i]
	}
	if i := strings.Index(words, ", whose "); i >= 0 { // a reason
		words = words[:i]
	}
	do, rest, _ := strings.Cut(words, " ")
	switch do {
	case "set", "write", "give", "add":
		if m := setTo.FindStringSubmatchIndex(rest); m != nil { // "A or B to false" is two ways, "A, B and C to 0" one
			named, value := rest[:m[3]], rest[m[4]:m[5]]
			var all []string
			for _, k := range r.keys(named) {
				all = append(all, k+"="+value)
			}
			if strings.Contains(named, " and ") {
				add(all)
			} else {
				for _, set := range all {
					add([]string{set})
				}
			}
			if rest = rest[m[1]:]; !strings.Contains(rest, " or ") {
				return list
			}
		}
		for part := range strings.SplitSeq(rest, " or ") {
			var together []string
			for _, m := range pair.FindAllStringSubmatch(part, -1) {
				if _, ok := r.Value(m[1]); ok {
					together = append(together, m[1]+"="+m[2])
				}
			}
			switch keys := r.keys(part); {
			case together != nil:
				add(together)
			case strings.HasPrefix(part, "one of "):
				for _, k := range keys { // leave the others out
					var others []string
					for _, o := range keys {
						if o != k {
							others = append(others, o+"=0")
						}
					}
					for _, v := range r.Open(k) {
						add(append([]string{k + "=" + v}, others...))
						break
					}
				}
			case len(keys) == 1:
				add(r.ways(keys[0], r.Open(keys[0]))...)
			}
		}
	case "raise", "lower":
		for part := range strings.SplitSeq(rest, " or ") {
			if keys := r.keys(part); len(keys) > 0 {
				add(r.steps(keys[0], do == "raise" && !strings.HasPrefix(part, "lower"))...)
			} else if strings.HasPrefix(part, "it") {
				add(r.steps(r.path, do == "raise")...)
			}
		}
	case "use":
		target := r.path
		if strings.Contains(msg+rest, "model.system") || r.ofSystem(rest) {
			target = "model.system"
		}
		if pairs := pair.FindAllStringSubmatch(rest, -1); len(pairs) > 0 {
			for _, m := range pairs {
				add([]string{m[1] + "=" + m[2]})
			}
			return list
		}
		if i := strings.Index(rest, " with "); i >= 0 {
			rest = rest[:i]
		}
		if i := strings.Index(rest, " over "); i >= 0 {
			rest = rest[:i]
		}
		for _, m := range quotes.FindAllStringSubmatch(rest, -1) {
			add([]string{target + "=" + m[0]})
		}
		if len(list) == 0 {
			for _, word := range r.known(r.path, rest) {
				add(r.way(word))
			}
		}
		if len(list) == 0 {
			for _, k := range r.keys(rest) {
				if k == r.path || r.replaced == "" {
					continue
				}
				var ways [][]string // instead of the key, which is what it must be
				for _, v := range r.Open(k) {
					ways = append(ways, []string{r.replaced, k + "=" + v})
				}
				add(ways...)
			}
		}
	case "choose":
		if strings.HasPrefix(rest, "another") {
			target := r.path
			if keys := r.keys(rest); len(keys) > 0 {
				target = keys[0]
			}
			add(r.ways(target, r.Open(target))...)
		}
	case "leave":
		if keys := r.keys(rest); len(keys) > 0 {
			for _, k := range keys {
				add([]string{k + "="}) // the default: Load of the test leaves it out
			}
		}
	case "name":
		if keys := r.keys(rest); len(keys) == 1 {
			add(r.ways(keys[0], r.Open(keys[0]))...)
		}
	}
	return list
}

// known returns those words of a list such as "inner, l2 or gssf" that the key takes, quoted.
func (r reader) known(key, list string) (words []string) {
	open := r.Open(key)
	for _, w := range regexp.MustCompile(`[A-Za-z_0-9]+`).FindAllString(list, -1) {
		if q := strconv.Quote(w); slices.Contains(open, q) {
			words = append(words, q)
		}
	}
	return words
}

// ofSystem says whether the words name systems: a quoted word that model.system takes and the key does not.
func (r reader) ofSystem(words string) bool {
	m := quotes.FindStringSubmatch(words)
	if m == nil {
		return false
	}
	for _, s := range r.Open("model.system") {
		if s == m[0] {
			return r.path != "data.kind"
		}
	}
	return false
}

// keys returns the keys of the configuration that the words name.
func (r reader) keys(words string) (list []string) {
	for _, k := range key.FindAllString(words, -1) {
		if _, ok := r.Value(k); ok {
			list = append(list, k)
		}
	}
	return list
}

func (r reader) ways(key string, values []string) (ways [][]string) {
	for _, v := range values {
		ways = append(ways, []string{key + "=" + v})
	}
	return ways
}

// steps raises or lowers a number until it is far away.
func (r reader) steps(key string, up bool) (ways [][]string) {
	n, ok := r.number(key)
	if !ok {
		return nil
	}
	for range 40 {
		if up {
			n = max(2*n, 1)
		} else if n /= 2; n >= 1 {
			n = math.Trunc(n)
		}
		ways = append(ways, []string{key + "=" + text(n)})
	}
	if !up {
		ways = append(ways, []string{key + "=0"})
	}
	return ways
}

func (r reader) divisors(n float64) (ways [][]string) {
	for d := 1; d <= int(n) && d <= 4096; d++ {
		if int(n)%d == 0 {
			ways = append(ways, r.way(strconv.Itoa(d)))
		}
	}
	return ways
}

// literal is a value that the words give: off and empty are the zero of the key.
func (r reader) literal(v string) [][]string {
	value, _ := r.Value(r.path)
	zero := map[string]string{"string": `""`, "bool": "false", "int": "0", "float64": "0",
		"uint64": "0"}[fmt.Sprintf("%T", value)]
	if zero == "" {
		zero = "[]"
	}
	switch v {
	case "off", "empty":
		return [][]string{r.way(zero)}
	case "none":
		return [][]string{r.way(map[bool]string{true: `"none"`, false: zero}[zero == `""`])}
	}
	return [][]string{r.way(v)}
}

// quoted is a bare word as the key takes it.
func (r reader) quoted(word string) string {
	value, _ := r.Value(r.path)
	if strings.HasPrefix(fmt.Sprintf("%T", value), "[]") {
		return "[" + strconv.Quote(word) + "]"
	}
	return strconv.Quote(word)
}

// number is a number or the value of a key.
func (r reader) number(s string) (float64, bool) {
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return v, true
	}
	v, ok := r.Value(s)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	return n, err == nil
}

// text writes whole numbers as integers, which some keys must have.
func text(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
