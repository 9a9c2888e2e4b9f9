package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// spaceEnd is how the patterns of GPT-2 and of those after it end (GPT-4, Llama 3, Qwen): of a run of spaces the last
// one is left to the word behind it.
const spaceEnd = `|\s+(?!\S)|\s+`

// matches returns what finds a pattern in a text, from left to right, without overlaps. Of looking ahead it knows
// spaceEnd alone: a run of several spaces that ends before something else is one shorter.
func (p pattern) matches() (func(s string) [][]int, error) {
	before, ok := strings.CutSuffix(p.Regex, spaceEnd)
	if rest := strings.ReplaceAll(before, "[^", ""); !ok || strings.ContainsAny(rest, "^$") || anchored(rest) {
		re, err := p.compile()
		if err != nil {
			return nil, err
		}
		return func(s string) [][]int { return re.FindAllStringIndex(s, -1) }, nil
	}
	re, err := pattern{Regex: before + `|(\s+)`}.compile()
	if err != nil {
		return nil, err
	}
	spaces := 2 * re.NumSubexp()
	return func(s string) (found [][]int) {
		for at := 0; at < len(s); {
			m := re.FindStringSubmatchIndex(s[at:])
			if m == nil {
				return found
			}
			first, end := at+m[0], at+m[1]
			if m[spaces] >= 0 && end < len(s) {
				if _, n := utf8.DecodeLastRuneInString(s[first:end]); first < end-n {
					end -= n
				}
			}
			if first < end {
				found = append(found, []int{first, end})
				at = end
				continue
			}
			_, n := utf8.DecodeRuneInString(s[end:])
			at = end + max(1, n)
		}
		return found
	}, nil
}

// anchored says whether a pattern has an anchor of the text by a letter, which a part of the text would move.
func anchored(regex string) bool {
	for _, anchor := range []string{`\A`, `\z`, `\Z`, `\G`} {
		if strings.Contains(regex, anchor) {
			return true
		}
	}
	return false
}
