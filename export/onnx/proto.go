package onnx

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is a protocol buffer in the making. Numbers of fields are those of onnx.proto.
type message []byte

func (m *message) integer(field protowire.Number, v int64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(v))
}

func (m *message) float(field protowire.Number, v float32) {
	*m = protowire.AppendFixed32(protowire.AppendTag(*m, field, protowire.Fixed32Type), math.Float32bits(v))
}

func (m *message) bytes(field protowire.Number, v []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), v)
}

func (m *message) text(field protowire.Number, v string) { m.bytes(field, []byte(v)) }

// head begins a field of n bytes that follow.
func (m *message) head(field protowire.Number, n int64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.BytesType), uint64(n))
}

// Types of elements.
const (
	float32Type = 1
	int64Type   = 7
)

// attribute is a named constant of a node: an int, an int64 list, a float32 or a string.
type attribute struct {
	name  string
	value any
}

func (a attribute) encode() (m message) {
	m.text(1, a.name)
	kind := int64(0)
	switch v := a.value.(type) {
	case float32:
		m.float(2, v)
		kind = 1
	case int:
		m.integer(3, int64(v))
		kind = 2
	case []int:
		for _, i := range v {
			m.integer(8, int64(i))
		}
		kind = 7
	}
	m.integer(20, kind)
	return m
}

// node is an operator with one output or several.
func node(kind string, in, out []string, attributes []attribute) (m message) {
	for _, s := range in {
		m.text(1, s)
	}
	for _, s := range out {
		m.text(2, s)
	}
	m.text(3, out[0])
	m.text(4, kind)
	for _, a := range attributes {
		m.bytes(5, a.encode())
	}
	return m
}

// value describes an input or output. An axis is a number, or a name where it is dynamic.
func value(name string, kind int64, axes ...any) (m message) {
	var shape, tensor, of message
	for _, a := range axes {
		var axis message
		switch v := a.(type) {
		case int:
			axis.integer(1, int64(v))
		case string:
			axis.text(2, v)
		}
		shape.bytes(1, axis)
	}
	tensor.integer(1, kind)
	tensor.bytes(2, shape)
	of.bytes(1, tensor)
	m.text(1, name)
	m.bytes(2, of)
	return m
}

// pair is an entry of a list of names with values.
func pair(key, value string) (m message) {
	m.text(1, key)
	m.text(2, value)
	return m
}
