// Package export writes a trained model in the forms of other programs: Hugging Face's transformers, timm, open_clip,
// ALBEF and ONNX, or as plain tensors under the names of this module.
//
//	r, err := export.Write(m, export.Options{To: export.HF, Out: "clip"})
//
// What the towers are, their norms, activations and pools, decides which class of a program can hold them, not
// by which keys they were made. What a program cannot compute is a *RefusedError, which names the key and the forms
// that can hold it. A form is a file of the package. The names of tensors are the tables of package weights in reverse.
package export
