package data

// packed is lists of strings in one piece of memory, for data sets of millions of captions.
type packed struct {
	Text []byte
	Ends []uint64 // of the strings in Text
	Last []uint64 // of each list, the number of strings up to its end
}

// add appends a list.
func (p *packed) add(list ...string) {
	for _, s := range list {
		p.Text = append(p.Text, s...)
		p.Ends = append(p.Ends, uint64(len(p.Text)))
	}
	p.Last = append(p.Last, uint64(len(p.Ends)))
}

// len is the number of lists.
func (p *packed) len() int { return len(p.Last) }

// span returns the first string of list i and the first of the next list.
func (p *packed) span(i int) (first, end uint64) {
	if i > 0 {
		first = p.Last[i-1]
	}
	return first, p.Last[i]
}

// at returns string k of all.
func (p *packed) at(k uint64) string {
	var start uint64
	if k > 0 {
		start = p.Ends[k-1]
	}
	return string(p.Text[start:p.Ends[k]])
}

// list returns list i from its string number from on.
func (p *packed) list(i, from int) []string {
	first, end := p.span(i)
	list := make([]string, 0, end-first-uint64(from))
	for k := first + uint64(from); k < end; k++ {
		list = append(list, p.at(k))
	}
	return list
}

// valid says whether no call can fail, for what was read from a file, and each list has at least so
// many strings.
func (p *packed) valid(least int) bool {
	end := uint64(0)
	for _, e := range p.Ends {
		if e < end || e > uint64(len(p.Text)) {
			return false
		}
		end = e
	}
	last := uint64(0)
	for _, l := range p.Last {
		if l < last || l-last < uint64(least) || l > uint64(len(p.Ends)) {
			return false
		}
		last = l
	}
	return true
}
