package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strings"
)

// embeddingsRequest is the body of POST /v1/embeddings, in the form of OpenAI's API.
type embeddingsRequest struct {
	Input      inputs `json:"input"`
	Model      string `json:"model"`           // any: the server has one
	Encoding   string `json:"encoding_format"` // float or base64
	Dimensions *int   `json:"dimensions"`
	User       string `json:"user"` // passed over
}

// embeddingsKeys are the names of a request.
var embeddingsKeys = []string{"input", "model", "encoding_format", "dimensions", "user"}

// inputs are texts, and images as data URLs: one or a list of them.
type inputs []string

// UnmarshalJSON implements json.Unmarshaler.
func (x *inputs) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte(`"`)) {
		*x = make(inputs, 1)
		return json.Unmarshal(b, &(*x)[0])
	}
	return json.Unmarshal(b, (*[]string)(x))
}

// embeddingsReply is the answer.
type embeddingsReply struct {
	Object string           `json:"object"` // list
	Data   []embeddingReply `json:"data"`
	Model  string           `json:"model"` // path of the checkpoint or weights
	Usage  struct {
		Prompt int `json:"prompt_tokens"` // of texts
		Total  int `json:"total_tokens"`
	} `json:"usage"`
}

// embeddingReply is the features of one input, (C) numbers or the base64 of as many little-endian float32.
type embeddingReply struct {
	Object    string `json:"object"` // embedding
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

// embeddings answers POST /v1/embeddings with the features of texts and images as they are compared with the rows of the
// gallery.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) error {
	x := s.current.acquire()
	defer s.current.release(x)
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Limits.Answer)
	defer cancel() // of those that still wait after an error too
	in, done, err := decode[embeddingsRequest](ctx, s, w, r, embeddingsKeys)
	if err != nil {
		return err
	}
	defer done()
	switch dim, most := x.Gallery.Dim(), s.o.Limits.Batch; {
	case len(in.Input) < 1 || len(in.Input) > most:
		return bad("input must be a text, a data URL of an image, or a list of 1 to %d of them (got %d)", most, len(in.Input))
	case in.Encoding != "" && in.Encoding != "float" && in.Encoding != "base64":
		return bad("encoding_format must be float or base64 (got %q)", cut(in.Encoding, 40))
	case in.Dimensions != nil && *in.Dimensions != dim:
		return bad("dimensions must be %d, those of the model, or left out (got %d)", dim, *in.Dimensions)
	}
	out := embeddingsReply{Object: "list", Model: x.Gallery.Meta.Model}
	queries := make([]*query, len(in.Input))
	for i, input := range in.Input { // each is encoded while the next one is read
		q := &query{ctx: ctx, on: x, row: -1, encode: true}
		if strings.HasPrefix(input, "data:image/") {
			err = s.image(q, input)
		} else if err = s.text(q, input); err == nil {
			out.Usage.Prompt += q.tokens
		}
		if err == nil {
			err = s.refused(s.batcher.put(q))
		}
		if err != nil {
			return err
		}
		queries[i] = q
	}
	out.Usage.Total = out.Usage.Prompt
	for i, q := range queries {
		a := s.batcher.wait(q)
		if err := s.refused(a.err); err != nil {
			return err
		}
		e := embeddingReply{Object: "embedding", Index: i, Embedding: a.vector}
		if in.Encoding == "base64" {
			b, err := binary.Append(nil, binary.LittleEndian, a.vector)
			if err != nil {
				return err
			}
			e.Embedding = b // which is written as base64
		}
		out.Data = append(out.Data, e)
	}
	reply(w, http.StatusOK, out)
	return nil
}
