package ptb

import "sync"

// lexer is an automaton for the rules.
type lexer struct {
	sync.Mutex // of the automaton, which grows
	automaton
	start int32
	text  []int32 // of a rule with something that follows: where its text alone begins
}

func newLexer() *lexer {
	l := &lexer{automaton: automaton{ends: map[uint32]int{}, byCode: map[string]int32{}}}
	var whole []uint32
	alone := make([]uint32, len(rules))
	for i, r := range rules {
		whole = append(whole, l.add(r.expression(), i))
		if r.follows != "" {
			alone[i] = l.add(anyCase(r.text), i)
		}
	}
	l.finish()
	l.start = l.state(whole)
	l.text = make([]int32, len(rules))
	for i, r := range rules {
		if r.follows != "" {
			l.text[i] = l.state(alone[i : i+1])
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
			match = l.withoutFollowing(number, match)
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

// longest returns the rule that matches most of a text from a position on, with what follows it, and the length of
// that. There always is one. Places from which no match was reached are noted as futile and not tried again, or a text
// such as "<a <a <a" would take time that grows with the square of its length (Reps, "Maximal-munch tokenization in
// linear time", 1998).
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

// withoutFollowing returns the part of a match that is the token: the longest beginning that is text of the rule
// (TestWithoutFollowing).
func (l *lexer) withoutFollowing(number int, match []uint16) []uint16 {
	length := 0
	for i, state := 0, l.text[number]; i < len(match); i++ {
		if state = l.step(state, match[i]); state == dead {
			break
		}
		if l.states[state].end != none {
			length = i + 1
		}
	}
	return match[:length]
}
