package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// Sample is short sums of an entry of a list, by which a list that changed can be described: of what names
// the entry, 0 where nothing does, and of all the rest.
type Sample struct{ Name, Rest uint64 }

// SampleOf returns the sums of an entry.
func SampleOf(name string, rest []string) (s Sample) {
	if name != "" {
		s.Name = Short(name)
	}
	s.Rest = Short(rest...)
	return s
}

// Short is 8 bytes of the sum of some fields.
func Short(fields ...string) uint64 {
	var room [256]byte
	b := room[:0]
	for _, f := range fields {
		b = binary.AppendUvarint(b, uint64(len(f)))
		b = append(b, f...)
	}
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

// Change is how a list differs from what it was. Numbers are places in the list of now, or of then for Gone.
type Change struct {
	Was, Now int   // entries
	Moved    int   // entries that are in both and stand in another order
	Changed  []int // have the name that they had, and say something else
	New      []int
	Gone     []int
	Renamed  bool // all say what they said, in the same order, under other names
}

// Compare compares lists by the sums of their entries.
func Compare(was, now []Sample) Change {
	c := Change{Was: len(was), Now: len(now)}
	from := c.matched(was, now)
	for j := range now {
		if from[j] < 0 {
			c.New = append(c.New, j)
		}
	}
	c.Renamed = len(was) > 0 && len(was) == len(now) && len(c.Gone) == len(was)
	for j := range now {
		c.Renamed = c.Renamed && was[j].Rest == now[j].Rest
	}
	c.Moved = moved(from)
	return c
}

// matched returns for each entry of now its place in was, -1 for none, and notes those that changed and are gone.
// Entries that are the same are matched first, then those of one name.
func (c *Change) matched(was, now []Sample) []int {
	from := make([]int, len(now))
	taken := make([]bool, len(was))
	whole, named := map[Sample][]int{}, map[uint64][]int{}
	for i, s := range was {
		whole[s] = append(whole[s], i)
	}
	for j, s := range now {
		from[j] = -1
		if list := whole[s]; len(list) > 0 {
			from[j], whole[s], taken[list[0]] = list[0], list[1:], true
		}
	}
	for i, s := range was {
		if !taken[i] && s.Name != 0 {
			named[s.Name] = append(named[s.Name], i)
		}
	}
	for j, s := range now {
		if list := named[s.Name]; from[j] < 0 && len(list) > 0 {
			from[j], named[s.Name], taken[list[0]] = list[0], list[1:], true
			c.Changed = append(c.Changed, j)
		}
	}
	for i := range was {
		if !taken[i] {
			c.Gone = append(c.Gone, i)
		}
	}
	return from
}

// moved counts the entries whose place among those of both lists is another one than it was.
func moved(from []int) (n int) {
	size := 0
	for _, i := range from {
		size = max(size, i+1)
	}
	rank := make([]int, size)
	for _, i := range from {
		if i >= 0 {
			rank[i] = 1
		}
	}
	all := 0
	for i, in := range rank {
		rank[i] = all
		all += in
	}
	k := 0
	for _, i := range from {
		if i < 0 {
			continue
		}
		if rank[i] != k {
			n++
		}
		k++
	}
	return n
}

// Words says what differs. name is that of entry j of the list of now; what is the word for one entry, such as
// "sample".
func (c Change) Words(what string, name func(j int) string) string {
	if c.Renamed {
		return fmt.Sprintf("all %s say what they said in the same order, but have other names (the first is %s)",
			words.Count(c.Now, what), name(0))
	}
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if c.Was != c.Now {
		add("%s, and there were %s", words.Count(c.Now, what), words.Thousands(c.Was))
	}
	if c.Moved > 0 {
		if len(c.Changed)+len(c.New)+len(c.Gone) == 0 {
			add("the same %s in another order", words.Count(c.Now, what))
		} else {
			add("%s stand in another order", words.Thousands(c.Moved))
		}
	}
	if n := len(c.Changed); n > 0 {
		add("%s of another content under the name that it had (the first is %s)", words.Count(n, what),
			name(c.Changed[0]))
	}
	if n := len(c.Gone); n > 0 {
		add("%s gone (the first was number %d)", words.Thousands(n), c.Gone[0]+1)
	}
	if n := len(c.New); n > 0 {
		add("%s new (the first is %s)", words.Thousands(n), name(c.New[0]))
	}
	return strings.Join(list, "; ")
}
