package exec

// section is a run of instructions, one after the other, that are all the device's own: recorded once and replayed.
type section struct {
	end       int // the instruction after the last one
	warm      bool
	recording Recording
}

// recorded says whether the op is all the device's own: a computation within it has recordings of its own.
func (in *instruction) recorded() bool { return in.onDevice && in.inner == nil }

// sectionAt returns the section that begins at instruction i of the first n, made when it is first asked for; nil where
// the instruction is not recorded.
func (m *Machine) sectionAt(i, n int) *section {
	if !m.prog[i].recorded() {
		return nil
	}
	if m.sections == nil {
		m.sections = map[int]*section{}
	}
	s := m.sections[i]
	if s == nil {
		s = &section{end: i}
		for s.end < len(m.prog) && m.prog[s.end].recorded() {
			s.end++
		}
		m.sections[i] = s
	}
	if s.end > n {
		return nil
	}
	return s
}

// play runs a section: step by step the first time, by its recording afterwards.
func (m *Machine) play(r Recorder, i int, s *section) (err error) {
	steps := func() error {
		for k := i; k < s.end; k++ {
			if err := m.prog[k].run(); err != nil {
				return err
			}
		}
		return nil
	}
	if !s.warm {
		s.warm = true
		return steps()
	}
	if s.recording == nil {
		if s.recording, err = r.Record(steps); err != nil {
			return err
		}
	}
	return s.recording.Launch()
}

// exchanged says whether inputs have other buffers than at the last call: recordings have the old ones.
func (m *Machine) exchanged() bool {
	n := 0
	for _, s := range m.inputs {
		n += s.exchanges
	}
	changed := n != m.exchanges
	m.exchanges = n
	return changed
}

// forget gives recordings back.
func (m *Machine) forget() (errs []error) {
	for _, s := range m.sections {
		if s.recording != nil {
			errs = append(errs, s.recording.Close())
			s.recording = nil
		}
	}
	return errs
}

// StepByStep has the machine run its ops one by one where a device would run them together, and measures the time of
// each: what a profile holds are times of the device then, but for ops on the host, for which it is how long the device
// waited.
func (m *Machine) StepByStep(on bool) { m.stepwise = on }

// timeline returns what measures ops on the device, nil if nothing does.
func (m *Machine) timeline() Timeline {
	if !m.stepwise {
		return nil
	}
	d, _ := m.cfg.Device.(Timeline)
	return d
}

// timed enters the times between marks, which are those of the first instructions.
func (m *Machine) timed(line Timeline) error {
	times, err := line.End()
	for i, d := range times {
		m.prog[i].time += d
	}
	return err
}

// recorder returns what records the steps of the device, nil where they run one by one.
func (m *Machine) recorder() Recorder {
	if m.cfg.CheckNaN || m.stepwise {
		return nil
	}
	r, _ := m.cfg.Device.(Recorder)
	return r
}
