package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Numbers is a list of numbers, nil for null. A null within it, as programs write a number that is none, is a
// *json.UnmarshalTypeError; encoding/json reads it as 0.
type Numbers []float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *Numbers) UnmarshalJSON(b []byte) error {
	var list []float64
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	if list != nil && bytes.IndexByte(b, 'n') >= 0 { // numbers have no letter but e and E
		return &json.UnmarshalTypeError{Value: "list with null", Type: reflect.TypeFor[[]float64]()}
	}
	*n = list
	return nil
}
