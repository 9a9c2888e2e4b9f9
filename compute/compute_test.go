package compute_test

import (
	"fmt"

	"github.com/geoalign/geoalign/compute"
)

func ExampleNew() {
	engine, err := compute.New(compute.Options{Backend: "builtin", Threads: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	fmt.Println(engine.Backend(), engine.Threads())
	// Output: builtin 2
}
