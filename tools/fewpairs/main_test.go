package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/safetensors"
)

// writeFeatures writes n rows of 4 channels that are z times a factor.
func writeFeatures(t *testing.T, name string, z []float32, factor float32) string {
	t.Helper()
	data := make([]float32, len(z))
	for i, v := range z {
		data[i] = factor * v
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, []safetensors.Tensor{{Name: "x", Shape: []int{len(z) / 4, 4}, Data: data}}, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".safetensors")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRun writes tables for both kinds of held-out rows, on features that are copies.
func TestRun(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	z := make([]float32, 60*4)
	for i := range z {
		z[i] = float32(random.NormFloat64())
	}
	image, text := writeFeatures(t, "image", z, 1), writeFeatures(t, "text", z, -2)
	table := filepath.Join(t.TempDir(), "pairs.tsv")
	lines := "split\timage_row\ttext_row\n"
	for i := range 60 {
		lines += fmt.Sprintf("%s\t%d\t%d\n", []string{"train", "train", "test"}[i%3], i, i)
	}
	if err := os.WriteFile(table, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, held := range [][]string{{"-last", "20"}, {"-pairs", table}} {
		var out bytes.Buffer
		args := append([]string{"-image", image, "-text", text, "-budgets", "30,0", "-draws", "2", "-methods", "text, 1|CCA$"}, held...)
		if err := run(args, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Count(got, "| CCA | 100.0 | 100.0") != 2 || !strings.Contains(got, "30 pairs, 2 draws") || !strings.Contains(got, "40 pairs, 1 draws") {
			t.Errorf("%v:\n%s", held, got)
		}
		err := run(append(args, "-budgets", "41"), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), `up to 40 (got "41")`) {
			t.Errorf("a budget of 41: %v", err)
		}
	}
	empty, header := filepath.Join(t.TempDir(), "empty.tsv"), filepath.Join(t.TempDir(), "header.tsv")
	for path, text := range map[string]string{empty: "", header: "split\timage_row\ttext_row\nval\t0\t0\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for want, more := range map[string][]string{
		"is empty":                            {"-pairs", empty},
		"0 pairs of the split train and 0 of": {"-pairs", header},
		"-draws must be > 0 (got 0)":          {"-draws", "0"},
		`no method has "none"`:                {"-methods", "none"},
	} {
		var out bytes.Buffer
		if err := run(append([]string{"-image", image, "-text", text, "-budgets", "30", "-last", "20"}, more...), &out, io.Discard); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%v: %v, %s", more, err, &out)
		}
	}
}
