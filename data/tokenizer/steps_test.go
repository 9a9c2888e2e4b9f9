package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// Steps of a tokenizer.json give the ids of the package tokenizers 0.23 (tools/goldens/tokenizer_steps.py).
func TestSteps(t *testing.T) {
	var cases []struct {
		Name  string
		File  json.RawMessage
		Texts []string
		IDs   [][]int32
	}
	check.OK(t, json.Unmarshal(check.Get(os.ReadFile("testdata/steps.json"))(t), &cases))
	for _, c := range cases {
		tok := check.Get(Parse(c.File))(t)
		for i, s := range c.Texts {
			if got := tok.Encode(s, 0); !slices.Equal(got, c.IDs[i]) {
				t.Errorf("%s: %q has ids %v, want %v", c.Name, s, got, c.IDs[i])
			}
		}
	}
	if len(cases) < 11 {
		t.Errorf("%d cases", len(cases))
	}
}

// A Metaspace that marks what begins a text has to be the first step that writes it anew.
func TestFirstBehindBytes(t *testing.T) {
	const file = `{"padding":{"direction":"Right","pad_id":0,"pad_token":"?"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},
		{"type":"Metaspace","replacement":"_","prepend_scheme":"SCHEME"}]},"model":{"type":"WordLevel","unk_token":"?","vocab":{"?":0}}}`
	for scheme, want := range map[string]string{"always": "", "first": "stands behind ByteLevel"} {
		_, err := Parse([]byte(strings.ReplaceAll(file, "SCHEME", scheme)))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", scheme, err, want)
		}
	}
}
