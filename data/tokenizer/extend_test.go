package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// TestExtended: words that are unknown or fall apart become tokens behind those that there are, the commonest first; what was one or
// two tokens stays so, and so do all ids.
func TestExtended(t *testing.T) {
	was, err := New([]string{PadToken, UnkToken, ClsToken, MaskToken, "red", "circle", "##s", "c", "##o", "##l", "##u", "##r"}, Default())
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"What colour is red?", "colour of circles", "what circles", "cool?"}
	for most, want := range map[int][]string{0: nil, 2: {"?", "colour"}, 100: {"?", "colour", "what", "cool", "is", "of"}} {
		now, err := was.Extended(slices.Values(texts), most)
		if err != nil {
			t.Fatal(err)
		}
		if got := now.Tokens()[len(was.Tokens()):]; !slices.Equal(got, want) {
			t.Errorf("%d words: new are %q, want %q", most, got, want)
		}
		if !slices.Equal(now.Tokens()[:len(was.Tokens())], was.Tokens()) {
			t.Errorf("%d words: ids have changed: %q", most, now.Tokens())
		}
		if a, b := now.Encode("red circles", 0), was.Encode("red circles", 0); !slices.Equal(a, b) {
			t.Errorf("%d words: %v, before %v", most, a, b)
		}
	}
	now, _ := was.Extended(slices.Values(texts), 100)
	if ids := now.Encode("what colour?", 0); len(ids) != 4 || slices.Contains(ids, now.UnkID()) {
		t.Errorf("new words are read as %v", ids)
	}
	level, err := LearnWords(slices.Values(texts), 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := level.Extended(slices.Values(texts), 2); err == nil || !strings.Contains(err.Error(), "takes no new words") {
		t.Errorf("a list of words: %v", err)
	}
}
