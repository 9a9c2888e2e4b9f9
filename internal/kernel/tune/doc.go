// Package tune keeps which kernel computes a matrix product best: what was measured on this
// machine, in a file of the user's cache folder, and what a run began with, which it goes on with.
// It measures nothing itself: package kernel does, and asks a Table what is known.
//
//	Key          what tells products apart: form, sizes, types, what follows the product
//	Choice       a kernel for a product, with the speeds that were measured
//	Environment  what a choice holds for: processor, threads, libraries, this program
//	Table        choices of a run, of the cache file and of this process, in this order
//
// It also keeps which libraries another process has multiplied a product with, and which of them ended it.
//
// While a library multiplies a product here for the first time, a file beside the cache says so. If the
// process ends meanwhile, the next one finds that file and leaves the library out for this product.
package tune
