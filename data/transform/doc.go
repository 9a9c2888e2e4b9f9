// Package transform prepares images for the encoders: the training pipeline
// (random resized crop, flip, RandAugment, normalise) and the evaluation
// pipeline (resize, normalise) of ALBEF, with the colour jitter, grey and blur of
// MoCo v2 and TCL, on 8-bit RGB images.
//
//	t := transform.Train{Size: 128, ScaleMin: 0.2, Flip: true, Ops: 2, Level: 7}
//	dst := make([]float32, 3*128*128)
//	err := t.Apply(img, rng.New(seed, rng.Augment, counter), dst)
//
// Resampling, AutoContrast, Equalize, Brightness, Sharpness, Contrast, Saturation,
// Hue, Gray and Blur give the same bytes as Pillow and torchvision on it. The affine operations resample bilinearly on
// a grid of 1/32 pixel with the fill colour outside, about the same origins as ALBEF's code
// (which calls OpenCV's warpAffine), not Pillow's.
//
// Everything is a pure function of the image and the generator.
package transform
