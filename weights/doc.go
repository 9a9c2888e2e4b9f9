// Package weights reads models that other programs stored, as parameters of this module: folders
// of Hugging Face, files of timm, open_clip and ALBEF. Renamed gives parameters of this module the names of such
// a program, by the same tables.
//
//	m, err := weights.Open("bert-base-uncased") // a folder or a file
//	defer m.Close()
//	m.Settings()                                // model.text.width = 768, ...
//	err = m.Read("text/norm/weight", shape, dst) // as any model.Source
//
// A File is the tensors that are there, in one file or several shards, whatever the format. They
// stay where they are until they are read, and are converted to float32 on the way by pieces.
// A family of models is a table: for each parameter of this module the tensors that it is made of,
// and how. Nothing of a file is executed.
//
// Letters in shapes: D is a width, C that of the shared space, T the rows of a position table, G
// the patches of a grid, R registers, Q the entries of a queue, V words.
package weights
