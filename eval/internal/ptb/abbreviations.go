package ptb

import "strings"

// Abbreviations by what follows them in the newspapers that the Penn Treebank was made of. Without their last point. A
// letter in brackets must be written so: the others may have either case.

// before a word in lower case, or at the end of a sentence.
var beforeLower = words(
	// months and days; not "May", "Sat" and "Sun"
	`Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thurs Fri`,
	// states
	`Ala Ariz [A]z [A]rk Calif Colo Conn Ct Dak [D]el Fla Ga [I]ll Ind Kans? Ky [L]a [M]ass Md Mich Minn [M]iss Mo Mont Neb Nev Okla [O]re [P]a Penn
	Tenn [T]ex Va Vt [W]ash Wisc? Wyo`,
	// companies
	`Inc Cos? Corp Pp?t[ye]s? Ltd Plc Rt Bancorp Bhd Assn Univ Intl Sys`,
	// numbers, titles after a name, and others
	`tel est ext sq Jr Sr Bros (?:Ed|Ph)\.D Blvd Rd Esq etc al seq Bldg`,
)

// before a name.
var beforeName = words(
	`Mr Mrs Ms [M]iss Drs? Profs? Sens? Reps? Attys? Lt Col Gen Messrs Govs? Adm Rev Maj Sgt Cpl Pvt Capt Ste? Ave Pres Lieut Hon Brig Co?mdr Pfc
	Spc Supts? Det Mt Ft Adj Adv Asst Assoc Ens Insp Mlle Mme Msgr Sfc`,
	`vs Alex Wm Jos Cie a\.k\.a cf TREAS Ph`,
	`Invt Elec Natl M[ft]g Dept`,
	initials,
)

// before a number.
var beforeNumber = words(`ca figs? prop nos? art bldg pp op`)

// Letters with points between them, and countries.
const (
	countries   = `(?:Canada|Sino|Korean|EU|Japan|non)-U\.S|U\.S\.-(?:U\.K|U\.S\.S\.R)`
	initials    = `[A-Za-z](?:\.[A-Za-z])*|` + countries
	twoInitials = `[A-Za-z](?:\.[A-Za-z])+|` + countries // at least
)

// opening words begin a sentence after initials.
var opening = words(
	`[A]bout [A]ccording [A]dditionally [A]fter [A]n [A] [A]s [A]t [B]ut [E]arlier [H]e [H]er [H]ere [H]owever [I]f [I]n [I]t [L]ast [M]any [M]ore [M]r\. [M]s\.
	[N]ow [O]nce [O]ne [O]ther [O]ur [S]he [S]ince [S]o [S]ome [S]uch [T]hat [T]he [T]heir [T]hen [T]here [T]hese [T]hey [T]his [W]e [W]hen [W]hile [W]hat
	[Y]et [Y]ou`,
)

// extensions are those of file names.
var extensions = words(
	`bat bmp c class cgi cpp dll doc docx exe gif gz h htm html jar java jpeg jpg mov mp3 pdf php pl png ppt ps py sql tar txt wav x xml zip`,
)

// words returns an expression for each of some expressions between spaces.
func words(lists ...string) string {
	return "(?:" + strings.Join(strings.Fields(strings.Join(lists, " ")), "|") + ")"
}
