package tokenizer

import (
	"regexp"
	"strings"
)

// nltk.word_tokenize cuts a text into sentences first, by a trained model (Punkt), since a full stop is a word of its
// own only at the end of a sentence. Captions in lower case leave that model little to go by, and this is what it does
// with them: a sentence ends at . ? or ! before white space, unless the full stop ends an abbreviation, a single
// letter, a number or an ellipsis. It can differ in abbreviations that one of both does not know.

// sentenceEnd is where a sentence may end: marks, what closes brackets and quotations, white space.
var sentenceEnd = regexp.MustCompile(`[.?!]+[)"'\]\}]*` + space + `+`)

// abbreviations of Punkt's English model that captions have, without their last full stop.
var abbreviations = map[string]bool{
	"mr": true, "mrs": true, "ms": true, "dr": true, "st": true, "jr": true, "sr": true, "prof": true, "gen": true,
	"lt": true, "col": true, "sgt": true, "vs": true, "etc": true, "inc": true, "co": true, "corp": true, "ltd": true,
	"ft": true, "mt": true, "ave": true, "no": false, "u.s": true, "a.m": true, "p.m": true, "e.g": true, "i.e": true,
	"u.k": true, "d.c": true, "n.y": true, "u.n": true, "l.a": true, "ph.d": true,
}

// appendSentences appends the sentences of a text to out.
func appendSentences(out []string, text string) []string {
	from := 0
	for _, at := range sentenceEnd.FindAllStringIndex(text, -1) {
		marks := text[at[0]:at[1]]
		if at[0] == from || !endsSentence(text[from:at[0]], marks) {
			continue
		}
		out = append(out, strings.TrimFunc(text[from:at[1]], isPythonSpace))
		from = at[1]
	}
	if rest := strings.TrimFunc(text[from:], isPythonSpace); rest != "" {
		out = append(out, rest)
	}
	return out
}

// endsSentence says whether marks behind the text before end a sentence.
func endsSentence(before, marks string) bool {
	if marks[0] != '.' {
		return true
	}
	if strings.HasPrefix(marks, "..") {
		return false
	}
	word := before[strings.LastIndexFunc(before, isPythonSpace)+1:]
	word = strings.ToLower(strings.TrimLeft(word, `("'[{`))
	switch {
	case abbreviations[word], len([]rune(word)) == 1 && isPythonWord([]rune(word)[0]):
		return false
	}
	return word == "" || strings.Trim(word, "0123456789.,-") != ""
}
