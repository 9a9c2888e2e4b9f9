// Package descriptor makes plain features of pictures and captions, each by a formula of its own that has
// learned nothing: two spaces that know nothing of each other, as those of frozen encoders, to try alignment on
// without any encoder.
//
//	x := descriptor.Image(picture) // (ImageWidth), a unit vector
//	y := descriptor.Text("a small red circle at the top left") // (TextWidth), a unit vector
//
// They tell pictures of plain shapes apart, and of photographs little: features of trained encoders are in every
// way better where there are any.
package descriptor
