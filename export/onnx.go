package export

import "errors"

func (x *job) onnx() error { return errors.New("not yet") }
