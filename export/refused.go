package export

import (
	"fmt"
	"reflect"
	"strings"
)

// RefusedError is a model that a form cannot hold.
type RefusedError struct {
	Key, Value string // the setting that the form has no word for
	To         string
	Why        string
	Forms      []string // of the same model that can hold it, as flags
}

// Error names the key, its value, the reason and the cure.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s = %s cannot be told to %s: %s: use %s", e.Key, e.Value, e.To, e.Why,
		strings.Join(e.Forms, " or "))
}

// Forms as a command line names them, for the cures of errors.
const (
	asGeoalign = "--to geoalign"
	asONNX     = "--to onnx"
	asHF       = "--to hf"
	asTimm     = "--to timm"
	asALBEF    = "--to albef"
	oneSide    = "--side image or --side text"
)

// refuse is the error of a setting.
func (x *job) refuse(key string, value any, why string, forms ...string) error {
	v := fmt.Sprint(value)
	if reflect.ValueOf(value).Kind() == reflect.String {
		v = fmt.Sprintf("%q", value)
	}
	return &RefusedError{Key: key, Value: v, To: x.To, Why: why, Forms: append(forms, asGeoalign)}
}
