package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitter appends the parts of s to out that the model reads one by one. first says that s begins
// the text.
type splitter func(out []string, s string, first bool) []string

// splitterFile is a pre_tokenizer of a tokenizer.json, with the fields of all types.
type splitterFile struct {
	Type        string            `json:"type"`
	Splitters   []json.RawMessage `json:"pretokenizers"`     // Sequence
	PrefixSpace bool              `json:"add_prefix_space"`  // ByteLevel, Metaspace of old files
	UseRegex    *bool             `json:"use_regex"`         // ByteLevel
	Pattern     *pattern          `json:"pattern"`           // Split
	Behavior    string            `json:"behavior"`          // Split, Punctuation
	Invert      bool              `json:"invert"`            // Split
	Individual  bool              `json:"individual_digits"` // Digits
	Replacement string            `json:"replacement"`       // Metaspace
	Prepend     string            `json:"prepend_scheme"`    // Metaspace
	Split       *bool             `json:"split"`             // Metaspace
	Delimiter   string            `json:"delimiter"`         // CharDelimiterSplit
	Length      int               `json:"length"`            // FixedLength
}

// newSplitter reads a pre_tokenizer; nil where there is none.
func newSplitter(raw json.RawMessage, depth int) (splitter, error) {
	var f splitterFile
	if none(raw) {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("tokenizer: pre_tokenizer: %w", err)
	}
	switch f.Type {
	case "BertPreTokenizer":
		return func(out []string, s string, _ bool) []string {
			for w := range bertWords(s) {
				out = append(out, w)
			}
			return out
		}, nil
	case nltkType:
		return nltkWords, nil
	case "ByteLevel":
		return f.byteLevel(), nil
	case "Metaspace":
		return f.metaspace()
	case "Split":
		if f.Pattern == nil {
			return nil, fmt.Errorf("tokenizer: pre_tokenizer Split has no pattern")
		}
		if p := clipSplitter(f); p != nil {
			return p, nil
		}
		matches, err := f.Pattern.matches()
		if err != nil {
			return nil, err
		}
		if f.Pattern.Regex == "" && f.Pattern.String == "" {
			return nil, fmt.Errorf("tokenizer: pre_tokenizer Split has an empty pattern")
		}
		return newCut(f.Behavior, f.Invert, matches)
	case "Whitespace":
		return func(out []string, s string, _ bool) []string { return appendRuns(out, s) }, nil
	case "CharDelimiterSplit":
		return newCut("Removed", false, each(func(r rune) bool { return string(r) == f.Delimiter }))
	case "FixedLength":
		if f.Length < 1 {
			return nil, fmt.Errorf("tokenizer: pre_tokenizer FixedLength: length must be > 0 (got %d)", f.Length)
		}
		return f.fixed, nil
	case "WhitespaceSplit":
		return newCut("Removed", false, each(unicode.IsSpace))
	case "Punctuation":
		if f.Behavior == "" {
			f.Behavior = "Isolated"
		}
		return newCut(f.Behavior, false, each(punctuation))
	case "Digits":
		if f.Individual {
			return newCut("Isolated", false, each(unicode.IsNumber))
		}
		return newCut("Contiguous", false, each(unicode.IsNumber))
	case "Sequence":
		return f.sequence(depth)
	}
	return nil, fmt.Errorf("tokenizer: pre_tokenizer %q is not known", f.Type)
}

func (f splitterFile) sequence(depth int) (splitter, error) {
	if depth >= maxNesting {
		return nil, fmt.Errorf("tokenizer: pre_tokenizer: sequences lie in each other more than %d deep", maxNesting)
	}
	var steps []splitter
	if err := firstSteps(f.Splitters); err != nil {
		return nil, err
	}
	for _, raw := range f.Splitters {
		p, err := newSplitter(raw, depth+1)
		if err != nil {
			return nil, err
		}
		if p != nil {
			steps = append(steps, p)
		}
	}
	if len(steps) == 1 {
		return steps[0], nil
	}
	return func(out []string, s string, first bool) []string {
		parts := []string{s}
		for _, p := range steps {
			var next []string
			most := room(s)
			for i, x := range parts {
				if most -= len(x); most < 0 { // what the steps before wrote, as ByteLevel does
					break
				}
				next = p(next, x, first && i == 0 && (len(x) == len(s) || strings.HasPrefix(s, x)))
			}
			parts = next
		}
		return append(out, parts...)
	}, nil
}

// fixed cuts into parts of so many characters.
func (f splitterFile) fixed(out []string, s string, _ bool) []string {
	start, n := 0, 0
	for i := range s {
		if n == f.Length {
			out, start, n = append(out, s[start:i]), i, 0
		}
		n++
	}
	if s != "" {
		out = append(out, s[start:])
	}
	return out
}

// firstSteps returns an error where a step that writes text anew stands before a Metaspace that marks the first word of
// a text: to Hugging Face's tokenizers every piece that is written of the first character begins the text.
func firstSteps(steps []json.RawMessage) error {
	written := ""
	for _, raw := range steps {
		var f splitterFile
		if none(raw) || json.Unmarshal(raw, &f) != nil {
			continue // newSplitter says it
		}
		if f.Type == "Metaspace" && f.Prepend == "first" && written != "" {
			return fmt.Errorf("tokenizer: pre_tokenizer: Metaspace with prepend_scheme first stands behind %s: put it before, or set the scheme to always or never", written)
		}
		if f.Type == "Metaspace" || f.Type == "ByteLevel" {
			written = f.Type
		}
	}
	return nil
}

