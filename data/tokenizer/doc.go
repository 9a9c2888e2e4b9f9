// Package tokenizer splits captions into WordPiece tokens as BERT does, with a
// vocabulary read from a file or learned from captions.
//
//	t, err := tokenizer.Load("vocab.txt")            // or a tokenizer.json
//	t, err := tokenizer.Learn(slices.Values(captions), 4000)
//	ids := t.Encode("a brown dog", 25)               // [CLS] a brown dog
//
// A text is normalised (control characters removed, lower case, accents
// stripped), split at white space and punctuation, and each word is cut greedily
// into the longest pieces of the vocabulary; pieces inside a word begin with ##.
//
// Encode differs from BERT's tokenizer in one point, as ALBEF's code
// does: there is no [SEP] at the end. The name of a special token
// in a text is ordinary text, so no caption can smuggle in a [MASK].
package tokenizer
