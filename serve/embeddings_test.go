package serve

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestEmbeddings: texts and images have the features that searches by them use, in the form of OpenAI's API.
func TestEmbeddings(t *testing.T) {
	s := newServer(t, makeGallery(t, 20), Options{})
	ask := func(body string) (out struct {
		Object string
		Model  string
		Data   []struct {
			Object    string
			Index     int
			Embedding json.RawMessage
		}
		Usage map[string]int
	}) {
		t.Helper()
		code, text := s.do("POST", "/v1/embeddings", body)
		if code != 200 {
			t.Fatalf("%s: %d %s", body, code, text)
		}
		check.OK(t, json.Unmarshal([]byte(text), &out))
		return out
	}
	words := featuresOf(int(crc32.ChecksumIEEE([]byte("a red circle")) % 20))
	got := ask(`{"input": ["a red circle", "data:image/png;base64,` + base64Of(picture(t, 11, 8)) + `"], "model": "any", "user": "me", "dimensions": 4}`)
	if got.Object != "list" || got.Model != "/none" || len(got.Data) != 2 || got.Usage["prompt_tokens"] != 3 || got.Usage["total_tokens"] != 3 {
		t.Errorf("%+v", got)
	}
	for i, want := range [][]float32{words, featuresOf(11)} {
		var x []float32
		check.OK(t, json.Unmarshal(got.Data[i].Embedding, &x))
		if d := got.Data[i]; d.Object != "embedding" || d.Index != i || !slices.Equal(x, want) {
			t.Errorf("input %d: %+v, want %v", i, d, want)
		}
	}
	one := ask(`{"input": "a red circle", "encoding_format": "base64"}`)
	var text string
	check.OK(t, json.Unmarshal(one.Data[0].Embedding, &text))
	x := make([]float32, dim)
	check.OK(t, binary.Read(bytes.NewReader(check.Get(base64.StdEncoding.DecodeString(text))(t)), binary.LittleEndian, x))
	if len(text) != base64.StdEncoding.EncodedLen(4*dim) || !slices.Equal(x, words) {
		t.Errorf("base64 of %v, want %v", x, words)
	}
	if all := ask(`{"input": ["a"` + strings.Repeat(`, "a"`, 63) + `]}`); len(all.Data) != 64 {
		t.Errorf("%d of 64 inputs", len(all.Data))
	}
	for body, want := range map[string]string{
		`{}`:            "400 input must be a text, a data URL of an image, or a list of 1 to 64 of them (got 0)",
		`{"input": []}`: "(got 0)",
		`{"input": ["a"` + strings.Repeat(`, "a"`, 64) + `]}`: "(got 65)",
		`{"input": [1, 2]}`: `400 key "input" cannot be a number`,
		`{"input": "!"}`:    "400 nothing of the text",
		`{"input": ["a", "data:image/png;base64,?"]}`: "400 image must be the base64",
		`{"input": "a", "dimensions": 3}`:             "400 dimensions must be 4, those of the model, or left out (got 3)",
		`{"input": "a", "encoding_format": "x"}`:      "400 encoding_format must be float or base64",
		`{"input": "a", "k": 3}`:                      `400 there is no key "k": use input, model`,
		`{"input": "not finite"}`:                     "500 the request failed",
	} {
		code, text := s.do("POST", "/v1/embeddings", body)
		if answer := fmt.Sprint(code, " ", strings.ReplaceAll(strings.TrimPrefix(text, `{"error":"`), `\"`, `"`)); !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s, want %s", body, code, text, want)
		}
	}
	if code, _ := s.do("GET", "/v1/embeddings", ""); code != 405 {
		t.Errorf("GET: %d", code)
	}
}
