package parallel

import "time"

// Measured is a group that measures what goes through it. It is for one goroutine, as every group is.
type Measured struct {
	Group
	Waited time.Duration // that calls have kept their caller
	own    Times         // what this one counts
	begun  time.Time     // of the oldest sum since the last Wait; zero: there is none
}

var _ Group = (*Measured)(nil)

// Measure returns a group that measures g.
func Measure(g Group) *Measured { return &Measured{Group: g} }

// Unwrap returns the group that is measured.
func (m *Measured) Unwrap() Group { return m.Group }

// Times implements Timed: what the group itself tells, and where it does not the time that calls took. Sums that
// go on beside other work are then known to take no longer than from Begin to the end of Wait.
func (m *Measured) Times() Times {
	t, ok := As[Timed](m.Group)
	if !ok {
		return m.own
	}
	return t.Times()
}

// Overlaps says whether the group tells how long sums that went on beside other work took.
func (m *Measured) Overlaps() bool {
	_, ok := As[Timed](m.Group)
	return ok
}

// count measures a call that exchanges so many bytes and returns when it is done.
func (m *Measured) count(bytes int, call func() error) error {
	begin := time.Now()
	err := call()
	d := time.Since(begin)
	m.Waited += d
	m.own.Exchange += d
	m.own.Exchanges++
	m.own.Bytes += int64(bytes)
	return err
}

// Sum implements Group.
func (m *Measured) Sum(x []float32) error {
	return m.count(4*len(x), func() error { return m.Group.Sum(x) })
}

// SumShare implements Group.
func (m *Measured) SumShare(own, x []float32) error {
	return m.count(4*len(x), func() error { return m.Group.SumShare(own, x) })
}

// Gather implements Group.
func (m *Measured) Gather(dst, x []float32) (all []float32, err error) {
	err = m.count(4*len(x), func() error { all, err = m.Group.Gather(dst, x); return err })
	return all, err
}

// GatherInts implements Group.
func (m *Measured) GatherInts(dst, x []int32) (all []int32, err error) {
	err = m.count(4*len(x), func() error { all, err = m.Group.GatherInts(dst, x); return err })
	return all, err
}

// GatherBytes implements Group.
func (m *Measured) GatherBytes(x []byte) (all [][]byte, err error) {
	err = m.count(len(x), func() error { all, err = m.Group.GatherBytes(x); return err })
	return all, err
}

// All implements Group.
func (m *Measured) All(ok bool) (all bool, err error) {
	err = m.count(1, func() error { all, err = m.Group.All(ok); return err })
	return all, err
}

// Begin implements Group.
func (m *Measured) Begin(x []float32) {
	begin := time.Now()
	if m.begun.IsZero() {
		m.begun = begin
	}
	m.Group.Begin(x)
	m.Waited += time.Since(begin)
	m.own.Exchanges++
	m.own.Bytes += int64(4 * len(x))
}

// Wait implements Group.
func (m *Measured) Wait() error {
	begin := time.Now()
	err := m.Group.Wait()
	m.Waited += time.Since(begin)
	if !m.begun.IsZero() {
		m.own.Exchange += time.Since(m.begun)
		m.begun = time.Time{}
	}
	return err
}
