package tokenizer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/geoalign/geoalign/internal/normalform"
	"golang.org/x/text/unicode/norm"
)

// normalizer is one step of a text, or several in turn. It may end where the result is longer than most bytes.
type normalizer func(s string, most int) string

// normalizerFile is a normalizer of a tokenizer.json, with the fields of all types.
type normalizerFile struct {
	Type        string            `json:"type"`
	Normalizers []json.RawMessage `json:"normalizers"`          // Sequence
	Left        bool              `json:"strip_left"`           // Strip
	Right       bool              `json:"strip_right"`          // Strip
	Pattern     *pattern          `json:"pattern"`              // Replace
	Content     string            `json:"content"`              // Replace
	Prepend     string            `json:"prepend"`              // Prepend
	Charsmap    []byte            `json:"precompiled_charsmap"` // Precompiled, base64
	Match       string            `json:"match"`                // Precompiled: longestMatch or ""
}

// bertNormalizer is the normalizer of BERT.
type bertNormalizer struct {
	Type         string `json:"type"`
	CleanText    bool   `json:"clean_text"`
	Chinese      bool   `json:"handle_chinese_chars"`
	StripAccents *bool  `json:"strip_accents"` // null: as lowercase
	Lowercase    bool   `json:"lowercase"`
}

// options are those of n.
func (n bertNormalizer) options() Options {
	o := Options{CleanText: n.CleanText, SplitChinese: n.Chinese, Lowercase: n.Lowercase, StripAccents: n.Lowercase}
	if n.StripAccents != nil {
		o.StripAccents = *n.StripAccents
	}
	return o
}

// maxNesting is how deep sequences of steps may lie in each other.
const maxNesting = 8

// newNormalizer reads a normalizer; nil where there is none.
func newNormalizer(raw json.RawMessage, depth int) (normalizer, error) {
	var f normalizerFile
	if none(raw) {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("tokenizer: normalizer: %w", err)
	}
	switch f.Type {
	case "BertNormalizer":
		var b bertNormalizer
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, fmt.Errorf("tokenizer: normalizer: %w", err)
		}
		opt := b.options()
		return func(s string, _ int) string { return normalize(s, opt) }, nil
	case "NFC":
		return form(norm.NFC), nil
	case "NFD":
		return form(norm.NFD), nil
	case "NFKC":
		return form(norm.NFKC), nil
	case "NFKD":
		return form(norm.NFKD), nil
	case "Lowercase":
		return func(s string, _ int) string { return lower(s) }, nil
	case "StripAccents":
		return func(s string, _ int) string { return without(s, unicode.M) }, nil
	case "Nmt":
		return func(s string, _ int) string { return strings.Map(nmt, s) }, nil
	case "ByteLevel":
		return func(s string, _ int) string { return toByteLevel(s) }, nil
	case "Strip":
		return func(s string, _ int) string {
			if f.Left {
				s = strings.TrimLeftFunc(s, unicode.IsSpace)
			}
			if f.Right {
				s = strings.TrimRightFunc(s, unicode.IsSpace)
			}
			return s
		}, nil
	case "Prepend":
		return func(s string, _ int) string {
			if s == "" {
				return s
			}
			return f.Prepend + s
		}, nil
	case "Replace":
		if f.Pattern == nil {
			return nil, fmt.Errorf("tokenizer: normalizer Replace has no pattern")
		}
		if f.Pattern.Regex == "" {
			if f.Pattern.String == "" {
				return nil, fmt.Errorf("tokenizer: normalizer Replace has an empty pattern")
			}
			return func(s string, most int) string { return replaceString(s, f.Pattern.String, f.Content, most) }, nil
		}
		re, err := f.Pattern.compile()
		if err != nil {
			return nil, err
		}
		return func(s string, most int) string { return replaceAll(re, s, f.Content, most) }, nil
	case "Precompiled":
		m, err := parseCharsmap(f.Charsmap)
		if err != nil {
			return nil, err
		}
		switch f.Match {
		case "":
			return m.clusters, nil
		case longestMatch:
			return m.longest, nil
		}
		return nil, fmt.Errorf("tokenizer: normalizer Precompiled: no rule of matching %q", f.Match)
	case "Sequence":
		if depth >= maxNesting {
			return nil, fmt.Errorf("tokenizer: normalizer: sequences lie in each other more than %d deep", maxNesting)
		}
		var steps []normalizer
		for _, raw := range f.Normalizers {
			n, err := newNormalizer(raw, depth+1)
			if err != nil {
				return nil, err
			}
			if n != nil {
				steps = append(steps, n)
			}
		}
		return func(s string, most int) string {
			for _, n := range steps {
				if s = n(s, most); len(s) > most {
					s = cutText(s, most+1) // to be seen to be too long
				}
			}
			return s
		}, nil
	}
	return nil, fmt.Errorf("tokenizer: normalizer %q is not known", f.Type)
}

// nmt is how SentencePiece's rule for translation cleans characters: controls are left out, and spaces that are none of
// ASCII, marks of directions and the like are spaces.
func nmt(r rune) rune {
	switch {
	case r >= 1 && r <= 8, r == 0xb, r >= 0xe && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
		return -1
	case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200b && r <= 0x200f, r == 0x2028, r == 0x2029,
		r == 0x2581, r == 0xfeff, r == 0xfffd:
		return ' '
	}
	return r
}

// form returns a normal form of Unicode.
func form(f norm.Form) normalizer {
	return func(s string, _ int) string { return normalform.String(f, s) }
}

// none reports whether a part of a file is missing or null.
func none(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// lower is the lower case of every character, of which that of U+0130 is two.
func lower(s string) string {
	if strings.ContainsRune(s, 0x130) {
		s = strings.ReplaceAll(s, "\u0130", "i\u0307")
	}
	return strings.ToLower(s)
}

// without removes the characters of a table.
func without(s string, t *unicode.RangeTable) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(t, r) {
			return -1
		}
		return r
	}, s)
}

// replaceAll replaces the matches of re by with, empty ones too, which an empty text has none of; from where more than
// most bytes were written on by nothing.
func replaceAll(re *regexp.Regexp, s, with string, most int) string {
	if s == "" {
		return s
	}
	wrote := 0
	return re.ReplaceAllStringFunc(s, func(string) string {
		if wrote > most {
			return ""
		}
		wrote += len(with)
		return with
	})
}
