// Package jpeg decodes JPEG files to the pixels of libjpeg-turbo's defaults, bit by bit, as Pillow reads them: baseline
// and progressive, grey, YCbCr, RGB, CMYK and YCCK, with any sampling factors that divide each other. It follows
// libjpeg-turbo in what damaged files become too, and refuses those that Pillow refuses. Arithmetic coding, lossless
// coding and 12 bits are not read.
//
// What makes it fast: 64 bits of input at once, tables that decode code and value in one look, a bit for each
// coefficient of a progressive block that is not zero, and vector code (package pixel) for the inverse DCT, for colours
// at half resolution and for their conversion.
//
// Sections named in comments are those of ITU-T T.81.
package jpeg
