package eval

import (
	"fmt"
	"strings"
)

// Captioned is a picture's caption by a model with the right ones, each as its words. CaptionWords and
// ReferenceWords make words as the official evaluation of COCO's captions does.
type Captioned struct {
	Words      []string
	References [][]string
}

// checkCaptioned wants pictures, each with a reference.
func checkCaptioned(all []Captioned) error {
	if len(all) == 0 {
		return fmt.Errorf("eval: no captions to score: give at least one picture")
	}
	for i, c := range all {
		if len(c.References) == 0 {
			return fmt.Errorf("eval: caption %d has no reference: leave its picture out", i)
		}
	}
	return nil
}

// maxGram is the length of the longest n-grams of BLEU-4 and CIDEr.
const maxGram = 4

// gram is an n-gram with how often it stands in a text.
type gram struct {
	words string // joined by spaces, which no word has
	n     int    // from 1
	count int
}

// grams returns the n-grams of a text from 1 to 4, in the order in which they first end.
func grams(words []string) []gram {
	var out []gram
	at := make(map[string]int, 4*len(words))
	for n := 1; n <= maxGram; n++ {
		for i := 0; i+n <= len(words); i++ {
			key := strings.Join(words[i:i+n], " ")
			k, ok := at[key]
			if !ok {
				k = len(out)
				at[key] = k
				out = append(out, gram{words: key, n: n})
			}
			out[k].count++
		}
	}
	return out
}
