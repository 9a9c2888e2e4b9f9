// Package data turns files and procedural worlds into batches of named columns: image
// decoding, caption cleaning, sources, augmented samples by counter, a prefetching loader
// with an exact position, token masking, and checks of a data set.
//
// The layers, each usable alone:
//
//	Dataset    a finite list of images with captions: Files (lists, which data/source reads, and folders), Table
//	           (csv), Shards (webdataset), Parquet, scenes splits
//	Stream     sample number c of an endless training stream fills a row of columns
//	Loader     batches of a stream, in order, prefetched; position = next counter
//	Texts      the source of the columns of captions: a tokenizer and a length
//	Labelled   what of these knows classes (folders of classes, scenes)
//	Gallery    rows of a split in a fixed order, for evaluation
//	Galleries  a gallery of images and one of texts, with the map between them
//
// A training run asks for the columns that its model reads (package batch), and only
// these are made:
//
//	ds, err := source.LoadCaptions(root, []string{root + "/train.json"}, data.Options{}) // of data/source
//	stream, err := data.NewTrain(ds, data.TrainConfig{
//		Seed: seed, Transform: transform.Train{Size: 128}, Text: &data.Texts{Tokenizer: tok, Tokens: 25},
//	})
//	ld, err := data.NewLoader(stream, data.LoaderConfig{BatchSize: 32, Columns: reads})
//	ld.Start(position)
//	b, err := ld.Next(ctx)
//	pixels := b.Floats(batch.Images)
//	...
//	ld.Recycle(b)
//
// A sample is a pure function of the seed and its counter, so a run that starts
// at a saved position sees exactly the batches that it would have seen without
// the stop, whatever the number of workers. What a column holds does not depend on
// which others are asked for.
//
// Processes that train together give LoaderConfig.Group: each has an equal share of the rows of every batch, and
// reads no others. Batches and position are those of one process.
//
// Streams of images with captions (Train, SceneStream) have the columns batch.Images,
// batch.Views, batch.IDs and batch.Labels, and batch.Tokens and batch.Lengths with Texts.
// Package data/features is a data kind without images. Another kind is a type with the
// three methods of Stream, in any module: see ExampleStream. Package data/source opens
// each data.kind of a configuration.
//
// Shape letters: B rows of a batch, L tokens of a text, S side of an image.
package data
