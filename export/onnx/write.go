package onnx

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/geoalign/geoalign/internal/safetensors"
)

// Opset is the version of the operators, and irVersion that of the file, which goes with it.
const (
	Opset     = 17
	irVersion = 8
)

// Bytes is the size of the constants.
func (g *Graph) Bytes() (n int64) {
	for _, c := range g.constants {
		n += c.bytes()
	}
	return n
}

// Write writes the model to w. Where data is not empty it names a file beside it, which WriteData writes and which has
// the numbers of the constants. Memory holds one of them at a time.
func (g *Graph) Write(w io.Writer, data string) error {
	if g.err != nil {
		return g.err
	}
	var rest message // of the graph, but its constants
	for _, n := range g.nodes {
		rest.bytes(1, n)
	}
	rest.text(2, "geoalign")
	for _, v := range g.inputs {
		rest.bytes(11, v)
	}
	for _, v := range g.outputs {
		rest.bytes(12, v)
	}
	heads := make([]message, len(g.constants)) // of constants, before their numbers
	size, offset := int64(len(rest)), int64(0)
	for i, c := range g.constants {
		var inner, head message
		for _, d := range c.shape {
			inner.integer(1, int64(d))
		}
		inner.integer(2, c.kind())
		inner.text(8, c.name)
		raw := c.bytes()
		if data == "" {
			inner.head(9, raw)
		} else {
			for _, e := range [][2]string{{"location", data}, {"offset", strconv.FormatInt(offset, 10)},
				{"length", strconv.FormatInt(raw, 10)}} {
				inner.bytes(13, pair(e[0], e[1]))
			}
			inner.integer(14, 1)
			offset, raw = offset+raw, 0
		}
		head.head(5, int64(len(inner))+raw)
		heads[i] = append(head, inner...)
		size += int64(len(heads[i])) + raw
	}
	var opset, m message
	opset.text(1, "")
	opset.integer(2, Opset)
	m.integer(1, irVersion)
	m.text(2, "geoalign")
	m.bytes(8, opset)
	m.head(7, size)
	if _, err := w.Write(append(m, rest...)); err != nil {
		return err
	}
	for i, c := range g.constants {
		if _, err := w.Write(heads[i]); err != nil {
			return err
		}
		if data == "" {
			if err := c.write(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteData writes the numbers of the constants one after the other.
func (g *Graph) WriteData(w io.Writer) error {
	for _, c := range g.constants {
		if err := c.write(w); err != nil {
			return err
		}
	}
	return g.err
}

// write writes the numbers in little endian.
func (c constant) write(w io.Writer) error {
	if c.ints != nil {
		return binary.Write(w, binary.LittleEndian, c.ints)
	}
	x := make([]float32, c.len())
	if err := c.read(x); err != nil {
		return err
	}
	return safetensors.WriteFloats(w, x)
}
