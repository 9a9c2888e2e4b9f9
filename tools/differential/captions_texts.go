package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// captionTexts makes captions that are hard to split into words.
type captionTexts struct {
	*rand.Rand
	real  []string // captions of people
	lines bool     // ends of lines may stand in captions
}

// pieces are parts of captions by what is hard about them.
var pieces = map[string][]string{
	"words":         fields(`a A a the The two dog dogs man woman runs on in grass red Big ball with near water An It He cat's lady BEACH street playing tall man's boys'`),
	"emoji":         fields("😀 👍🏽 👩‍👩‍👧 ❤️ ❤ 🏖️ 🐶🐶 🇩🇪 1️⃣ ☺ ✈️ ★ ♥♥ ☃dog dog☃ 🧑🏿‍🚀 ‼️ ⁉ ™ © ® ❗ ✓ ➜"),
	"entities":      fields(`&amp; &AMP; &Amp; &lt; &gt; &LT; &quot; &apos; &APOS; &nbsp; &mdash; &ndash; &MD; &#39; &#x27; &eacute; caf&eacute; &copy; &hellip; &odq; &cdq; &HT; AT&amp;T A&amp;M R&B Q&A S&P-500 S&amp;Ls b&w &amp &;  don&apos;t it&apos;s &apos;em &euro; x&y &Agrave;gora na&iuml;ve`),
	"phones":        fields(`555-1234 (555)|123-4567 555.123.4567 +1|650|723|0293 650-723-0293 (02)1234-5678 +44|20|7946|0958 123-4567-8901 1.800.555.1212 ++49.30.1234.5678 911 555- (555)`),
	"numbers":       fields("1 42 3.5 1,000 1,000,000 .5 -3 +4 1-2 3-4-5 10:30 10:30am 5pm 5p.m. 2.5kg 3ft 6'2\" 7\" 5'7 1st 22nd 80s '80s 1980s 1980's 3x 4x4 x2 0.5% 100% 50/50 24/7 9-11 -1.5 --5 1.2.3 1.2.3.4 1e5 3D 2:1 ٣٤ १२ ² x² H₂O 10⁻³ ⁻¹ m² №5 1\u00ad000 5°C 20° #1 #12 No.|1 nos.|3 p.|5 pp.|7 fig.|2 ca.|1900 art.|4 vol.|3"),
	"fractions":     fields(`1/2 3/4 1|1/2 12-3/8 ½ 1½ ¼ ¾ ⅓ ⅔ ⅛ 5½ 1⁄2 1\/2 and/or he/she w/ w/o b/w 1/2/3 a/b/c a/b/c/d 24/7/365`),
	"dates":         fields(`12/25/2014 1-2-99 2014-12-25 25.12.2014 Dec.|25 Jan. Sept.|3 Mon. Tues. Feb Mar.`),
	"addresses":     fields(`foo@bar.com <a@b.co> &lt;x.y@z.org&gt; a@b @ a@ @b dog@ me@home. http://x.y http://example.com/a(b)_c, https://EXAMPLE.com/?q=1&r=2. HTTP://A.B www.foo.com www.foo.co.uk/bar. foo.com Foo.Org/x dog.com's a.b.net. site.edu, http:// https://é.fr/ü www.é.com http://x/|y ftp://a.b file.txt a.JPG photo.jpeg. index.html, my.c x.xml.zip IMG_1234.jpg data.tar.gz`),
	"handles":       fields(`@dog @Dog_2 #cute #Cute2 #été ## #1dog @_x @1 #_ dog#cat C# c# F# c++ C++ C++11 .NET ASP.NET node.js c+++ +c C+`),
	"abbreviations": fields("Mr. Mrs. Dr. St. Jr. Sr. Inc. Corp. Co. Ltd. etc. e.g. i.e. vs. Mt. Ft. Ave. Blvd. Rd. U.S. U.S U.K. U.S.-U.K. D.C. p.m. a.m. P.M. Ph.D. Ph. B.A. Mass. Miss. Wash. Calif. Az. Ark. Ill. La. Pa. Tex. Ore. Del. del. ill. mass. wash. Prof. Gen. Col. Gov. Sen. Rep. Capt. Lt. Sgt. Rev. Hon. Pres. Pty. pty.|ltd. Co.|Ltd. co.|limited est. ext. sq. tel. Bros. Esq. No. no. A. B. I. J.R.R. a.k.a. cf. Cie. Alex. Wm. Jos. Dept. Natl. Elec. Invt. Mfg. Mtg. Univ. Intl. Sys. al. seq. Bldg. bldg.|9 op.|3 prop. EU-U.S. non-U.S. Canada-U.S. C.D.s Cap'n c'est"),
	"contractions":  fields("don't DON'T don’t don`t don‘t didn't can't cannot Cannot CANNOT gonna gotta lemme gimme wanna GONNA 'tis 'Tis ’tis 'twas 'TWAS it's it’s it`s its IT'S he'll they've I'm I’m we'd you're y'all y'know ma'am o'clock O'Neil o'neil l'oreal L’Oréal d'Artagnan dell'arte 'em 'n' 'n rock'n'roll 'til 'till 'cause cont'd Cont'd. nor'easter c'mon e'er s'mores ev'ry li'l nat'l O'o Dunkin' somethin' ol' runnin' n't n't's dogs' boss's 's 'S ’s '80s '99 '99s ain't shan't o'er ne'er should've i'd've mustn't've fo'c'sle Shi'ite aren´t d'oh j'ai qu'il"),
	"dots":          fields("... .. .... ..... ...... .|.|. .|. .|.|.|. … dog...cat dog… ...dog . ,. .... … .… dog.cat dog.Cat man.The a.b a..b"),
	"dashes":        fields("- -- --- ---- ----- – — ― ‐ ‑ a--b a-b a–b a—b -a a- -- - t-shirt T-shirt black-and-white mother-in-law twenty-two x-ray co-ed non-U.S.-based a-b-c-d 5-year-old 10-foot - ֊ anti- pro- pre-World U-turn. A-1 B-52s e-mail; Coca-Cola's ex-U.S., _ __ a_b snake_case ~ −5"),
	"brackets":      fields("( ) [ ] { } (a) [unk] {x} (a)b a(b)c -LRB- -rrb- -LSB- -lcb- -RCB- (((( ])} < > << >> <<< ( 5 ) (5) ⟨x⟩ « » 「犬」"),
	"quotes":        fields("\" ' ` `` '' \"dog\" 'dog' ''dog'' ``dog'' “dog” ‘dog’ „dog“ «dog» ‹dog› ‚dog‛ ‟ dog\" \"5 \"$5 '5 'a 'ab 'a| \" \"\" \"\"\" ''' ‘a ’a ”a “ ” ‘ ’ ’’ “” ′ ″ \u0091x\u0092 \u0093x\u0094 ´"),
	"currency":      fields("$ $5 $5.99 US$5 HK$ A$1 £5 €5 5€ ¢ 50¢ ¥100 ₤ ₹5 ₩ $$ $$$ ฿ ¤ $1/2 $5-$10 ＄5 ￡5 \u0080 1,000$ c$"),
	"tags":          fields("<unk> <UNK> </s> <s> <b>dog</b> <br> <br/> <br|/> <a|href=\"x|y\"> <a|href='x'> <a|href=x> <img|src='a|b'|alt=\"c\"/> <!--|dog|--> <!DOCTYPE|html> <?xml|v?> <a <a| <1> <a.b:c> <a|b|c> <dog > <|a> <> </a|> </a|b> <a|b=' '> <a|b='> <p>It <p>"),
	"smileys":       fields(`:) :-) :( :-( ;) ;-) =) :D :-D :P :p :o) :'( :-| :[ :] :{ :\ :@ >:( <3 ^_^ -_- =_= >_< (-_-) (^_^) (^-^) (^.^) (~_~) x.x ^.^ T_T o_O xD XD :/ :-/ :3 :)) :): :)a :D. :Dog =] 8) (: ):`),
	"slashes":       fields(`\ \\ \n \* \*\* * ** *** *dog* / // /// \/ dog\cat dog/cat | || ^ = == + ++ +1 a+b a=b a|b ~ ~dog % & && @@ ### §5 ¶ • · ‣ ● ◦ † ‡`),
	"punctuation":   fields(`. , ; : ? ! ?! !!! ??? !? ¡ ¿ 、 。 ， ． ！ ？ dog. dog, dog; dog: dog! dog? dog?! dog.. Dog!Cat what?The Yahoo! Jeopardy! ؟ ، ۔ ։ ؛`),
	"scripts":       fields("café café naïve Ünïcode ΑΣ ΣΑΣ ΟΔΟΣ Σ ΑΣ-ΒΣ ΑΣ.ΒΣ İstanbul ıslak ſtreet Kelvin ẞ ǅ 犬 犬が走る 狗，猫。 고양이 собака СОБАКА كلب كَلْب כלב कुत्ता หมา สุนัขวิ่ง ១២ ⅷ Ⅷ Ⓐⓑ Ａｂｃ １２ ｶﾅ 🅰 𝒟ℴℊ 𐐔𐐯𐑅 ß ŉ ﬁsh ªº µm Å Ω ǰ ʼn ꟃ Ꞵ ა Ა"),
	"invisible":     {"\u00a0", "a\u00a0b", "\u200b", "a\u200bb", "\u200d", "\u200c", "a\u200cb", "\ufeff", "\u00ad", "soft\u00adhyphen", "1\u00ad000", "\u00ad\u00ad", "n\u00ado", "\u200e", "\u200f", "\u202a", "\u2060", "\t", "\u2003", "\u3000", "\u202f", "\u205f", "\u1680", "\x00", "\x01", "a\x1cb", "\x1f", "\x7f", "\x85", "a\u0085b", "\u0301", "\ufe0f", "\ufffd", "\ue000", "\u180e", "\ufffe", "\n", " \n "},
}

