// Package convolve computes 2-d convolutions and their gradients by matrix products.
//
// Images are rows of places: x is (B*H*W, C), place by place and row by row, the channels of a place side by
// side (NHWC). Weights are (Out, In, k, k), as PyTorch stores them.
package convolve
