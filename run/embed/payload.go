package embed

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"os"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/strictjson"
	"github.com/geoalign/geoalign/run/console"
)

// payloads are inputs, each with an object of what else is known of it: a line of JSON of a file.
type payloads struct {
	inputs
	path string
	done int
	pull func() (table.Line, error, bool)
	stop func()
}

// withPayload gives inputs the lines of in.Payload, in their order; without one they stay as they are.
func withPayload(of inputs, in Inputs) (inputs, error) {
	if in.Payload == "" {
		return of, nil
	}
	if st, err := os.Stat(in.Images); err == nil && st.IsDir() {
		return nil, errors.Join(console.Argument("--payload has a line for each input: name the images in a list, and not the folder %s", in.Images), of.Close())
	}
	if _, err := os.Stat(in.Payload); err != nil {
		return nil, errors.Join(fmt.Errorf("--payload: %w", err), of.Close())
	}
	x := &payloads{inputs: of, path: in.Payload}
	x.pull, x.stop = iter.Pull2(textLines(in.Payload))
	return x, nil
}

// next adds the objects to the inputs, and to what they are known by.
func (x *payloads) next(n int) (*part, error) {
	p, err := x.inputs.next(n)
	if err != nil {
		return nil, err
	}
	if p == nil {
		if l, err, more := x.pull(); err != nil || more {
			return nil, errors.Join(err, fmt.Errorf("--payload %s: line %d has no input: give a line for each", x.path, l.Number))
		}
		return nil, nil
	}
	list := make([]json.RawMessage, p.gallery.Len())
	for i := range list {
		l, err, ok := x.pull()
		if err == nil && !ok {
			err = fmt.Errorf("it has %d lines, fewer than there are inputs: give a line for each", x.done)
		}
		if err == nil {
			err = object(l)
		}
		if err != nil {
			return nil, fmt.Errorf("--payload %s: %w", x.path, err)
		}
		x.done++
		list[i] = json.RawMessage(l.Text)
		p.sum = crc32.Update(p.sum, castagnoli, []byte(l.Text+"\n"))
		if p.images != nil {
			p.images.names[i] += "\x00" + l.Text
		}
	}
	if p.images != nil {
		p.images.stamps, p.images.proven = p.images.stamped()
	}
	line := p.line
	p.line = func(i, row int) any {
		b, err := json.Marshal(line(i, row))
		if err != nil {
			return err // which no struct of texts and numbers gives
		}
		return json.RawMessage(fmt.Appendf(b[:len(b)-1], `,"payload":%s}`, list[i]))
	}
	return p, nil
}

// object refuses a line that is no object.
func object(l table.Line) error {
	b := []byte(l.Text)
	if !json.Valid(b) || b[0] != '{' {
		return fmt.Errorf("line %d is not a JSON object: write one as {\"split\": \"test\"}", l.Number)
	}
	if err := strictjson.Check(b); err != nil {
		return fmt.Errorf("line %d: %w", l.Number, err)
	}
	return nil
}

func (x *payloads) Close() error {
	x.stop()
	return x.inputs.Close()
}
