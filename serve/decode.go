package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/strictjson"
)

// body reads a request. Large ones have a place of their own until done is called.
func (s *Server) body(ctx context.Context, w http.ResponseWriter, r *http.Request) (b []byte, done func(), err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, nil, &failure{http.StatusUnsupportedMediaType,
			"the request must be JSON, with the header Content-Type: application/json"}
	}
	if how := r.Header.Get("Content-Encoding"); how != "" && !strings.EqualFold(how, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		return nil, nil, &failure{http.StatusUnsupportedMediaType,
			"a request that is compressed is not read: send it without Content-Encoding"}
	}
	most := s.o.Limits.Body
	tooLarge := &failure{http.StatusRequestEntityTooLarge, fmt.Sprintf("a request has at most %d bytes", most)}
	if r.ContentLength > most {
		return nil, nil, tooLarge
	}
	done = func() {}
	if r.ContentLength < 0 || r.ContentLength > largeBody {
		if !s.bodies.take(ctx, slotWait) {
			s.metrics.refuse("body")
			return nil, nil, &failure{http.StatusServiceUnavailable, "too many large requests: ask again in a second"}
		}
		done = s.bodies.give
	}
	b, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err == nil {
		return b, done, nil
	}
	done()
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, nil, tooLarge
	}
	return nil, nil, &failure{http.StatusRequestTimeout, "the request did not arrive as a whole"}
}

// decode reads strict JSON: one object of known keys, each once and in its own spelling. A large request has a place of its
// own until done is called.
func decode[T any](ctx context.Context, s *Server, w http.ResponseWriter, r *http.Request, keys []string) (in *T, done func(),
	err error) {
	body, done, err := s.body(ctx, w, r)
	if err != nil {
		return nil, nil, err
	}
	in = new(T)
	if err := decodeBody(body, in, keys); err != nil {
		done()
		return nil, nil, err
	}
	return in, done, nil
}

func decodeBody(body []byte, in any, keys []string) error {
	if !json.Valid(body) {
		return bad("the request is not JSON")
	}
	if err := known(body, keys); err != nil {
		return err
	}
	if err := strictjson.Check(body); err != nil {
		return bad("the request: %v", err)
	}
	return fill(body, in)
}

// known refuses what is no object, keys that are not among some, and null.
func known(body []byte, keys []string) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return bad("the request must be an object with some of %s", strings.Join(keys, ", "))
	}
	for d.More() { // ends at the first key that is wrong, before anything is made of all of them
		key, _ := d.Token()
		if name, _ := key.(string); !slices.Contains(keys, name) {
			return bad("there is no key %q: use %s", cut(name, 40), strings.Join(keys, ", "))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil || string(value) == "null" {
			return bad("key %q is null: leave it out", key)
		}
	}
	return nil
}

// fill decodes an object whose keys are known.
func fill(body []byte, in any) error {
	if err := json.Unmarshal(body, in); err != nil {
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return bad("key %q cannot be a %s", t.Field, cut(t.Value, 40))
		}
		if f, ok := errors.AsType[*failure](err); ok { // of an object within
			return f
		}
		return bad("the request cannot be read")
	}
	return nil
}
