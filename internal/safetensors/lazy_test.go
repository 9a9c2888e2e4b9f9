package safetensors

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Lazy numbers are written as if they had been there, and what fails to make them is told.
func TestLazy(t *testing.T) {
	fill := func(dst []float32) error {
		for i := range dst {
			dst[i] = float32(i) / 2
		}
		return nil
	}
	var plain, lazy bytes.Buffer
	values := []float32{0, .5, 1, 1.5, 2, 2.5}
	if err := Write(&plain, []Tensor{{"a", []int{2, 3}, values}, {"b", nil, values[:1]}, {"c", []int{4}, values[:4]}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := Write(&lazy, []Tensor{{"a", []int{2, 3}, Lazy{6, fill}}, {"b", nil, Lazy{1, fill}}, {"c", []int{4}, Lazy{4, fill}}}, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(plain.Bytes(), lazy.Bytes()) {
		t.Error("the files differ")
	}
	bad := Lazy{6, func([]float32) error { return errors.New("no such row") }}
	if err := Write(&lazy, []Tensor{{"a", []int{2, 3}, bad}}, nil); err == nil || !strings.Contains(err.Error(), `tensor "a": no such row`) {
		t.Errorf("got %v", err)
	}
	if err := Write(&lazy, []Tensor{{"a", []int{5}, bad}}, nil); err == nil || !strings.Contains(err.Error(), "needs 5 elements (got 6)") {
		t.Errorf("got %v", err)
	}
}
