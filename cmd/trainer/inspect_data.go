package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/record"
)

// dataVerified is what a comparison of the data of a run with its record found.
type dataVerified struct {
	State string   `json:"state"` // same | changed | not compared
	Why   []string `json:"why,omitempty"`
}

// verifyData compares the data of a run with what the run recorded of them, nil for a run without a record. Data that cannot be opened, as
// on another machine, are no fault of the run.
func verifyData(c *cobra.Command, dir string, sets []string, out outputFlags) (*dataVerified, error) {
	list, err := shown(c, out, func(ctx context.Context, progress func(phase string, done, of int)) ([]record.Difference, error) {
		return record.Verify(ctx, dir, sets, progress)
	})
	switch {
	case c.Context().Err() != nil:
		return nil, c.Context().Err()
	case errors.Is(err, fs.ErrNotExist):
		if _, missing := record.Read(dir); errors.Is(missing, fs.ErrNotExist) {
			return nil, nil
		}
		fallthrough
	case err != nil:
		return &dataVerified{"not compared", []string{err.Error() + ": name the folder where the data lie with --set data.root=FOLDER"}}, nil
	}
	v := &dataVerified{State: "same"}
	for _, d := range list {
		v.State, v.Why = "changed", append(v.Why, d.String())
	}
	return v, nil
}

// print writes it for a person.
func (v *dataVerified) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "\ndata\t%s\n", v.State)
	for _, s := range v.Why {
		fmt.Fprintf(tw, "\t%s\n", words.Inline(s))
	}
	return tw.Flush()
}

// err is an error where the data have changed.
func (v *dataVerified) err() error {
	if v == nil || v.State != "changed" {
		return nil
	}
	return fmt.Errorf("the data are not those that the run was trained on: %s", strings.Join(v.Why, "; "))
}
