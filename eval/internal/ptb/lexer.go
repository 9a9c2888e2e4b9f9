package ptb

import "sync"

// lexer is an automaton for the rules.
type lexer struct {
	sync.Mutex // of the automaton, which grows
	automaton
	start   int32
	context []context // of a rule
}

// context are the states in which the parts of a rule with something that follows begin.
type context struct{ text, follows int32 }

func newLexer() *lexer {
	l := &lexer{automaton: automaton{ends: map[uint32]int{}, byCode: map[string]int32{}}}
	var whole []uint32
	parts := make([][2]uint32, len(rules))
	for i, r := range rules {
		text, follows := "(?:"+anyCase(r.text)+")", "(?:"+anyCase(r.follows)+")"
		whole = append(whole, l.add(text+follows, i))
		if r.follows != "" {
			parts[i] = [2]uint32{l.add(text, i), l.add(follows, i)}
		}
	}
	l.finish()
	l.start = l.state(whole)
	l.context = make([]context, len(rules))
	for i, r := range rules {
		if r.follows != "" {
			l.context[i] = context{l.state(parts[i][:1]), l.state(parts[i][1:])}
		}
	}
	return l
}

// split calls word for each word of a text, and with "\n" for each line feed.
func (l *lexer) split(units []uint16, word func(string)) {
	futile := map[place]bool{}
	for at := 0; at < len(units); {
		number, n := l.longest(units, at, futile)
		match := units[at : at+n]
		if rules[number].follows != "" {
			match = match[:l.cut(l.context[number], match)]
		}
		w, again := rules[number].form(match)
		if w != "" {
			word(w)
		}
		at += len(match) - again
	}
}

// place is a state at a position of a text.
type place struct {
	state int32
	at    int
}

// futileEvery is the distance of positions at which futile places are noted.
const futileEvery = 16

// longest returns the rule that matches most of a text from a position on, with what follows it, and the length of that. There always is
// one. Places from which no match was reached are noted as futile and not tried again, or a text such as "<a <a <a" would take time
// that grows with the square of its length (Reps, "Maximal-munch tokenization in linear time", 1998).
func (l *lexer) longest(units []uint16, at int, futile map[place]bool) (number, length int) {
	var tried []place
	state := l.start
	for i := at; i < len(units); i++ {
		if state = l.step(state, units[i]); state == dead {
			break
		}
		if end := l.states[state].end; end != none {
			number, length = end, i+1-at
			tried = tried[:0]
			continue
		}
		if i%futileEvery == 0 {
			p := place{state, i}
			if futile[p] {
				break
			}
			tried = append(tried, p)
		}
	}
	for _, p := range tried {
		futile[p] = true
	}
	return number, length
}

// cut returns the length of the longest beginning of a match after which the rest is what must follow.
func (l *lexer) cut(c context, match []uint16) int {
	var ends []int
	for i, state := 0, c.text; i < len(match); i++ {
		if state = l.step(state, match[i]); state == dead {
			break
		}
		if l.states[state].end != none {
			ends = append(ends, i+1)
		}
	}
	for i := len(ends) - 1; i > 0; i-- {
		if l.isFollowed(c.follows, match[ends[i]:]) {
			return ends[i]
		}
	}
	return ends[0]
}

// isFollowed says whether the rest of a match is what must follow.
func (l *lexer) isFollowed(state int32, rest []uint16) bool {
	for _, u := range rest {
		if state = l.step(state, u); state == dead {
			return false
		}
	}
	return l.states[state].end != none
}
