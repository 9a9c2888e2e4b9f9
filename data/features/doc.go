// Package features is the data kind "pairs": features that frozen encoders made of images and texts,
// stored in two files. Rows of the two are pairs where they are in step, or where a table says so;
// other rows are unpaired. Nothing is decoded and no text is tokenized; rows are read from the files as
// they are needed.
//
//	pairs, err := features.Open(features.PairsConfig{
//		Image: "image.npy", Text: "text.npy", Division: features.Division{ValSamples: 1000},
//	}, seed)
//	stream := pairs.Stream(features.StreamConfig{}) // batch.ImageFeatures (D), batch.TextFeatures (E), batch.IDs
//	set, err := pairs.Set("val", 0)
//	pool, err := pairs.ImagePool() // rows that training may see, paired or not
//
// OpenMatrix and OpenSource list the formats. Numbers become float32 when a row is read. Files are
// mapped into memory where the system can do that: the system keeps of them what fits.
//
// Shape letters: N rows of a file, D and E widths of its rows.
package features
