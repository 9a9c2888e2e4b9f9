package eval

import (
	"slices"
	"strings"
	"unicode"

	"github.com/geoalign/geoalign/eval/internal/ptb"
)

// CaptionWords returns the words of each caption, as the official evaluation of COCO's captions has them
// (pycocoevalcap): those of Stanford's tokenizer 3.4.1, in lower case, without the marks that the evaluation takes out.
// Brackets stay, as -lrb- and the like, since the evaluation looks for them in upper case.
//
// The official program writes captions into one file, a line each, and some words depend on the next line: "I." before
// a line that begins with "The" is "i", and a smiley is a word unless the file ends with it. So give all captions of a
// model in their order, and all references in theirs.
//
// A line feed in a caption is a space. Other ends of lines that the tokenizer knows (U+000B, U+000C, U+000D, U+2028,
// U+2029) give each caption after them the words of another in the official program; here they separate words.
func CaptionWords(captions []string) [][]string {
	var text strings.Builder
	for _, c := range captions {
		text.WriteString(strings.ReplaceAll(c, "\n", " "))
		text.WriteByte('\n')
	}
	out := make([][]string, len(captions))
	lines := strings.Split(ptb.Split(strings.TrimSuffix(text.String(), "\n")), "\n")
	for i := range out {
		// As the script does: marks are taken out between spaces, and what is left is split at any white space.
		for token := range strings.SplitSeq(strings.TrimRightFunc(lines[i], isPythonSpace), " ") {
			if !slices.Contains(captionMarks, token) {
				out[i] = append(out[i], strings.FieldsFunc(token, isPythonSpace)...)
			}
		}
	}
	return out
}

// ReferenceWords returns the words of the references of each picture, of all in their order (CaptionWords).
func ReferenceWords(references [][]string) [][][]string {
	words := CaptionWords(slices.Concat(references...))
	out := make([][][]string, len(references))
	for i, r := range references {
		out[i], words = words[:len(r):len(r)], words[len(r):]
	}
	return out
}

// captionMarks are the words that the evaluation leaves out.
var captionMarks = []string{"''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":",
	"-", "--", "...", ";"}

// isPythonSpace says where Python's str.split splits.
func isPythonSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F }