// byteLevel splits as GPT-2 does and writes every byte as a character.
func (f splitterFile) byteLevel() splitter {
	split := f.UseRegex == nil || *f.UseRegex
	return func(out []string, s string, _ bool) []string {
		if s == "" {
			return out
		}
		if f.PrefixSpace && s[0] != ' ' {
			s = " " + s
		}
		if !split {
			return append(out, toByteLevel(s))
		}
		for s != "" {
			n := gpt2Word(s)
			out = append(out, toByteLevel(s[:n]))
			s = s[n:]
		}
		return out
	}
}

// metaspace writes a mark for every space, and before the text.
func (f splitterFile) metaspace() (splitter, error) {
	mark, _ := utf8.DecodeRuneInString(f.Replacement)
	if f.Replacement == "" || len(f.Replacement) != utf8.RuneLen(mark) {
		return nil, fmt.Errorf("tokenizer: pre_tokenizer Metaspace: replacement must be one character (got %q)",
			f.Replacement)
	}
	switch {
	case f.Prepend == "" && f.PrefixSpace:
		f.Prepend = "always"
	case f.Prepend == "":
		f.Prepend = "never"
	case f.Prepend != "always" && f.Prepend != "never" && f.Prepend != "first":
		return nil, fmt.Errorf("tokenizer: pre_tokenizer Metaspace: prepend_scheme must be always, never or first (got %q)", f.Prepend)
	}
	cut, err := newCut("MergedWithNext", false, each(func(r rune) bool { return r == mark }))
	if err != nil {
		return nil, err
	}
	return func(out []string, s string, first bool) []string {
		if s == "" {
			return out
		}
		s = strings.ReplaceAll(s, " ", f.Replacement)
		if (f.Prepend == "always" || f.Prepend == "first" && first) && !strings.HasPrefix(s, f.Replacement) {
			s = f.Replacement + s
		}
		if f.Split != nil && !*f.Split {
			return append(out, s)
		}
		return cut(out, s, first)
	}, nil
}

// appendRuns appends the runs of characters of words, and of others that are not white space.
func appendRuns(out []string, s string) []string {
	class := func(r rune) int {
		switch {
		case wordRune(r):
			return 1
		case unicode.IsSpace(r):
			return 0
		}
		return 2
	}
	start, last := 0, 0
	for i, r := range s {
		if c := class(r); c != last {
			if last > 0 {
				out = append(out, s[start:i])
			}
			start, last = i, c
		}
	}
	if last > 0 {
		out = append(out, s[start:])
	}
	return out
}

// each finds the characters of a class, one by one.
func each(is func(rune) bool) func(s string) [][]int {
	return func(s string) (found [][]int) {
		for i, r := range s {
			if is(r) {
				found = append(found, []int{i, i + utf8.RuneLen(r)})
			}
		}
		return found
	}
}

// newCut returns what cuts at the matches of find, whose places rise and which may be empty; with invert at what lies
// between them. The behaviours are those of Hugging Face tokenizers.
func newCut(behavior string, invert bool, find func(s string) [][]int) (splitter, error) {
	type part struct {
		from, to int
		match    bool
	}
	parts := func(s string) (all []part) {
		end := 0
		add := func(from, to int, match bool) {
			if from < to || match {
				all = append(all, part{from, to, match != invert})
			}
		}
		for _, m := range find(s) {
			add(end, m[0], false)
			add(m[0], m[1], true)
			end = m[1]
		}
		add(end, len(s), false)
		return all
	}
	var join func(all []part) []part // in place
	switch behavior {
	case "Removed":
		join = func(all []part) []part {
			kept := all[:0]
			for _, p := range all {
				if !p.match {
					kept = append(kept, p)
				}
			}
			return kept
		}
	case "Isolated":
		join = func(all []part) []part { return all }
	case "Contiguous":
		join = func(all []part) []part {
			kept := all[:0]
			for _, p := range all {
				if n := len(kept); n > 0 && kept[n-1].match == p.match {
					kept[n-1].to = p.to
				} else {
					kept = append(kept, p)
				}
			}
			return kept
		}
	case "MergedWithPrevious":
		join = func(all []part) []part {
			kept, after := all[:0], false
			for _, p := range all {
				if n := len(kept); p.match && !after && n > 0 {
					kept[n-1].to = p.to
				} else {
					kept = append(kept, p)
				}
				after = p.match
			}
			return kept
		}
	case "MergedWithNext":
		join = func(all []part) []part {
			kept, before := len(all), false
			for i := len(all) - 1; i >= 0; i-- {
				p := all[i]
				if p.match && !before && kept < len(all) {
					all[kept].from = p.from
				} else {
					kept--
					all[kept] = p
				}
				before = p.match
			}
			return all[kept:]
		}
	default:
		return nil, fmt.Errorf("tokenizer: pre_tokenizer: behavior %q is not known", behavior)
	}
	return func(out []string, s string, _ bool) []string {
		for _, p := range join(parts(s)) {
			if p.from < p.to {
				out = append(out, s[p.from:p.to])
			}
		}
		return out
	}, nil
}