// endsOfLines split lines in the official program, besides the line feed.
var endsOfLines = []string{"\r", "\r\n", "\v", "\f", "\u2028", "\u2029"}

// kindsOfPieces are the names in order.
var kindsOfPieces = slices.Sorted(maps.Keys(pieces))

// fields splits at spaces; a bar is a space inside a piece.
func fields(s string) []string {
	out := strings.Fields(s)
	for i := range out {
		if len(out[i]) > 2 {
			out[i] = strings.ReplaceAll(out[i], "|", " ")
		}
	}
	return out
}

func pick[T any](g *captionTexts, from []T) T { return from[g.IntN(len(from))] }

// piece is a hard part: one of the tables, a number or a run of characters.
func (g *captionTexts) piece() string {
	switch g.IntN(12) {
	case 0:
		return g.number()
	case 1:
		var b strings.Builder
		for range 1 + g.IntN(6) {
			b.WriteRune(g.character())
		}
		return b.String()
	case 2:
		if g.lines {
			return pick(g, endsOfLines)
		}
	}
	return pick(g, pieces[pick(g, kindsOfPieces)])
}

// number is one of any form: digits with marks between.
func (g *captionTexts) number() string {
	var b strings.Builder
	b.WriteString(pick(g, []string{"", "", "", "+", "-", "(", "$", "#", "'", "."}))
	for i := range 1 + g.IntN(4) {
		if i > 0 {
			b.WriteString(pick(g, []string{"-", ".", ",", ":", "/", " ", "\u00a0", ") ", "", "\u00ad"}))
		}
		fmt.Fprintf(&b, "%0*d", 1+g.IntN(5), g.IntN(10))
	}
	b.WriteString(pick(g, []string{"", "", "", "%", "th", "kg", "s", "'s", "\"", "'", ")", ".", "-year-old", "x"}))
	return b.String()
}

