package account

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAccount(t *testing.T) {
	a := New()
	a.Used("row", 3)
	if !a.Whole() || a.String() != "3 rows: 3 used" {
		t.Fatalf("got %q, whole %v", a, a.Whole())
	}
	for i, place := range []string{"a.csv: line 2", "a.csv: line 7", "", "d", "e", "f", "g"} {
		a.LeftOut("row", 1, "an empty caption", place)
		if a.Unused() != i+1 {
			t.Fatal(a.Unused())
		}
	}
	a.NotUnderstood("file", 1, "a kind of image that is not read (.bmp)", "x\n.bmp")
	a.Changed("row", 2, "cells that span lines", "a.csv: line 9")
	a.Changed("row", 0, "nothing")
	want := "10 rows: 3 used; left out: an empty caption: 7 (a.csv: line 2, ...); note: cells that span lines: 2 (a.csv: line 9, ...); " +
		`1 file: 0 used; not understood: a kind of image that is not read (.bmp): 1 (x\n.bmp)`
	if a.String() != want || a.Whole() {
		t.Errorf("got  %q\nwant %q", a, want)
	}
	if n := len(a.Units[0].LeftOut[0].Places); n != mostPlaces {
		t.Errorf("%d places are kept", n)
	}
	a.Move("row", 1, "it cannot be decoded", "b")
	b := New()
	b.Add(a)
	b.Add(a)
	if u := b.Units[0]; u.Met() != 20 || u.Used != 4 || len(u.LeftOut) != 2 || u.LeftOut[0].Count != 14 || len(u.LeftOut[0].Places) != mostPlaces {
		t.Errorf("got %+v", u)
	}
	text, err := json.Marshal(a)
	if err != nil || !strings.HasPrefix(string(text), `[{"of":"row","met":10,"used":2,"left_out":[{"why":"an empty caption","count":7,"places":["a.csv: line 2",`) {
		t.Errorf("%s, %v", text, err)
	}
}

// What is written in JSON is read as it was.
func TestJSON(t *testing.T) {
	a := New()
	a.Used("row", 2)
	a.LeftOut("row", 1, "x", "y")
	a.NotUnderstood("file", 2, "z")
	a.Changed("row", 1, "w")
	text, err := json.Marshal(a)
	var b Account
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil || b.String() != a.String() {
		t.Errorf("%s, %v, %v", text, &b, err)
	}
}

// Readers count without asking whether anybody wants to know.
func TestNil(t *testing.T) {
	var a *Account
	a.Used("row", 1)
	a.LeftOut("row", 1, "x", "y")
	a.NotUnderstood("row", 1, "x", "y")
	a.Changed("row", 1, "x")
	a.Move("row", 1, "x")
	a.Add(New())
	if !a.Whole() || a.Unused() != 0 || a.String() != "" || Of(3) != nil {
		t.Error("a nil account counts")
	}
}
