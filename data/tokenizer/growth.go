package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/geoalign/geoalign/internal/words"
)

// Rules of a tokenizer.json may make a text longer, and feed each other: 30 that replace a by aa make a billion
// characters of one. So a text may become this many times as long, and this many bytes longer; the end of a longer one
// is cut. Ligatures and accents taken apart become three times as long at most in a text of a kilobyte.
const (
	growthFactor = 8
	growthFree   = 64 << 10
)

// mostSteps is how many steps the sequences of a file may have in all; those of models have thirty at most.
const mostSteps = 256

// longestToken and longestPattern are the lengths in bytes of what a text is searched for at each of its places.
const (
	longestToken   = 1024
	longestPattern = 4096
)

// room is how long a text may become.
func room(s string) int { return growthFactor*len(s) + growthFree }

// text is the normalised text, cut where it grew too long.
func (n normalizer) text(s string) string {
	most := room(s)
	return cutText(n(s, most), most)
}

// cutText cuts a text at a character.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// replaceString replaces old by with until the result is longer than most.
func replaceString(s, old, with string, most int) string {
	i := strings.Index(s, old)
	if i < 0 {
		return s
	}
	var b strings.Builder
	for ; i >= 0 && b.Len() <= most; i = strings.Index(s, old) {
		b.WriteString(s[:i])
		b.WriteString(with)
		s = s[i+len(old):]
	}
	if b.Len() <= most {
		b.WriteString(s)
	}
	return b.String()
}

// leaves are the steps of a normalizer or a pre_tokenizer without the sequences that they are in.
func leaves(raw json.RawMessage, depth int) ([]json.RawMessage, error) {
	var f struct {
		Type  string            `json:"type"`
		Text  []json.RawMessage `json:"normalizers"`
		Split []json.RawMessage `json:"pretokenizers"`
	}
	if none(raw) || depth > maxNesting || json.Unmarshal(raw, &f) != nil || f.Type != "Sequence" {
		return []json.RawMessage{raw}, nil // what is wrong its reader says
	}
	var all []json.RawMessage
	for _, x := range append(f.Text, f.Split...) {
		list, err := leaves(x, depth+1)
		if err != nil {
			return nil, err
		}
		if all = append(all, list...); len(all) > mostSteps {
			return nil, fmt.Errorf("its sequences have more than %d steps", mostSteps)
		}
	}
	return all, nil
}

// checkGrowth returns an error for a normalizer whose rules make a text of what they look for longer than any may
// become, and for a pre_tokenizer of too many steps.
func checkGrowth(normalizer, preTokenizer json.RawMessage) error {
	if _, err := leaves(preTokenizer, 0); err != nil {
		return fmt.Errorf("tokenizer: pre_tokenizer: %w", err)
	}
	steps, err := leaves(normalizer, 0)
	if err != nil {
		return fmt.Errorf("tokenizer: normalizer: %w", err)
	}
	var text strings.Builder
	rules := make([]normalizerFile, len(steps))
	for i, raw := range steps {
		if none(raw) || json.Unmarshal(raw, &rules[i]) != nil {
			continue
		}
		if p := rules[i].Pattern; p != nil {
			text.WriteString(cutText(p.String, longestToken) + " ")
		}
		text.WriteString(cutText(rules[i].Content, longestToken) + " ")
	}
	s := text.String() + "a"
	most := room(s)
	for i, raw := range steps {
		n, err := newNormalizer(raw, 0)
		if err != nil || n == nil {
			continue // newNormalizer says it of the whole
		}
		if s = n(s, most); len(s) > most {
			return fmt.Errorf("tokenizer: normalizer: rule %d of %d, %s, makes a text of %d bytes longer than %d: take out rules that feed each other", i+1, len(steps), rules[i].describe(), text.Len()+1, most)
		}
	}
	return nil
}

// describe names a rule.
func (f normalizerFile) describe() string {
	if f.Pattern == nil {
		return f.Type
	}
	what := f.Pattern.String
	if f.Pattern.Regex != "" {
		what = f.Pattern.Regex
	}
	return fmt.Sprintf("%s of %q by %q", f.Type, words.Cut(what, 60), words.Cut(f.Content, 60))
}
