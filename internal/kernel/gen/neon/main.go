// Command neon writes the assembly of arm64: with -tiles that of the matrix product, and with -from the vector kernels,
// which it translates from what the generator of amd64 made for AVX2. Go's assembler has no names for most vector
// instructions of floating point, so they are written as words with their names behind.
//
// Run it by go generate in internal/kernel/gemm and internal/kernel/vector.
package main

import (
	"flag"
	"log"
)

func main() {
	log.SetFlags(0)
	tiles := flag.Bool("tiles", false, "write the tiles of the matrix product")
	from := flag.String("from", "", "translate the kernels of this assembly `file`")
	out := flag.String("out", "", "assembly `file` to write")
	stubs := flag.String("stubs", "", "`file` to write of the declarations")
	pkg := flag.String("pkg", "", "their package")
	flag.Parse()
	w := newWriter("gen/neon", *pkg)
	switch {
	case *tiles:
		for rows := 1; rows <= tileRows; rows++ {
			for cols := 1; cols <= 2; cols++ {
				w.tile("NEON", FMLALane, rows, cols)
				w.tile("BFDOT", BFDOTLane, rows, cols)
			}
		}
		w.pack8()
		w.prefetch()
	case *from != "":
		if err := w.translate(*from); err != nil {
			log.Fatalf("neon: %s: %v", *from, err)
		}
	default:
		log.Fatal("neon: set -tiles or -from")
	}
	if err := w.save(*out, *stubs); err != nil {
		log.Fatal(err)
	}
}
