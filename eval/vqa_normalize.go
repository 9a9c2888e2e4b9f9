package eval

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// trimVQA makes line feeds and tabs spaces, and takes white space off the ends.
func trimVQA(s string) string {
	return strings.TrimFunc(strings.NewReplacer("\n", " ", "\t", " ").Replace(s), isSpace)
}

// isSpace is str.isspace of Python.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// NormalizeVQA writes an answer as the official evaluation of VQA compares it: marks out, in lower case, numbers from
// none to ten as digits, without articles, apostrophes of contractions where they belong.
func NormalizeVQA(answer string) string {
	s := cases.Lower(language.Und).String(unpoint(unmark(answer)))
	var out []string
	for _, w := range strings.FieldsFunc(s, isSpace) {
		if n := slices.Index(numberWords, w); n >= 0 {
			w = digitWords[n]
		}
		if w == "a" || w == "an" || w == "the" {
			continue
		}
		if c, ok := contractions[w]; ok {
			w = c
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

var (
	numberWords = strings.Fields("none zero one two three four five six seven eight nine ten")
	digitWords  = strings.Fields("0 0 1 2 3 4 5 6 7 8 9 10")
)

// unmark takes marks out. A mark within words becomes a space, but not in a text that has it beside a space
// elsewhere, nor in one with a comma between digits.
func unmark(s string) string {
	number := commaInNumber(s)
	pairs := make([]string, 0, 42)
	for _, m := range `;/["]{}()=+\_-><@` + "`" + `,?!` {
		mark, with := string(m), " "
		if number || strings.Contains(s, mark+" ") || strings.Contains(s, " "+mark) {
			with = ""
		}
		pairs = append(pairs, mark, with)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// commaInNumber says whether a comma stands between digits.
func commaInNumber(s string) bool {
	r := []rune(s)
	for i := 1; i+1 < len(r); i++ {
		if r[i] == ',' && unicode.IsDigit(r[i-1]) && unicode.IsDigit(r[i+1]) {
			return true
		}
	}
	return false
}

// unpoint takes out points that no digit follows. The official script hands a flag over instead of the largest
// number of points, so that only so many go.
func unpoint(s string) string {
	const most = 32
	r, gone := []rune(s), 0
	out := r[:0]
	for i, c := range r {
		if c == '.' && gone < most && (i+1 == len(r) || !unicode.IsDigit(r[i+1])) {
			gone++
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

// contractions tell what is meant by a contraction that lacks an apostrophe.
var contractions = func() map[string]string {
	all := map[string]string{"somebody'd": "somebodyd"} // as the official list has it
	for _, whole := range strings.Fields(`
		'ow's'at 'twas ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd he'd've he's
		how'd how'll how's isn't it'd it'd've it'll ma'am might've mightn't mightn't've must've mustn't needn't not've o'clock oughtn't shan't
		she'd've should've shouldn't shouldn't've somebody'd've somebody'll somebody's someone'd someone'd've someone'll someone's
		something'd something'd've something'll that's there'd there'd've there're there's they'd they'd've they'll they're they've wasn't
		we'd've we've weren't what'll what're what's what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're
		why's won't would've wouldn't wouldn't've y'all y'all'd've y'all'll you'd you'd've you'll you're you've`) {
		for i, c := range whole {
			if c == '\'' {
				all[whole[:i]+whole[i+1:]] = whole
			}
		}
	}
	return all
}()
