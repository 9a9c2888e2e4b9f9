// Package images reads image files as 8-bit RGB: it knows their formats, decodes them within a limit of pixels and
// memory, turns them upright, and finds those of a folder.
//
//	m, err := images.DecodeFile("a.jpg", 0)
//
// A damaged file is an error, never a panic. Pixels of JPEG files are those of libjpeg-turbo, and so of Pillow, bit by bit.
package images
