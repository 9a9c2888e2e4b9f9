package descriptor

import (
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/rng"
)

// TextWidth is the number of channels of Text.
const TextWidth = 1024

// window is how many words follow a word in a pair with it.
const window = 6

// Text returns the words of a caption and the pairs of words that stand near each other, hashed to channels with signs
// (Weinberger et al. 2009), as a unit vector. Of a caption without words everything is 0.
func Text(caption string) []float32 {
	x := make([]float32, TextWidth)
	words := strings.Fields(data.CleanCaption(caption, 0))
	for i, w := range words {
		add(x, w)
		for _, next := range words[i+1 : min(len(words), i+1+window)] {
			add(x, w+" "+next)
		}
	}
	unit(x)
	return x
}

// add counts a term.
func add(x []float32, term string) {
	hash := rng.Key(0, term)
	if hash>>63 == 1 {
		x[hash%TextWidth]--
		return
	}
	x[hash%TextWidth]++
}
