package hub

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/geoalign/geoalign/internal/words"
)

// unreachableError says that the hub could not be asked, which another attempt may do.
type unreachableError struct {
	endpoint string
	err      error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("%s cannot be reached: %v: is there a network (HTTPS_PROXY is heard)? HF_ENDPOINT names another "+
		"hub, and a folder with the files of the model goes by its path", e.endpoint, e.err)
}

func (e *unreachableError) Unwrap() error { return e.err }

// get sends a request, from the byte offset on, and returns the answer of success.
func (f *fetching) get(ctx context.Context, at string, offset int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "geoalign")
	if f.Token != "" {
		req.Header.Set("Authorization", "Bearer "+f.Token)
	}
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	client := *f.HTTP
	client.CheckRedirect = withinHost
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &unreachableError{f.Endpoint, err}
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, f.refusal(resp)
}

// withinHost follows redirections, and tells no other host the token, nor another port of this one.
func withinHost(req *http.Request, via []*http.Request) error {
	if req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
		req.Header.Del("Authorization")
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	}
	return nil
}

// maxRedirects is the most redirections of a request.
const maxRedirects = 10

// fileURL is where a file of the commit is.
func (f *fetching) fileURL(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return fmt.Sprintf("%s/%s/resolve/%s/%s", f.Endpoint, f.name.Repo, f.hash, strings.Join(parts, "/"))
}

// refusal says what an answer without success means, by the code that the hub gives.
func (f *fetching) refusal(resp *http.Response) error {
	status, code := resp.StatusCode, resp.Header.Get("X-Error-Code")
	token := "HF_TOKEN is set to the token of an account that may read it"
	if f.Token != "" {
		token = "the account of HF_TOKEN may read it"
	}
	switch {
	case code == "GatedRepo" || code == "" && status == http.StatusForbidden:
		return fmt.Errorf("the model is gated: see that its conditions are accepted at %s/%s and that %s", f.Endpoint,
			f.name.Repo, token)
	case code == "RevisionNotFound":
		return fmt.Errorf("the model has no revision %q: %s/%s/tree/%s lists them", f.name.Revision, f.Endpoint,
			f.name.Repo, Main)
	case code == "RepoNotFound" || status == http.StatusUnauthorized || status == http.StatusNotFound && code == "":
		return fmt.Errorf("there is no such model at %s, or it is private: check the name, and that %s", f.Endpoint, token)
	case status == http.StatusTooManyRequests || status >= 500:
		return &unreachableError{f.Endpoint, fmt.Errorf("it answers %s", resp.Status)}
	}
	return fmt.Errorf("%s answers %s: %s", f.Endpoint, resp.Status,
		words.Shown(cmp.Or(resp.Header.Get("X-Error-Message"), "without a reason")))
}

// readAll reads an answer of at most so many bytes.
func readAll(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("the answer is larger than %d bytes", most)
	}
	return text, err
}

// sleep waits, or ends with the context.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