// character is any: half of them marks of ASCII, the others from everywhere.
func (g *captionTexts) character() rune {
	for {
		var r rune
		switch g.IntN(6) {
		case 0, 1, 2:
			r = rune(0x20 + g.IntN(0x5F))
		case 3:
			r = rune(g.IntN(0x500))
		case 4:
			r = rune(g.IntN(0x10000))
		default:
			r = rune(0x2000 + g.IntN(0xC00))
		}
		if g.IntN(40) == 0 {
			r = rune(0x1F300 + g.IntN(0x400))
		}
		isEnd := r == '\r' || r == '\v' || r == '\f' || r == 0x2028 || r == 0x2029
		if (r < 0xD800 || r > 0xDFFF) && (g.lines || !isEnd) {
			return r
		}
	}
}

// caption is a made-up caption or one of a person with hard parts in it.
func (g *captionTexts) caption() string {
	if g.IntN(100) == 0 {
		return pick(g, []string{"", " ", ".", "...", "\u00a0", "\u200b", "😀", "()"})
	}
	if len(g.real) > 0 && g.IntN(4) == 0 {
		return g.edited(pick(g, g.real))
	}
	var b strings.Builder
	n := 1 + g.IntN(12)
	if g.IntN(400) == 0 {
		n *= 100
	}
	for i := range n {
		if i > 0 {
			b.WriteString(pick(g, []string{" ", " ", " ", " ", " ", " ", " ", " ", "", "", "  ", "\u00a0", "\t", ", ",
				". ", "\n"}))
		}
		part := pick(g, pieces["words"])
		if g.IntN(3) > 0 {
			part = g.piece()
		}
		switch g.IntN(12) {
		case 0:
			part = strings.ToUpper(part)
		case 1:
			part = strings.ToLower(part)
		case 2:
			first, n := utf8.DecodeRuneInString(part)
			part = string(unicode.ToUpper(first)) + part[n:]
		}
		b.WriteString(part)
	}
	b.WriteString(pick(g, []string{"", "", ".", ".", " .", "!", "...", "?", " ", "\n"}))
	if g.IntN(4) == 0 {
		return g.edited(b.String())
	}
	return b.String()
}

