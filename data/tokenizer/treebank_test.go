package tokenizer

import (
	"encoding/json"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/filetest"
)

// TestWordsOfNLTK: tools/goldens/words.py.
func TestWordsOfNLTK(t *testing.T) {
	b := filetest.Read(t, "testdata/words.json")
	var cases []struct {
		Text  string
		Words []string
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < 30 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		if got := nltkWords(nil, lower(c.Text), true); !slices.Equal(got, c.Words) {
			t.Errorf("%q\ngot  %q\nwant %q", c.Text, got, c.Words)
		}
	}
}

// Sentences: the text of a caption is cut where Punkt would, as far as that can be said without its model.
func TestSentences(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"a dog runs. a cat sits.", []string{"a dog runs.", "a cat sits."}},
		{"what is it? a cat! yes", []string{"what is it?", "a cat!", "yes"}},
		{"mr. smith is at st. louis.", []string{"mr. smith is at st. louis."}},
		{"at 5 p.m. he runs", []string{"at 5 p.m. he runs"}},
		{"number 5. then 6", []string{"number 5. then 6"}},
		{"wait... what", []string{"wait... what"}},
		{`he says "stop." she goes`, []string{`he says "stop."`, "she goes"}},
		{"no end", []string{"no end"}},
		{"", nil},
	} {
		if got := appendSentences(nil, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestWordsOfFlickr8k: the words of the first 5,000 captions, each as one sentence, where they are there. The digest is that of
// tools/goldens/words.py with a file of the captions.
func TestWordsOfFlickr8k(t *testing.T) {
	b, err := os.ReadFile("../../../shared/data/flickr8k/dataset_flickr8k.json")
	if err != nil {
		t.Skip("no captions here")
	}
	var file struct {
		Images []struct{ Sentences []struct{ Raw string } }
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	digest, n := crc32.NewIEEE(), 0
	for _, image := range file.Images {
		for _, s := range image.Sentences {
			if n == 5000 {
				break
			}
			_, _ = digest.Write([]byte(strings.Join(treebankWords(nil, lower(strings.Join(strings.Fields(s.Raw), " "))), " ") + "\n"))
			n++
		}
	}
	if got := digest.Sum32(); got != 0x371438d4 {
		t.Errorf("%d captions give %08x", n, got)
	}
}
