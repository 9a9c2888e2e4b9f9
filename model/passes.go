package model

import "time"

// Passes returns how the time of the steps since Machine().ResetProfile was spent: the
// forward pass up to the loss, and the backward pass, with what it computes again.
func (m *ALBEF) Passes() (forward, backward time.Duration) { return m.train.passes() }

// Passes returns the time of the forward and of the backward pass, as ALBEF's does.
func (h *Heads) Passes() (forward, backward time.Duration) { return h.train.passes() }

func (o *outcome) passes() (forward, backward time.Duration) { return o.machine.Passes(o.loss) }
