package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestManyUnknownKeys: the first unknown keys are told one by one, and of the others the number, of a file, of the
// overrides and of a file of a run. Of a file with more keys than any configuration no key is told.
func TestManyUnknownKeys(t *testing.T) {
	many := func(n int) (text string, sets []string) {
		for i := range n {
			text += fmt.Sprintf("k%d = 1\n", i)
			sets = append(sets, fmt.Sprintf("k%d=1", i))
		}
		return text, sets
	}
	text, _ := many(300)
	_, sets := many(30)
	_, err := Parse("many.toml", []byte(text), sets)
	var all Errors
	if !errors.As(err, &all) || len(all) > 2*mostUnknown+20 {
		t.Fatalf("%d problems", len(all))
	}
	for _, want := range []string{"many.toml:1: k0: unknown key", "many.toml: and 280 more keys that are unknown too", "--set: and 10 more keys that are unknown too"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said of\n%v", want, err)
		}
	}
	_, notices, err := ParseStored("many.toml", []byte(text), nil)
	if last := notices[len(notices)-1]; err != nil || len(notices) > mostUnknown+3 || !strings.Contains(strings.Join(notices, "\n"), "and 280 more keys") {
		t.Errorf("%d notices, the last %q, %v", len(notices), last, err)
	}
	text, _ = many(5000)
	for name, err := range map[string]error{"of the user": second(Parse("many.toml", []byte(text), nil)), "of a run": third(ParseStored("many.toml", []byte(text), nil))} {
		if err == nil || !strings.HasPrefix(err.Error(), "many.toml: has 5,000 keys, more than any configuration") || len(err.Error()) > 1000 {
			t.Errorf("%s: %.1000v", name, err)
		}
	}
}

func second[A, B any](_ A, b B) B        { return b }
func third[A, B, C any](_ A, _ B, c C) C { return c }

// TestLongKeys: what is not a key is shown in part, and nothing is looked for that is like it.
func TestLongKeys(t *testing.T) {
	long := strings.Repeat("a", 900_000)
	_, err := Parse("long.toml", []byte(long+" = 1\n"), []string{long + "=1"})
	if err == nil || len(err.Error()) > 20_000 || !strings.Contains(err.Error(), "bytes] ... aaa") {
		t.Errorf("%.1000v", err)
	}
}
