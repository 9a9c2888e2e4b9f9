package ptb

// A rule is one kind of token. Of all rules the one with the longest match counts, of those of one length the first.
// What follows must be there and counts in that length, but it is not a part of the token.
type rule struct {
	name    string
	text    string // an expression, see anyCase
	follows string // likewise; "": anything
	form    form
}

// expression is that of the text and what follows.
func (r rule) expression() string {
	return "(?:" + anyCase(r.text) + ")(?:" + anyCase(r.follows) + ")"
}

// Parts of rules.
var (
	blank   = `[` + blanks + `]`
	newline = `(?:\r?\n|[\r\x{2028}\x{2029}\x0B\x0C\x{85}])`
	gap     = `(?:` + blank + `|` + newline + `)`

	digit  = `[` + digits + `]`
	letter = `(?:[` + letters + marks + `]|&[aeiouAEIOU](?:acute|grave|uml);)`
	plain  = `[` + letters + `]` // a letter proper
	plains = `[` + letters + digits + `]`
	word   = letter + `(?:` + letter + `|` + digit + `)*`
	stem   = `(?:` + letter + `|` + digit + `)+`

	apostrophe  = `(?:['\x{92}\x{2019}]|&apos;)`
	apostrophes = `(?:['\x{92}\x{2019}` + "`" + `\x{91}\x{2018}\x{201B}]|&apos;)` // and those that should be one
	clitic      = apostrophe + `(?:[msdMSD]|re|ve|ll)`
	not         = `n` + apostrophes + `t`
	inner       = `[,;:\x{3001}]` // marks inside a sentence
	ampersand   = `(?:&|&amp;)`

	dotted = word + `(?:[.!?]` + word + `)*`
	number = `(?:` + digit + `+|` + digit + `*(?:[.:,\x{AD}\x{66B}\x{66C}]` + digit + `+)+)`

	attribute = `[A-Za-z][A-Za-z0-9_:.\-]*[ ]*=[ ]*(?:'[^']*'|"[^"]*")`
	tag       = `<(?:[!?][A-Za-z\-][^>\r\n]*` +
		`|[A-Za-z][A-Za-z0-9_:.\-]*(?:[ ]+(?:[A-Za-z][A-Za-z0-9_:.\-]*|` + attribute + `))*[ ]*/?` +
		`|/[A-Za-z][A-Za-z0-9_:.\-]*)[ ]*>`
	sentenceEnd = gap + `(?:` + gap + `|[` + uppercase + `]|` + tag + `)`

	hyphen      = `[\-_\x{58A}\x{2010}\x{2011}]`
	prefixed    = `(?:[dDoOlL]` + apostrophes + plains + `)?` + plains + `+` // as in d'Artagnan
	hyphenated  = prefixed + `(?:` + hyphen + prefixed + `)*`
	hyphenated2 = `[A-Za-z0-9][A-Za-z0-9.,\x{AD}]*(?:-(?:[A-Za-z0-9\x{AD}]+|(?:` + twoInitials + `)\.))+`
	joined      = `[A-Z]+(?:(?:[+&]|&amp;)[A-Z]+)+` // as in AT&T
	slashed     = `[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}`

	// the range from the comma to the underscore is as Stanford has it
	host      = "[^ \\t\\n\\f\\r\"`'<>|.!?(){},-_$]+"
	lastOfURL = `[^ \t\n\f\r"<>|.!?(){},\-]`
)

