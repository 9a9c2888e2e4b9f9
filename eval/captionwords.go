package eval

import (
	"regexp"
	"slices"
	"strings"
)

// CaptionWords returns the words of a caption, as the official evaluation of COCO's captions cuts them: by the rules of the Penn
// Treebank as Stanford's tokenizer 3.4.1 has them, in lower case, without the marks that the evaluation takes out. Brackets stay, as
// -lrb- and the like, since the evaluation looks for them in upper case. What is left out are emoticons, names of states, and marks
// between two letters without a space that Stanford's rules take for an address.
func CaptionWords(caption string) []string {
	var out []string
	for s := entities.Replace(caption); s != ""; {
		if m := captionWord.FindString(s); m != "" {
			out, s = cutWord(out, strings.ToLower(m)), s[len(m):]
			continue
		}
		m := captionMark.FindString(s)
		if w, ok := markWords[m]; ok {
			out = append(out, w)
		} else if !slices.Contains(captionMarks, m) && !strings.HasPrefix(m, "--") && strings.TrimSpace(m) != "" {
			out = append(out, strings.ToLower(m))
		}
		s = s[len(m):]
	}
	return out
}

var entities = strings.NewReplacer("&amp;", "&", "&AMP;", "&", "’", "'", "\u0092", "'", "½", " 1/2 ", "¼", " 1/4 ", "¾", " 3/4 ", "€", "$", "£", "#")

// longest is an expression of which the longest match at the start of a text counts.
func longest(alternatives ...string) *regexp.Regexp {
	re := regexp.MustCompile(`^(?i:` + strings.Join(alternatives, "|") + `)`)
	re.Longest()
	return re
}

const (
	character = `[\p{L}\p{M}\p{Nd}]`
	plainWord = character + `+(?:[-_/.]` + character + `+)*`
)

var (
	// captionWord begins with a letter or a digit, or with an apostrophe that is part of a word.
	captionWord = longest(
		plainWord+"(?:['`]"+plainWord+`)*`,
		`\p{Nd}+(?:[.,:]\p{Nd}+)*(?:-`+plainWord+`)?`,
		`(?-i:[A-Z]+&[A-Z]+)`, // a name such as AT&T
		`\.\p{Nd}+`, `[-+]\p{Nd}+(?:[.,:/]\p{Nd}+)*`,
		`(?:\p{L}\.)+(?:-`+plainWord+`)?`, // initials
		`(?:`+strings.Join(abbreviations, "|")+`)\.`,
		`'(?:em|n|til|till|cause|tis|twas|[dsm]|ll|re|ve|[2-9]0s)\b`, `'n'`,
	)
	// captionMark is anything else: runs of marks that are one token, then a single one.
	captionMark = longest(`\s+`, `[?!]+`, `\.\.\.+`, `--+`, `\*+`, `_+`, "``", `''`, `</?\p{L}+>`, `-[lr][crs]b-`, `[#@]\p{L}[\p{L}\p{Nd}_]*`, `(?s:.)`)
)

// abbreviations keep their point.
var abbreviations = []string{
	"mr", "mrs", "ms", "dr", "st", "jr", "sr", "vs", "mt", "ft", "ave", "blvd", "co", "corp", "inc", "ltd", "etc", "rd", "prof", "gen", "col", "capt",
	"lt", "sgt", "rev", "gov", "sen", "rep", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "bros", "ph\\.d",
}

// captionMarks are the words that the evaluation leaves out.
var captionMarks = []string{"''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "...", ";", "\"", "“", "”", "‘", "„", "–", "—", "…", "«", "»"}

// markWords are the names of brackets.
var markWords = map[string]string{"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}

// joinedWords are two words.
var joinedWords = map[string][2]string{
	"cannot": {"can", "not"}, "gonna": {"gon", "na"}, "gotta": {"got", "ta"}, "wanna": {"wan", "na"}, "gimme": {"gim", "me"}, "lemme": {"lem", "me"},
	"'tis": {"'t", "is"}, "'twas": {"'t", "was"},
}

// clitics end a word and are one of their own.
var clitics = regexp.MustCompile("^(.*)(n['`]t|['`](?:s|d|m|ll|re|ve))$")

// keptApostrophe are words of which an apostrophe is a letter.
var keptApostrophe = regexp.MustCompile("^(?:[dol]['`]\\pL\\pL+|ma'am)$")

// cutWord appends the words of m, which has no space.
func cutWord(out []string, m string) []string {
	if m == "" {
		return out
	}
	if both, ok := joinedWords[m]; ok {
		return append(out, both[:]...)
	}
	if strings.IndexAny(m, "'`") < 1 || keptApostrophe.MatchString(m) {
		return append(out, m)
	}
	if parts := clitics.FindStringSubmatch(m); parts != nil {
		return append(cutWord(out, parts[1]), parts[2])
	}
	i := strings.LastIndexAny(m, "'`")
	return cutWord(cutWord(out, m[:i]), m[i+1:])
}
