package features

import (
	"testing"

	"github.com/geoalign/geoalign/compute"
)

// engine starts an engine of two threads.
func engine(t testing.TB) *compute.Engine {
	t.Helper()
	e, err := compute.New(compute.Options{Backend: "builtin", Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}
