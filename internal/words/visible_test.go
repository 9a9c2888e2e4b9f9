package words

import "testing"

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"a dog\tand\na cat":     "a dog\tand\na cat",
		"déjà vu 日本 \U0001f600": "déjà vu 日本 \U0001f600",
		"\x1b[31mred\x1b[0m":    `\u001b[31mred\u001b[0m`,
		"over\rwrite\b\a\x00":   `over\u000dwrite\u0008\u0007\u0000`,
		"\x7f\u0085\u009b":      `\u007f\u0085\u009b`,
		"exe.\u202egpj\u2066":   `exe.\u202egpj\u2066`,
		"latin \xe9 and \x9b2J": `latin \xe9 and \x9b2J`,
		"\ufffd is a character": "\ufffd is a character",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestInline(t *testing.T) {
	if got, want := Inline("a\tb\nc\x1b\rd é"), `a\tb\nc\u001b\u000dd é`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
