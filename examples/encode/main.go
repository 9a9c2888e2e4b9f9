// Program encode prints the cosine of every text with the first one:
//
//	go run . sentence-transformers/all-MiniLM-L6-v2 "a dog on a beach" "a puppy near the sea" "tax returns"
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/geoalign/geoalign"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: encode MODEL TEXT...")
	}
	enc, err := geoalign.OpenEncoder(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer enc.Close()
	texts := os.Args[2:]
	rows, err := enc.Texts(context.Background(), texts)
	if err != nil {
		log.Fatal(err)
	}
	for i, cosine := range geoalign.Similarity(rows, rows).Row(0) {
		fmt.Printf("%6.3f  %s\n", cosine, texts[i])
	}
}