var rules = []rule{
	{"C++", `c[+][+]`, "", asIs},
	{"C#", `[cfCF]#`, "", asIs},
	{"cannot", `cannot`, "", first(3)},
	{"'twas", `'twas`, "", first(3)},
	{"'tis", `'tis`, "", first(2)},
	{"gonna", `gonna|gotta|lemme|gimme|wanna`, "", first(2)},
	{"tag", tag, "", unbroken},
	{"dash", `&(?:MD|mdash|ndash);|[\x{96}\x{97}\x{2013}-\x{2015}]`, "", always("--")},
	{"ampersand", `&amp;`, "", withAmpersand},
	{"entity", `&(?:HT|TL|UR|LR|QC|QL|QR|odq|cdq|#[0-9]+);`, "", asIs},
	{"word before clitic", dotted, clitic, withoutSoft},
	{"word before not", `[A-Za-z\x{AD}]*[A-MO-Za-mo-z]\x{AD}*`, not, withoutSoft},
	{"word", dotted, "", withoutSoft},
	{"word with apostrophe", words(
		apostrophe+`n`+apostrophe+`?`, `[lLdDjJ]`+apostrophe, `Dunkin`+apostrophe, `somethin`+apostrophe,
		`ol`+apostrophe, apostrophe+`em`, `[A-HJ-XZn]`+apostrophes+plain+`{2}`+plain+`*`, apostrophe+`[2-9]0s`,
		apostrophe+`till?`, plain+plain+`*[aeiouyAEIOUY]`+apostrophes+`[aeiouA-Z]`+plain+`*`,
		apostrophe+`cause`, `cont'd\.?`, `'twas`, `nor'easter`, `c'mon`, `e'er`, `s'mores`, `ev'ry`, `li'l`, `nat'l`,
		`O`+apostrophes+`o`,
	), "", asIs},
	{"y'", `y` + apostrophe, plain, asIs},
	{"URL", `https?://[^ \t\n\f\r"<>|(){}]+` + lastOfURL, "", asIs},
	{"likely URL", `(?:www\.(?:[^ \t\n\f\r"<>|.!?(){},]+\.)+[a-zA-Z]{2,4}|(?:` + host + `\.)+(?:com|net|org|edu))(?:/[^ \t\n\f\r"<>|()]+` + lastOfURL + `)?`, "", asIs},
	{"address", `(?:&lt;|<)?[a-zA-Z0-9][^ \t\n\f\r"<>|()\x{A0}{}]*@(?:[^ \t\n\f\r"<>|(){}.\x{A0}]+\.)*[^ \t\n\f\r"<>|(){}.\x{A0}]+(?:&gt;|>)?`, "", asIs},
	{"handle", `@[a-zA-Z_][a-zA-Z_0-9]*|#` + letter + `+`, "", asIs},
	{"clitic", clitic, `[^A-Za-z]`, quoted(false)},
	{"not", not, `[^A-Za-z]`, quoted(false)},
	{"date", digit + `{1,2}[\-/]` + digit + `{1,2}[\-/]` + digit + `{2,4}`, "", asIs},
	{"number", `[\-+]?` + number, "", withoutSoft},
	{"raised number", `[\x{207A}\x{207B}\x{208A}\x{208B}]?(?:[\x{2070}\x{B9}\x{B2}\x{B3}\x{2074}-\x{2079}]+|[\x{2080}-\x{2089}]+)`, "", asIs},
	{"fraction", `(?:` + digit + `{1,4}[\- \x{A0}])?` + digit + `{1,4}(?:\\?/|\x{2044})` + digit + `{1,4}`, "", unbroken},
	{"fraction sign", `[\x{BC}-\x{BE}\x{2153}-\x{215E}]`, "", spelledFraction},
	{"special", words(`-(?:RRB|LRB|RCB|LCB|RSB|LSB)-`, `C\.D\.s`, `pro-`, `anti-`, `S`+ampersand+`P-500`,
		`S`+ampersand+`Ls`, `Cap`+apostrophe+`n`, `c`+apostrophe+`est`), "", withAmpersand},
	{"alternatives", slashed + `(?:\\?/` + slashed + `){1,2}`, "", asIs},
	{"currency", `[A-Z]*\$|#`, "", asIs},
	{"currency sign", `[\x{A2}-\x{A5}\x{80}\x{20A0}\x{20AC}\x{60B}\x{E3F}\x{20A4}\x{FFE0}\x{FFE1}\x{FFE5}\x{FFE6}]`, "", spelledCurrency},
	{"initials before sentence", `(?:` + initials + `)\.`, gap + `+(?:` + opening + `|` + tag + `)` + gap, initialsAtEnd},
	{"abbreviation before number", beforeNumber + `\.`, gap + `?` + digit, asIs},
	{"Pty.", `(?:pt[eyEY]|co)\.`, blank + `(?:ltd|lim)`, asIs},
	{"abbreviation before sentence", beforeLower + `\.`, sentenceEnd, pointTwice},
	{"abbreviation", beforeLower + `\.`, `[\x{0}-\x{FFFF}]{2}`, asIs},
	{"abbreviation at the end", beforeLower + `\.`, "", pointTwice},
	{"abbreviation before name", beforeName + `\.`, "", asIs},
	{"abbreviation without point", beforeName, blank, asIs},
	{"initials", initials, gap, asIs},
	{"year", apostrophe + `[0-9][0-9]`, gap, asIs},
	{"file", stem + `(?:[.]` + stem + `)*[.]` + extensions, gap + `|[.?!,]`, asIs},
	{"word with point", dotted + `\.`, inner, withoutSoft},
	{"phone", `(?:\([0-9]{2,3}\)[ \x{A0}]?|(?:\+\+?)?(?:[0-9]{2,4}[\- \x{A0}])?[0-9]{2,4}[\- \x{A0}])[0-9]{3,4}[\- \x{A0}]?[0-9]{3,5}` +
		`|(?:(?:\+\+?)?[0-9]{2,4}\.)?[0-9]{2,4}\.[0-9]{3,4}\.[0-9]{3,5}`, "", unbrokenBrackets},
	{"opening quote", `"|&quot;`, `[A-Za-z0-9$]`, quoted(true)},
	{"quote", `"|&quot;`, "", quoted(false)},
	{"delete", `\x{7F}`, "", nothing},
	{"less", `<|&lt;`, "", always("<")},
	{"greater", `>|&gt;`, "", always(">")},
	{"smiley", `[<>]?[:;=][\-o*']?[()DPdpO\\{@|\[\]]`, `[^A-Za-z0-9]`, brackets},
	// The end of the first is as Stanford has it, where a bracket was meant to be one.
	{"Asian smiley", `[\^x=~<>]\.\[\^x=[^<]*<>\]|[\-\^x=~<>']_[\-\^x=~<>']|\([\-\^x=~<>'][_.]?[\-\^x=~<>']\)|\([\^x=~<>']-[\^x=~<>'` + "`" + `]\)`, "", brackets},
	{"{", `\{`, "", always("-LCB-")},
	{"}", `\}`, "", always("-RCB-")},
	{"[", `\[`, "", always("-LSB-")},
	{"]", `\]`, "", always("-RSB-")},
	{"(", `\(`, "", always("-LRB-")},
	{")", `\)`, "", always("-RRB-")},
	{"hyphens", `-+`, "", dashes},
	{"ellipsis", `\.{3,5}|(?:\.[ \x{A0}]){2,4}\.|[\x{85}\x{2026}]`, "", always("...")},
	{"@ # _", `@+|#+|_+`, "", asIs},
	{"*", `\*+|(?:\\\*){1,3}`, "", asIs},
	{"inner mark", inner, "", asIs},
	{"? !", `[?!]+`, "", asIs},
	{"last mark", `[.\x{A1}\x{BF}\x{37E}\x{589}\x{61F}\x{6D4}\x{700}-\x{702}\x{7FA}\x{3002}]`, "", asIs},
	{"=", `=`, "", asIs},
	{"/", `/`, "", asIs},
	{"hyphenated with point", hyphenated2 + `\.`, inner, withoutSoft},
	{"hyphenated", hyphenated2, "", withoutSoft},
	{"hyphenated of letters with point", hyphenated + `\.`, inner, asIs},
	{"hyphenated of letters", hyphenated, "", asIs},
	{"joined with point", joined + `\.`, inner, withAmpersand},
	{"joined", joined, "", withAmpersand},
	{"opening single quote", `'`, `[A-Za-z][^ \t\n\r\x{A0}]`, quoted(true)},
	{"clitic at the end", clitic, "", quoted(false)},
	{"not at the end", not, "", quoted(false)},
	{"quotes", apostrophe + `|''|[` + "`" + `\x{2018}-\x{201F}\x{91}-\x{94}\x{2039}\x{203A}\x{AB}\x{BB}]{1,2}`, "", quoted(false)},
	{"<<", `<<|>>`, "", asIs},
	{"symbol", `[` + symbols + `]`, "", asIs},
	{"space", `\x00|` + blank + `+|[\x{200B}\x{200E}\x{200F}\x{FEFF}]`, "", nothing},
	{"newline", newline, "", lineEnd},
	{"&nbsp;", `&nbsp;`, "", nothing},
	{"anything else", `[^\n\r\x{2028}\x{2029}\x0B\x0C\x{85}]`, "", nothing},
}
