package torch

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
)

// TestPlain reads one value as pickle.dumps of Python 3.13 wrote it in each version.
func TestPlain(t *testing.T) {
	want := []any{
		map[string]any{
			"ref_id": int64(0), "split": "train", "big": int64(1 << 40), "neg": int64(-3), "f": 1.5, "none": nil,
			"yes": true, "no": false,
			"t": []any{int64(1), "a", []any{}},
			"sentences": []any{map[string]any{
				"tokens": []any{"the", "lady"}, "sent": "the lady's \"dog\"\n\\x", "uni": "caf\u00e9 \u2603",
			}},
		},
		map[string]any{"again": "train"},
	}
	for version := range 6 {
		b := check.Get(os.ReadFile(fmt.Sprintf("testdata/plain_%d.p", version)))(t)
		got, err := Plain(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("version %d: %v\n%v\nwant\n%v", version, err, got, want)
		}
		if _, err := Plain(b[:len(b)-3]); err == nil {
			t.Errorf("version %d: a pickle that is cut off is read", version)
		}
	}
}

// TestPlainPython2 has what Python 2 alone writes: strings of bytes by their repr and by their length, and long
// numbers.
func TestPlainPython2(t *testing.T) {
	for text, want := range map[string]any{
		"(lp0\nS'it\\'s \\x41\\t'\np1\na(dp2\nS'k'\nL12L\nsag1\na.": []any{"it's A\t", map[string]any{"k": int64(12)},
			"it's A\t"},
		"\x80\x02]q\x00(U\x03catT\x03\x00\x00\x00doge.": []any{"cat", "dog"},
		"(S\"a'b\"\nI7\nF0.25\nt.":                      []any{"a'b", int64(7), 0.25},
	} {
		if got, err := Plain([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

// TestPlainRefuses: objects, what has no end, what is cut off.
func TestPlainRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"cos\nsystem\n(S'ls'\ntR.":         "os.system",
		"ccollections\nOrderedDict\n.":     "an object",
		"(dI1\nI2\ns.":                     "no text",
		"(lp0\ng0\na.":                     "again and again",
		"(S'a'\nd.":                        "no value",
		"I1\n.I2\n.":                       "follow the end",
		"S'a\n.":                           "not a text in quotes",
		"Ix\n.":                            "not a whole number",
		"g5\n.":                            "was not stored",
		"(lp0\n(lp1\ng0\nag0\nag0\nasg0\n": "",
		"":                                 "ends within",
		"hello":                            "was not",
	} {
		if _, err := Plain([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	wide := "(lp0\n"
	for i := range 30 { // 2^30 lists of 200 bytes
		wide += fmt.Sprintf("(lg%d\nag%d\nap%d\n", i, i, i+1)
	}
	check.Fails(Plain([]byte(wide+".")))(t, "again and again")
}

// FuzzPlain never crashes.
func FuzzPlain(f *testing.F) {
	for version := range 6 {
		b := check.Get(os.ReadFile(fmt.Sprintf("testdata/plain_%d.p", version)))(f)
		f.Add(b)
	}
	f.Add([]byte("(lp0\nS'it\\'s \\x41'\np1\naL5L\na."))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		_, _ = Plain(b)
	})
}
