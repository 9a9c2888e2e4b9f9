// Package regions reads images as sets of regions with a row of features each, as detectors and grids of
// encoders give them, with their captions: data.kind = "regions".
//
//	set, err := regions.Load(regions.Config{Features: "test_ims.npy", Captions: "test_caps.txt"})
//	stream, err := data.NewTrain(set, cfg)   // columns regions (R, D), regions/lengths and regions/boxes (R, 4)
//
// A Features is a file of regions: an array of NumPy or safetensors, a tensor for each image, or the table of
// bottom-up attention. A Set joins it with captions and ids and is a data.Columned: what holds for images with
// captions, such as orders, galleries and checks, holds for it. Scenes are drawn ones.
//
// Shape letters: N images, R most regions of an image, D features of a region.
package regions
