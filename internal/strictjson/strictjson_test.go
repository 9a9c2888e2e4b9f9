package strictjson

import (
	"encoding/json"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "", `[]`: "", `1`: "", `"a"`: "", ` null `: "",
		`{"a": 1, "b": {"a": 2}, "c": [{"a": 1}, {"a": 2}]}`: "",
		`{"a": "a", "b": "a:", "c": "\"a\":"}`:               "",
		`{"ä": "日本 \u00e9"}`:                                 "",
		`{"a": 1, "b": 2, "a" : 3}`:                          `key "a" is there twice: leave one of them out`,
		`[{"x": {"k": [], "k": 1}}]`:                         `key "k" is there twice: leave one of them out`,
		"{\"a\": \"\xff\"}":                                  "byte 0xff at byte 8 is not UTF-8: save the file as UTF-8 text",
		"[\"\xe9t\xe9\"]":                                    "byte 0xe9 at byte 3 is not UTF-8: save the file as UTF-8 text",
	} {
		got := ""
		if err := Check([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a": [1, {"b": "\\\""}], "a": null}`, `[[], {}, "{"]`, `"`, `{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		if json.Valid(b) {
			Check(b) // must not panic
		}
	})
}