// edited is a caption with some changes.
func (g *captionTexts) edited(s string) string {
	runes := []rune(s)
	for range 1 + g.IntN(3) {
		at := g.IntN(len(runes) + 1)
		end := min(at+1+g.IntN(6), len(runes))
		switch g.IntN(8) {
		case 0: // without a part
			runes = append(runes[:at:at], runes[end:]...)
		case 1: // with a part twice
			runes = append(runes[:end:end], runes[at:]...)
		case 2, 3: // with a hard part
			runes = append(append(runes[:at:at], []rune(g.piece())...), runes[at:]...)
		case 4:
			runes = append(append(runes[:at:at], g.character()), runes[at:]...)
		case 5: // a space less or more
			if at < end && runes[at] == ' ' {
				runes = append(runes[:at:at], runes[at+1:]...)
			} else {
				runes = append(append(runes[:at:at], ' '), runes[at:]...)
			}
		case 6: // in the other case
			for i := at; i < end; i++ {
				if unicode.IsUpper(runes[i]) {
					runes[i] = unicode.ToLower(runes[i])
				} else {
					runes[i] = unicode.ToUpper(runes[i])
				}
			}
		case 7: // with a word of another place
			words := strings.Fields(string(runes))
			if len(words) > 1 {
				words[g.IntN(len(words))] = pick(g, pieces["words"])
				runes = []rune(strings.Join(words, " "))
			}
		}
	}
	return string(runes)
}
