// Package nn has the layers of transformers: linear layers, norms, activations, dropout,
// embeddings, patches and tokens.
//
// Weights of linear layers are (out, in), as in PyTorch checkpoints.
package nn
