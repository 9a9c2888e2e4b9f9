// Package conv has the layers of convolutional networks: 2-d convolutions, with what follows them at inference, and
// pooling over places.
//
// Images are kept as rows of places: (B*H*W, C), place by place and row by row, the channels of a place side by side.
// So a convolution of one place is a linear layer, nn.BatchNorm normalises channels, nn.MeanTokens with l = H*W is the
// average over all places, and the places of the last layer are tokens. Weights are (Cout, Cin, k, k), as in PyTorch's
// nn.Conv2d.
//
// Convolutions compute in float32 whatever the engine's precision. There are no groups, no dilation and no bias: a
// batch norm follows.
package conv
