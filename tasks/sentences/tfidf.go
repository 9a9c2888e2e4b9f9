package sentences

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/geoalign/geoalign/data/sentencepairs"
)

// weighedWord is a word of a sentence with its weight.
type weighedWord struct {
	word   string
	weight float64
}

// byWords returns the cosine of the sentences of each pair by their words alone, without an encoder: TF-IDF. A word
// weighs as often as it occurs in a sentence times 1 + ln((1+n)/(1+d)), where d of the n different sentences of all
// have it: the weights of scikit-learn's TfidfVectorizer. Words are runs of letters and digits in lower case.
func byWords(pairs []sentencepairs.Pair, all []string) []float64 {
	vectors, having := map[string][]weighedWord{}, map[string]int{}
	for _, sentence := range all {
		if _, known := vectors[sentence]; known {
			continue
		}
		v := counted(sentence)
		vectors[sentence] = v
		for _, w := range v {
			having[w.word]++
		}
	}
	for _, v := range vectors {
		for i, w := range v {
			v[i].weight *= 1 + math.Log(float64(1+len(vectors))/float64(1+having[w.word]))
		}
	}
	list := make([]float64, len(pairs))
	for i, p := range pairs {
		a, b := vectors[p.A], vectors[p.B]
		if ab := product(a, b); ab > 0 {
			list[i] = ab / math.Sqrt(product(a, a)*product(b, b))
		}
	}
	return list
}

// counted returns the different words of a sentence in their order, each with how often it occurs.
func counted(sentence string) (list []weighedWord) {
	words := strings.FieldsFunc(strings.ToLower(sentence), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slices.Sort(words)
	for _, w := range words {
		if n := len(list); n == 0 || list[n-1].word != w {
			list = append(list, weighedWord{w, 0})
		}
		list[len(list)-1].weight++
	}
	return list
}

// product is the sum over common words of both weights; a and b are in the order of their words.
func product(a, b []weighedWord) (sum float64) {
	for len(a) > 0 && len(b) > 0 {
		switch c := strings.Compare(a[0].word, b[0].word); {
		case c < 0:
			a = a[1:]
		case c > 0:
			b = b[1:]
		default:
			sum += a[0].weight * b[0].weight
			a, b = a[1:], b[1:]
		}
	}
	return sum
}
