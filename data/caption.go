package data

import "strings"

// CleanCaption prepares a caption as ALBEF's code does:
// lower case; the characters , . ' ! ? " ( ) * # : ; ~ deleted; '-' and '/'
// become spaces; "<person>" becomes "person"; runs of white space become one
// space and are cut at the ends; the first maxWords words are kept (0: all).
func CleanCaption(s string, maxWords int) string {
	s = strings.Map(func(r rune) rune {
		switch r {
		case ',', '.', '\'', '!', '?', '"', '(', ')', '*', '#', ':', ';', '~':
			return -1
		case '-', '/':
			return ' '
		}
		return r
	}, strings.ToLower(s))
	words := strings.Fields(strings.ReplaceAll(s, "<person>", "person"))
	if maxWords > 0 && len(words) > maxWords {
		words = words[:maxWords]
	}
	return strings.Join(words, " ")
}
