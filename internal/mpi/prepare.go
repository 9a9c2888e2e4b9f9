package mpi

import (
	"errors"

	"github.com/geoalign/geoalign/internal/dynlib"
)

// prepare sets variables that libraries read when they are loaded, unless the user has set them.
func prepare() error {
	// UCX's handlers of errors are not made for Go's stacks, nor are Open MPI's.
	err := errors.Join(dynlib.SetEnv("UCX_ERROR_SIGNALS", "", false), dynlib.SetEnv("OMPI_MCA_opal_signal", "", false))
	if !readsOthers() {
		// Open MPI 4 and 5 fail with "Read -1, expected N" where they may not do it.
		err = errors.Join(err, dynlib.SetEnv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", false),
			dynlib.SetEnv("OMPI_MCA_btl_sm_single_copy_mechanism", "none", false))
	}
	return err
}
