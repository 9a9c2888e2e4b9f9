// Package data turns files and procedural worlds into batches: image decoding,
// caption cleaning, sources, augmented samples by counter, a prefetching loader
// with an exact position, token masking, and checks of a data set.
//
// The layers, each usable alone:
//
//	Dataset  a finite list of images with captions (Captions, Karpathy, scenes splits)
//	Stream   sample number c of an endless training stream (Train, SceneStream)
//	Loader   batches of a stream, in order, prefetched; position = next counter
//	Labelled what of these knows classes (folders of classes, scenes)
//	EvalSet  images and texts of a split for evaluation, with the map between them
//
// A training run:
//
//	ds, err := data.LoadCaptions(root, []string{"train.json"}, data.Options{})
//	stream, err := data.NewTrain(ds, data.TrainConfig{Seed: seed, Transform: transform.Train{Size: 128}})
//	ld, err := data.NewLoader(stream, tok, data.LoaderConfig{BatchSize: 32, Tokens: 25, ImageSize: 128})
//	ld.Start(position)
//	b, err := ld.Next(ctx)
//	...
//	ld.Recycle(b)
//
// A sample is a pure function of the seed and its counter, so a run that starts
// at a saved position sees exactly the batches that it would have seen without
// the stop, whatever the number of workers.
//
// Shape letters: B rows of a batch, V views of an image, L tokens of a text, S side of an image.
package data
