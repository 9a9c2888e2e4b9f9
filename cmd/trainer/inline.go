package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/png"
	"io"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
)

// inline shows pictures between the lines of a terminal; the zero one shows none.
type inline struct {
	out   io.Writer // nil: the terminal cannot
	kitty bool      // by the protocol of kitty, else by that of iTerm2
}

// Sizes of pictures in a terminal.
const (
	inlinePixels = 192 // of the longer side
	inlineLines  = 6
	inlinePiece  = 4096 // bytes of base64 that kitty takes at once
)

// inlineOf returns what shows pictures on out, where that is a terminal which says in the environment that it can.
// Within tmux and screen, which pass nothing on, none are shown.
func inlineOf(out io.Writer, env func(string) string) inline {
	f := terminalOf(out)
	if f == nil {
		return inline{}
	}
	kitty, can := showsPictures(env)
	if !can {
		return inline{}
	}
	return inline{f, kitty}
}

// showsPictures says by which protocol a terminal shows pictures, if it does.
func showsPictures(env func(string) string) (kitty, can bool) {
	program := env("TERM_PROGRAM")
	switch {
	case env("TMUX") != "" || env("STY") != "":
		return false, false
	case env("TERM") == "xterm-kitty", env("KITTY_WINDOW_ID") != "", program == "ghostty", program == "WezTerm":
		return true, true
	}
	return false, program == "iTerm.app"
}

// picture shows the picture of a file. One that cannot be read is left out: its path is there.
func (s inline) picture(path string) {
	if s.out == nil {
		return
	}
	m, err := images.DecodeFile(path, images.DefaultMaxPixels)
	if err == nil {
		m, err = transform.Fit(m, inlinePixels)
	}
	var b bytes.Buffer
	if err == nil && png.Encode(&b, m.NRGBA()) == nil {
		s.write(b.Bytes())
	}
}

// write shows a PNG file.
func (s inline) write(file []byte) {
	text := base64.StdEncoding.EncodeToString(file)
	if !s.kitty {
		fmt.Fprintf(s.out, "\033]1337;File=inline=1;size=%d;height=%d:%s\a\n", len(file), inlineLines, text)
		return
	}
	head := fmt.Sprintf("a=T,f=100,q=2,r=%d,", inlineLines)
	for more := 1; more == 1; head = "" {
		piece := text[:min(len(text), inlinePiece)]
		if text = text[len(piece):]; text == "" {
			more = 0
		}
		fmt.Fprintf(s.out, "\033_G%sm=%d;%s\033\\", head, more, piece)
	}
	fmt.Fprintln(s.out)
}
