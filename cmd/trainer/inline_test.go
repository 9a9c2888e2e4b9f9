package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// TestInline: pictures arrive whole by both protocols, and only where a terminal says that it shows them.
func TestInline(t *testing.T) {
	file := bytes.Repeat([]byte("picture"), 1000) // three pieces of kitty
	text := base64.StdEncoding.EncodeToString(file)
	var b strings.Builder
	inline{&b, false}.write(file)
	if want := fmt.Sprintf("\033]1337;File=inline=1;size=7000;height=6:%s\a\n", text); b.String() != want {
		t.Errorf("%.80q", b.String())
	}
	b.Reset()
	inline{&b, true}.write(file)
	want := "\033_Ga=T,f=100,q=2,r=6,m=1;" + text[:4096] + "\033\\\033_Gm=1;" + text[4096:8192] + "\033\\\033_Gm=0;" + text[8192:] + "\033\\\n"
	if b.String() != want {
		t.Errorf("%.80q", b.String())
	}
	for _, c := range []struct {
		env        string
		kitty, can bool
	}{{"TERM=xterm-kitty", true, true}, {"TERM_PROGRAM=iTerm.app", false, true}, {"TERM_PROGRAM=ghostty", true, true},
		{"TERM=xterm-256color", false, false}, {"TERM=xterm-kitty TMUX=1", false, false}} {
		env := func(name string) string {
			for _, pair := range strings.Fields(c.env) {
				if value, ok := strings.CutPrefix(pair, name+"="); ok {
					return value
				}
			}
			return ""
		}
		if kitty, can := showsPictures(env); kitty != c.kitty || can != c.can {
			t.Errorf("%s: %v, %v", c.env, kitty, can)
		}
	}
	if s := inlineOf(&b, func(string) string { return "xterm-kitty" }); s.out != nil {
		t.Error("a file is a terminal")
	}
}
