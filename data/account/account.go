// Package account counts what a reader of inputs met and what became of it, so that nothing is passed over in silence:
//
//	a := account.New()
//	a.Used("row", 3)
//	a.LeftOut("row", 1, "an empty caption", "pairs.csv: line 5")
//	a.String() // "4 rows: 3 used; left out: an empty caption: 1 (pairs.csv: line 5)"
//
// What is met is the sum of what was used, left out and not understood: so the sums always agree.
package account

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// mostPlaces is the number of places that are kept of each reason.
const mostPlaces = 5

// Account is what became of inputs, by what they are. A nil *Account counts nothing. It is for one goroutine at a time.
type Account struct {
	Units []*Unit
}

// Unit is what became of inputs of one kind.
type Unit struct {
	Of            string // what is counted, in the singular, such as "row"
	Used          int
	LeftOut       []*Reason // known and not used
	NotUnderstood []*Reason // neither used nor known
	Changed       []*Reason // used otherwise than they were written, or in doubt; they are among those that are used
}

// Reason is why something became of inputs.
type Reason struct {
	Why    string   `json:"why"`
	Count  int      `json:"count"`
	Places []string `json:"places,omitempty"` // the first ones
}

// Accounted is implemented by what is made of inputs.
type Accounted interface {
	// Account is what became of the inputs. It may grow while they are read.
	Account() *Account
}

// Of returns the account of what is made of inputs, nil where it has none.
func Of(x any) *Account {
	if a, ok := x.(Accounted); ok {
		return a.Account()
	}
	return nil
}

// New returns an account of nothing.
func New() *Account { return &Account{} }

// unit returns what is counted of a kind.
func (a *Account) unit(of string) *Unit {
	for _, u := range a.Units {
		if u.Of == of {
			return u
		}
	}
	u := &Unit{Of: of}
	a.Units = append(a.Units, u)
	return u
}

// add counts n inputs at a place.
func add(list *[]*Reason, n int, why string, places ...string) {
	var r *Reason
	for _, x := range *list {
		if x.Why == why {
			r = x
		}
	}
	if r == nil {
		r = &Reason{Why: why}
		*list = append(*list, r)
	}
	r.Count += n
	for _, p := range places {
		if p != "" && len(r.Places) < mostPlaces {
			r.Places = append(r.Places, p)
		}
	}
}

// Used counts n inputs that are used.
func (a *Account) Used(of string, n int) {
	if a != nil {
		a.unit(of).Used += n
	}
}

// LeftOut counts n inputs that are not used, with the reason and the places of the first.
func (a *Account) LeftOut(of string, n int, why string, places ...string) {
	if a != nil && n > 0 {
		add(&a.unit(of).LeftOut, n, why, places...)
	}
}

// NotUnderstood counts n inputs that are not used since their meaning is not known.
func (a *Account) NotUnderstood(of string, n int, why string, places ...string) {
	if a != nil && n > 0 {
		add(&a.unit(of).NotUnderstood, n, why, places...)
	}
}

// Changed counts n inputs that are used otherwise than they were written. They are counted as used beside it.
func (a *Account) Changed(of string, n int, why string, places ...string) {
	if a != nil && n > 0 {
		add(&a.unit(of).Changed, n, why, places...)
	}
}

// Move turns n inputs that were counted as used into ones that are left out.
func (a *Account) Move(of string, n int, why string, places ...string) {
	if a != nil && n > 0 {
		a.unit(of).Used -= n
		a.LeftOut(of, n, why, places...)
	}
}

// Add adds what another account counts.
func (a *Account) Add(b *Account) {
	if a == nil || b == nil {
		return
	}
	for _, u := range b.Units {
		mine := a.unit(u.Of)
		mine.Used += u.Used
		for _, x := range []struct{ to, from *[]*Reason }{{&mine.LeftOut, &u.LeftOut},
			{&mine.NotUnderstood, &u.NotUnderstood}, {&mine.Changed, &u.Changed}} {
			for _, r := range *x.from {
				add(x.to, r.Count, r.Why, r.Places...)
			}
		}
	}
}

// Met is the number of inputs of the kind.
func (u *Unit) Met() int { return u.Used + sum(u.LeftOut) + sum(u.NotUnderstood) }

func sum(list []*Reason) (n int) {
	for _, r := range list {
		n += r.Count
	}
	return n
}

// Whole says that everything was used as it is written: nothing need be said.
func (a *Account) Whole() bool {
	if a == nil {
		return true
	}
	for _, u := range a.Units {
		if u.LeftOut != nil || u.NotUnderstood != nil || u.Changed != nil {
			return false
		}
	}
	return true
}

// Unused counts the inputs that are left out or not understood, of all kinds.
func (a *Account) Unused() (n int) {
	if a == nil {
		return 0
	}
	for _, u := range a.Units {
		n += u.Met() - u.Used
	}
	return n
}

// String is a line for people.
func (a *Account) String() string {
	if a == nil {
		return ""
	}
	list := make([]string, len(a.Units))
	for i, u := range a.Units {
		list[i] = u.String()
	}
	return strings.Join(list, "; ")
}

// String is what became of inputs of a kind.
func (u *Unit) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s used", words.Count(u.Met(), u.Of), words.Thousands(u.Used))
	for _, x := range []struct {
		what string
		list []*Reason
	}{{"left out", u.LeftOut}, {"not understood", u.NotUnderstood}, {"note", u.Changed}} {
		for i, r := range x.list {
			if i == 0 {
				fmt.Fprintf(&b, "; %s: ", x.what)
			} else {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s: %s", r.Why, words.Thousands(r.Count))
			if len(r.Places) > 0 {
				more := ""
				if r.Count > 1 {
					more = ", ..."
				}
				fmt.Fprintf(&b, " (%s%s)", words.Inline(r.Places[0]), more)
			}
		}
	}
	return b.String()
}

// unitJSON is a Unit in JSON.
type unitJSON struct {
	Of            string    `json:"of"`
	Met           int       `json:"met"`
	Used          int       `json:"used"`
	LeftOut       []*Reason `json:"left_out,omitempty"`
	NotUnderstood []*Reason `json:"not_understood,omitempty"`
	Changed       []*Reason `json:"notes,omitempty"`
}

// MarshalJSON gives a list of what is counted: of, met, used, left_out, not_understood and notes.
func (a *Account) MarshalJSON() ([]byte, error) {
	list := make([]unitJSON, 0, len(a.Units))
	for _, u := range a.Units {
		list = append(list, unitJSON{u.Of, u.Met(), u.Used, u.LeftOut, u.NotUnderstood, u.Changed})
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads what MarshalJSON gives.
func (a *Account) UnmarshalJSON(b []byte) error {
	var list []unitJSON
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	a.Units = nil
	for _, u := range list {
		a.Units = append(a.Units, &Unit{u.Of, u.Used, u.LeftOut, u.NotUnderstood, u.Changed})
	}
	return nil
}
