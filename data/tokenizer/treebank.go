package tokenizer

import (
	"regexp"
	"strings"
	"unicode"
)

// The words of a sentence as nltk.word_tokenize finds them: NLTKWordTokenizer of NLTK 3.10, the rules of the Penn
// Treebank. They are expressions that put blanks where words end, one after another.
// Versions before 3.9.2 differ in a quotation mark that begins a word, such as 'rock.

// rule is an expression with what replaces it. It is looked for where the text has one of some characters; an empty in
// is everywhere.
type rule struct {
	re       *regexp.Regexp
	with, in string
}

func newRule(re, with, in string) rule { return rule{regexp.MustCompile(re), with, in} }

// White space and no digit, as Python has them.
const (
	space   = `[\t-\r\x1c-\x1f\x{85}\pZ]`
	noDigit = `[^\p{Nd}]`
)

// opening is what marks before a word become.
var opening = []rule{
	newRule("([«“‘„]|`+)", " ${1} ", "«“‘„`"),
	newRule("^\"", "``", "\""),
	newRule("(``)", " ${1} ", "`"),
	newRule(`([ \(\[{<])("|'{2})`, "${1} `` ", "\"'"),
}

// punctuate cuts marks off words, closing those that end words and clitics, of a text with a blank at both ends.
var (
	punctuate = []rule{
		newRule(`([^\.])(\.)([\]\)}>"'»”’ ]*)`+space+`*$`, "${1} ${2} ${3} ", "."),
		newRule(`([:,])(`+noDigit+`)`, " ${1} ${2}", ":,"),
		newRule(`([:,])$`, " ${1} ", ":,"),
		newRule(`\.{2,}`, " ${0} ", "."),
		newRule(`[;@#$%&]`, " ${0} ", ";@#$%&"),
		newRule(`[\x{2012}-\x{2015}]`, " ${0} ", "\u2012\u2013\u2014\u2015"),
		newRule(`([^\.])(\.)([\]\)}>"']*)`+space+`*$`, "${1} ${2}${3} ", "."),
		newRule(`[?!]`, " ${0} ", "?!"),
		newRule(`([^'])' `, "${1} ' ", "'"),
		newRule(`[*]`, " ${0} ", "*"),
		newRule(`[\]\[\(\)\{\}\<\>]`, " ${0} ", "[](){}<>"),
		newRule(`--`, " -- ", "-"),
	}
	closing = []rule{
		newRule(`([»”’])`, " ${1} ", "»”’"),
		newRule(`''`, " '' ", "'"),
		newRule(`"`, " '' ", "\""),
		newRule(space+`+`, " ", ""),
		newRule(`([^' ])('[sS]|'[mM]|'[dD]|') `, "${1} ${2} ", "'"),
		newRule(`([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) `, "${1} ${2} ", "'"),
	}
)

// joined are two words, which are looked for where the text has them.
var joined = []struct {
	both string
	re   *regexp.Regexp
}{
	{"cannot", regexp.MustCompile(`(?i)\b(can)(not)\b`)},
	{"d'ye", regexp.MustCompile(`(?i)\b(d)('ye)\b`)},
	{"gimme", regexp.MustCompile(`(?i)\b(gim)(me)\b`)},
	{"gonna", regexp.MustCompile(`(?i)\b(gon)(na)\b`)},
	{"gotta", regexp.MustCompile(`(?i)\b(got)(ta)\b`)},
	{"lemme", regexp.MustCompile(`(?i)\b(lem)(me)\b`)},
	{"more'n", regexp.MustCompile(`(?i)\b(more)('n)\b`)},
	{"wanna", regexp.MustCompile(`(?i)\b(wan)(na)` + space)},
	{"'tis", regexp.MustCompile(`(?i) ('t)(is)\b`)},
	{"'twas", regexp.MustCompile(`(?i) ('t)(was)\b`)},
}

func apply(s string, rules []rule) string {
	for _, r := range rules {
		if r.in == "" || strings.ContainsAny(s, r.in) {
			s = r.re.ReplaceAllString(s, r.with)
		}
	}
	return s
}

// treebankWords appends the words of a sentence to out.
func treebankWords(out []string, sentence string) []string {
	s := apply(sentence, opening)
	s = apply(openApostrophes(s), punctuate)
	s = apply(" "+s+" ", closing)
	small := strings.ToLower(s)
	for _, c := range joined {
		if strings.Contains(small, c.both) {
			s = c.re.ReplaceAllString(s, " ${1} ${2} ")
		}
	}
	return append(out, strings.FieldsFunc(s, isPythonSpace)...)
}

// isPythonSpace is str.isspace.
func isPythonSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// isPythonWord is \w.
func isPythonWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// clitics stand behind a mark that begins no word.
var clitics = []string{"re", "ve", "ll", "m", "t", "s", "d", "n"}

// openApostrophes puts a blank behind a mark that begins a word: (?i)(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w).
func openApostrophes(s string) string {
	if !strings.Contains(s, "'") {
		return s
	}
	r := []rune(s)
	var b strings.Builder
	for i, c := range r {
		b.WriteRune(c)
		if c == '\'' && (i == 0 || !isPythonWord(r[i-1])) && i+1 < len(r) && isPythonWord(r[i+1]) &&
			!isClitic(r[i+1:]) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// isClitic says whether s begins with a clitic that ends there.
func isClitic(s []rune) bool {
	end := 0
	for end < len(s) && isPythonWord(s[end]) {
		end++
	}
	for _, c := range clitics {
		if strings.EqualFold(string(s[:end]), c) {
			return true
		}
	}
	return false
}
