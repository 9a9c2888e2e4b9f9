// Package scenes is a procedural world of pictures and captions: one to four
// coloured shapes on a light background. It needs no files, never runs out and
// knows every fact of a picture, so that retrieval and classification can be trained
// and tested on it.
//
//	w, err := scenes.New(scenes.Config{Size: 64}, runSeed)
//	s := w.Train(17)                                // sample 17 of an endless stream
//	r := rng.New(runSeed, rng.Caption, 17)
//	s.RenderRGB(pixels, 64)                         // 64 x 64 x 3 bytes
//	caption := s.Caption(r)
//	held := w.Test(3)                               // the same picture in every run
//	caption = held.Caption(nil)                     // the phrasing that identifies it
//
// # Facts
//
// An object has a shape (8), a colour (8), a size (2) and a place, which is one
// of the nine cells of a 3 x 3 grid. Its centre is the cell's centre plus a
// jitter that never leads out of the cell, so objects cannot overlap and "left
// of" is never a matter of taste. No two objects of a scene agree in colour and
// shape, so "the red circle" means one object. [Scene.Key] packs exactly these
// facts; jitter, tint and background are noise that no caption names.
//
// Captions use about 40 different words and at most 28 words and marks, so 30
// token positions hold any of them with [CLS] and [SEP]. Train scenes with one
// object repeat now and then; Key, used as the image id, lets a loss treat the
// repeats as positives instead of negatives.
//
// Statements are about two scenes beside each other ([World.Statement]): of every four with one
// text two are true.
//
// # Splits
//
// Validation and test scenes depend on the configuration of the world but not
// on the seed of a run: everybody evaluates on the same pictures. Within both
// splits together no two scenes share a key or any phrasing of their captions,
// and the train stream skips every scene whose key is in one of them. Growing a
// split appends to it.
//
// # What makes it easy or hard
//
// Easy: every caption names all objects with size, colour and shape; the
// canonical phrasing also names each place; objects are 11 or 17 pixels wide in
// a 64-pixel picture, about one or two patches of 8; colours are far apart.
// Hard: scenes with one object differ in a single word from some other scene of
// a large gallery, scenes with four need all twelve attributes bound to the
// right object, and the relational phrasings leave the absolute place open.
// Fewer colours, shapes, sizes or objects ([Config]) give fewer scenes and make
// the world easier to learn, but a gallery of many look-alikes harder to search.
package scenes
