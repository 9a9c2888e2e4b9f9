// Package identity tells whether data are the same as before. It is the one place that decides so:
// of a file by its Stamp where that proves it, else by the Sum of all its bytes; of a list of samples
// by the Sum of its entries in their order.
//
//	book := identity.OpenBook(path)          // sums that were computed before
//	sum, err := book.Sum(ctx, "images.npy")  // reads the file only if it may have changed
//	err = book.Save()
//
// A Stamp holds what a file system says of a file: size, time of the last change of its contents, and,
// where the system has them, the time of the last change of its state, its number and its device. A
// program can set the first time back, but not the second. So equal stamps mean equal bytes, unless the
// disk itself damages them: that is found where all bytes are read (Sum). Different stamps mean nothing:
// a copy has another one. Sums are then compared.
package identity
