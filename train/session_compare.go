package train

import "context"

// compared computes the gradients of a step over the pairs of all micro-batches: features of one
// after the other, losses, and the towers of one after the other again. The batches are held
// until then.
func (s *Session) compared(ctx context.Context, step, micro int, out *StepResult) (bad, err error) {
	s.held = s.held[:0]
	defer func() {
		for _, b := range s.held {
			s.loader.Recycle(b)
		}
	}()
	for k := range micro {
		b, err := s.next(ctx, out)
		if err != nil {
			return nil, err
		}
		s.held = append(s.held, b)
		if bad == nil {
			bad = s.judge(step, nil, s.compare.Encode(ctx, s.at(b, step, k, micro)))
		}
		if fatal(bad) {
			return nil, bad
		}
	}
	if bad != nil {
		return bad, nil
	}
	s.feed.Batch, s.feed.Micro, s.feed.Counter = nil, 0, step // as of one batch of all pairs
	res, err := s.compare.Compare(ctx, &s.feed)
	if bad := s.judge(step, res, err); bad != nil {
		return split(bad)
	}
	out.Loss = res.Loss
	for _, p := range res.Parts {
		out.Parts = append(out.Parts, Value(p))
	}
	if err := s.add(true); err != nil {
		return nil, err
	}
	grads := s.model.Params().Grads()
	clear(grads) // of parameters that Backward does not touch
	for k, b := range s.held {
		if bad := s.judge(step, nil, s.compare.Backward(ctx, s.at(b, step, k, micro))); bad != nil {
			return split(bad)
		}
		if err := s.add(false); err != nil {
			return nil, err
		}
		out.Samples += b.Size
	}
	return nil, nil
}

// split returns an error as that of a number that is not finite, or as another one.
func split(err error) (bad, other error) {
	if fatal(err) {
		return nil, err
	}
	return err, nil
}
