package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// tokens are those that clients may show, as sums: to compare sums takes as long whatever is shown.
type tokens [][sha256.Size]byte

func newTokens(list []string) (t tokens) {
	for _, text := range list {
		t = append(t, sha256.Sum256([]byte(text)))
	}
	return t
}

// has says whether a request shows one of them.
func (t tokens) has(r *http.Request) bool {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	found := 0
	for _, x := range t {
		found |= subtle.ConstantTimeCompare(x[:], sum[:])
	}
	return strings.EqualFold(scheme, "Bearer") && found == 1
}

// authorized refuses requests without a token, where one is asked for.
func (s *Server) authorized(h func(w http.ResponseWriter, r *http.Request) error) func(w http.ResponseWriter,
	r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if len(s.tokens) == 0 || s.tokens.has(r) {
			return h(w, r)
		}
		challenge, text := `Bearer realm="geoalign"`,
			"the server asks for a token: send the header Authorization: Bearer TOKEN"
		if r.Header.Get("Authorization") != "" {
			challenge, text = challenge+`, error="invalid_token"`, "this token is none of the server's"
		}
		w.Header().Set("WWW-Authenticate", challenge)
		s.metrics.refuse("token")
		return &failure{http.StatusUnauthorized, text}
	}
}
