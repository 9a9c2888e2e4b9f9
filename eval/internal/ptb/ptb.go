// Package ptb splits English text into words as the Penn Treebank has them, by the rules of Stanford's tokenizer 3.4.1
// with the options "-preserveLines -lowerCase": that is the program by which the evaluation of COCO's captions reads
// them.
//
// The rules are regular expressions of which the longest match counts (rules.go); forms.go says what becomes of a
// match. They were written anew from what that program accepts. TestAutomaton walks through the tables of that program
// and through these rules in step, and finds them equal.
package ptb

import (
	"strings"
	"sync"
	"unicode/utf16"
)

// Split returns the words of a text in lower case, with a space after each. A line feed stays where it stood. It can be
// inside a word: the value of an attribute of a tag may have several lines. Time and memory grow as the text does. Safe
// for concurrent use.
func Split(text string) string {
	var b strings.Builder
	l := shared()
	l.Lock()
	defer l.Unlock()
	l.split(utf16.Encode([]rune(text)), func(word string) {
		b.WriteString(lower(word))
		if word != "\n" {
			b.WriteByte(' ')
		}
	})
	return b.String()
}

var shared = sync.OnceValue(newLexer)
