package ptb

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestSplit has one text or more for each rule, with the words by Stanford's program, but that it begins a line at a
// carriage return.
func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"C++ c# cannot 'twas 'tis gonna gİmme":                                         "c++ c# can not 't was 't is gon na gi̇m me",
		"<a href=\"x y\"> <br /> <a <1>":                                               "<a\u00a0href=\"x\u00a0y\"> <br\u00a0/> < a < 1 >",
		"a – b &mdash; c ---- ----- &odq;":                                             "a -- b -- c -- ----- &odq;",
		"it's don't IT&apos;S &APOS;s so\u00adft \u00ad n\u00adn't ma'am o'neil":       "it 's do n't it 's &apos;s soft - nn ' t ma'am o'neil",
		"http://a.b/(c) www.a.co.uk/b. a.com <a@b.c> @a @1 #a #1":                      "http://a.b/ -lrb- c -rrb- www.a.co.uk / b. a.com <a@b.c> @a @ 1 #a # 1",
		"1/2/14 +1,000.5 x\u00b2 1 1/2 1\u20442 \u00bd \u2154 \u215b AT&amp;T S&P-500": "1/2/14 +1,000.5 x \u00b2 1\u00a01/2 1\u20442 1/2 2/3 \u215b at&t s&p-500",
		"US$5 \u00a35 \u20ac5 5\u00a2 \u00a55":                                         "us$ 5 # 5 $ 5 5 cents \u00a5 5",
		"ca. 5 ca. a Pty. Ltd Mr. A etc. the etc. The":                                 "ca. 5 ca . a pty. ltd mr. a etc. the etc. . the",
		"a.txt a.txt-b (555) 123-4567 555.123.4567 '99 a":                              "a.txt a.txt-b -lrb-555-rrb-\u00a0123-4567 555.123.4567 '99 a",
		"\"a\" 'ab' ‘a’ “a” «a» „a":                                                    "`` a '' ` ab ' ` a ' `` a '' `` a '' „ a",
		":-) :( a:) ^_^ (-_-) x.[^x=a b<>]":                                            ":--rrb- :-lrb- a :-rrb- ^_^ -lrb--_--rrb- x.[^x=a b<>]",
		"[a] {b} (c) ... . . . … ** @@ ##":                                             "-lsb- a -rsb- -lcb- b -rcb- -lrb- c -rrb- ... ... ... ** @@ ##",
		"\x00a\x7fb\u200bc&nbsp;d😀e\u0085f":                                            "a b c d e ... f",
		"a\nb\r\nc\rd":                                                                 "a \nb \nc d",
	} {
		got := Split(text)
		got = strings.TrimSuffix(got, " ")
		if got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}

// TestLower has words by Java 17.
func TestLower(t *testing.T) {
	for word, want := range map[string]string{
		"DOG": "dog", "İ": "i\u0307", "Σ": "σ", "ΑΣ": "ας", "ΑΣ.": "ας.", "ΑΣ.Α": "ασ.α", "ΑΣ-Α": "ασ-α",
		"ΑΣ--Α": "ας--α", "ΑΣ!Α": "ας!α", "Α.Σ": "α.ς", "1Σ": "1σ", "Α1Σ": "α1ς", "ΑΣ\u00adΑ": "ασ\u00adα",
		"ΑΣ_Α": "ασ_α", "Σ__Σ": "σ__σ", "@Σ": "@σ", "Α@Σ": "α@σ", "ΑΣ日Α": "ας日α", "ΣΣ": "σς", "Α\u0301Σ": "α\u0301ς",
		"A-\u200dΣ": "a-\u200dς", "ΑΣ''Α": "ας''α", "\u0345Σ": "\u0345σ", "K": "k",
	} {
		if got := lower(word); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// TestFutile: what is not tried again would not have matched.
func TestFutile(t *testing.T) {
	l := newLexer()
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"<a ", "b='", "\"", "'", ">", "x.[^x=", "<>]", "a", "@", ".", "http://", "www.", "com", "(555",
		" ", "-", "&amp", ";", "\n", "1", "A.", "</a", "="}
	for range 2000 {
		var b strings.Builder
		for range r.IntN(60) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		units := utf16.Encode([]rune(b.String()))
		var got, want []string
		l.split(units, func(w string) { got = append(got, w) })
		for at := 0; at < len(units); {
			number, n := l.longest(units, at, map[place]bool{})
			match := units[at : at+n]
			if rules[number].follows != "" {
				match = l.withoutFollowing(number, match)
			}
			w, again := rules[number].form(match)
			if w != "" {
				want = append(want, w)
			}
			at += len(match) - again
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", b.String(), got, want)
		}
	}
}

// TestWithoutFollowing: of every text that a rule matches with what follows, the longest beginning that is text of the
// rule is followed as it must be: this and no shorter one is the token. All states are tried in which the text, what
// follows the longest beginning and what follows shorter ones can be.
func TestWithoutFollowing(t *testing.T) {
	type place struct {
		text, follows int32
		shorter       string // of states
	}
	tried := 0
	for i, r := range rules {
		if r.follows == "" {
			continue
		}
		a := &automaton{ends: map[uint32]int{}, byCode: map[string]int32{}}
		text, follows := a.add(anyCase(r.text), i), a.add(anyCase(r.follows), i)
		a.finish()
		ended := func(state int32) bool { return state != dead && a.states[state].end != none }
		step := func(state int32, unit rune) int32 {
			if state == dead {
				return dead
			}
			return a.step(state, uint16(unit))
		}
		begin := a.state([]uint32{follows})
		first := place{text: a.state([]uint32{text}), follows: dead}
		seen := map[place]bool{first: true}
		for queue := []place{first}; len(queue) > 0; queue = queue[1:] {
			p := queue[0]
			tried++
			for _, s := range p.shorter {
				if ended(int32(s)) && !ended(p.follows) {
					t.Fatalf("rule %q has a shorter token", r.name)
				}
			}
			for _, unit := range a.sample {
				q := place{text: step(p.text, unit), follows: step(p.follows, unit)}
				var shorter []rune
				for _, s := range p.shorter {
					if to := step(int32(s), unit); to != dead {
						shorter = append(shorter, to)
					}
				}
				if ended(q.text) {
					if q.follows != dead {
						shorter = append(shorter, q.follows)
					}
					q.follows = begin
				}
				slices.Sort(shorter)
				q.shorter = string(slices.Compact(shorter))
				if !seen[q] && (q.follows != dead || q.text != dead || q.shorter != "") {
					seen[q] = true
					queue = append(queue, q)
				}
			}
		}
	}
	t.Log(tried, "states")
}
