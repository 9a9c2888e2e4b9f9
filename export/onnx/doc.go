// Package onnx writes towers and heads as ONNX models, from what package encoders says of them. The operators are those
// of opset 17, the first with layer normalisation; whatever it lacks, such as GELU, is spelled out in smaller ones.
//
//	g := onnx.New(params)
//	image := g.Image("image", vit)          // (B, m, D)
//	g.Output("image_embeds", g.Head("image_proj", head, image, D), "batch", C)
//	err := g.Write(w, "")
//
// Matrices of linear layers are stored transposed, (in, out), under their names; all else is as in a checkpoint. The
// batch is dynamic, and so is the length of texts, up to the positions that a model has.
//
// Letters in shapes: B rows, L tokens, P patches, D width, H heads, m class tokens, C channels of the shared space.
package onnx
