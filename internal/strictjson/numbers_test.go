package strictjson

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestNumbers: a list is read as encoding/json reads it, but that a null in it is an error that names the field.
func TestNumbers(t *testing.T) {
	for text, want := range map[string][]float64{`{"x": [1, -2.5e-3, 1E4]}`: {1, -2.5e-3, 1e4}, `{"x": [ ]}`: {}, `{"x": null}`: nil, `{}`: nil} {
		var v struct{ X Numbers }
		if err := json.Unmarshal([]byte(text), &v); err != nil || !slices.Equal(v.X, want) || (v.X == nil) != (want == nil) {
			t.Errorf("%s: %v, %v", text, v.X, err)
		}
	}
	for text, want := range map[string]string{`{"x": [1, null, 3]}`: "list with null", `{"x": [null]}`: "list with null", `{"x": [1, "3"]}`: "string", `{"x": 3}`: "number", `{"x": [[1]]}`: "array"} {
		var v struct {
			X Numbers `json:"x"`
		}
		err, ok := json.Unmarshal([]byte(text), &v).(*json.UnmarshalTypeError)
		if !ok || err.Value != want || err.Field != "x" {
			t.Errorf("%s: %v, want a %s", text, err, want)
		}
	}
}
