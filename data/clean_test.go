package data

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestCleanLikeOpenCLIP compares with the cleaning functions of open_clip with ftfy (tools/goldens/openclip_clean.py).
func TestCleanLikeOpenCLIP(t *testing.T) {
	var g struct{ Texts, Whitespace, Lower, Canonicalize []string }
	check.OK(t, json.Unmarshal(check.Get(os.ReadFile("testdata/openclip_clean.json"))(t), &g))
	if len(g.Texts) < 300 {
		t.Fatalf("%d texts", len(g.Texts))
	}
	for rule, want := range map[string][]string{CleanNone: g.Texts, CleanWhitespace: g.Whitespace, CleanLower: g.Lower, CleanCanonicalize: g.Canonicalize} {
		for i, s := range g.Texts {
			if got := Clean(rule, s, 1); got != want[i] {
				t.Errorf("%s of %q: got %q, want %q", rule, s, got, want[i])
			}
		}
	}
	for _, s := range g.Texts {
		if got, want := Clean(CleanALBEF, s, 2), CleanCaption(s, 2); got != want || Clean("", s, 2) != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}

// TestEntities: what html.unescape of Python reads.
func TestEntities(t *testing.T) {
	for text, want := range map[string]string{
		"we are &#1 &#9x &#9": "we are  \tx \t", "a&#0;b&#x0": "a\ufffdb\ufffd", "&#31;&#x7f;&#xFDD0;&#65535;&#x10ffff;": "", "&#x110000;&#99999999999;&#xd800;": "\ufffd\ufffd\ufffd",
		"&#65&#66;&#X43": "ABC", "&#128;&#x92;&#129;": "\u20ac\u2019\u0081", "&#12;&#13;&#xb;&#32;": "\f\r ", "&#;&#x;&#xg;&": "&#;&#x;&#xg;&",
		"&notit; &amp &ampx &amp\u00e9;": "\u00acit; & &x &\u00e9;", "&nosuch; &acE;": "&nosuch; \u223e\u0333", "&#38;lt;": "&lt;", "&amp;#39;": "&#39;",
	} {
		if got := htmlText(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := Clean(CleanLower, "tom &amp;amp; jerry&amp;#39;s &amp;#1dog", 0); got != "tom & jerry's dog" {
		t.Errorf("read twice: %q", got)
	}
}
