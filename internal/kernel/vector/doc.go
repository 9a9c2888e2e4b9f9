// Package vector has loops over float32 values, in assembly with AVX2 and AVX-512 and in Go:
// sums, exponentials, norms, dropout, distances, AdamW and the conversions to bfloat16. Each
// function gives results that do not depend on where its slices lie.
package vector
