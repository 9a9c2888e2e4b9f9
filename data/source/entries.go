package source

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/geoalign/geoalign/data"
)

// Entries opens a split for its entries alone, which are those of its stream and of its gallery. Call end after their
// last use.
func Entries(ctx context.Context, cfg Setup, split string, o Options) (e data.Entries, end func() error, err error) {
	cfg.Data.Cache = "none"
	x, err := openEntries(ctx, cfg, split, o)
	if err != nil {
		return e, nil, err
	}
	end = func() error { return nil }
	if c, ok := x.(io.Closer); ok {
		end = c.Close
	}
	e, ok := data.EntriesOf(x)
	if !ok {
		return e, nil, errors.Join(fmt.Errorf("source: data.kind %q has no list of its samples", cfg.Data.Kind), end())
	}
	return e, end, nil
}

func openEntries(ctx context.Context, cfg Setup, split string, o Options) (any, error) {
	k, err := kindOf(cfg)
	switch {
	case err != nil:
		return nil, err
	case k.Entries != nil:
		return k.Entries(ctx, cfg, split, o)
	case k.Examples != nil:
		return k.Examples(ctx, cfg, split, o)
	case split == "train":
		return Stream(ctx, cfg, o)
	}
	return k.Split(ctx, cfg, split, o)
}
