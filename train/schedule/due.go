package schedule

// Due reports whether something done every so many steps is due after step
// updates of total. It is due at the multiples of every and at the end; a
// multiple closer to the end than a quarter of every is dropped, since the end
// comes anyway. every <= 0 means never; total <= 0 means that the end is not known.
func Due(step, every, total int) bool {
	if every <= 0 || step <= 0 {
		return false
	}
	if total > 0 {
		if step == total {
			return true
		}
		if left := total - step; left > 0 && 4*left < every {
			return false
		}
	}
	return step%every == 0
}
