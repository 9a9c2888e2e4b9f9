// Package hub fetches models of the Hugging Face hub by their names, into the cache that huggingface_hub has, so that
// both share what is there:
//
//	c, err := hub.FromEnvironment()
//	dir, err := c.Fetch(ctx, "sentence-transformers/all-MiniLM-L6-v2", weights.Wanted)
//
// A file gets its name when all of it is on the disk and its checksum is the one that the hub gives. What was
// interrupted goes on where it was.
package hub

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Client fetches models. It may be used by several goroutines, and by several processes with one cache.
type Client struct {
	Endpoint string // of the hub, such as https://huggingface.co
	Cache    string // folder of models--ORGANISATION--NAME
	Token    string // of an account, for models that are not public; empty: none
	Offline  bool   // ask nobody: what is in the cache, or an error
	// Progress is told how far a file is, from one goroutine; nil: nobody is.
	Progress func(file string, done, size int64)
	HTTP     *http.Client
	// Pause is how long is waited before a request that failed is sent again, times the number of failures.
	Pause time.Duration
}

// publicEndpoint is where models are looked for if the environment does not say.
const publicEndpoint = "https://huggingface.co"

// FromEnvironment returns a client by the variables that huggingface_hub has: HF_ENDPOINT, HF_HUB_CACHE, HF_HOME,
// XDG_CACHE_HOME, HF_TOKEN, HF_TOKEN_PATH, HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE, and those of proxies.
func FromEnvironment() (*Client, error) {
	home, err := huggingFaceHome()
	if err != nil {
		return nil, err
	}
	c := &Client{
		Endpoint: strings.TrimRight(cmp.Or(os.Getenv("HF_ENDPOINT"), publicEndpoint), "/"),
		Cache:    cmp.Or(os.Getenv("HF_HUB_CACHE"), os.Getenv("HUGGINGFACE_HUB_CACHE"), filepath.Join(home, "hub")),
		Token:    cmp.Or(os.Getenv("HF_TOKEN"), os.Getenv("HUGGING_FACE_HUB_TOKEN")),
		Offline:  isTrue(os.Getenv("HF_HUB_OFFLINE")) || isTrue(os.Getenv("TRANSFORMERS_OFFLINE")),
		HTTP: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
			ResponseHeaderTimeout: 30 * time.Second, IdleConnTimeout: 90 * time.Second}},
		Pause: time.Second,
	}
	if c.Token == "" {
		path := cmp.Or(os.Getenv("HF_TOKEN_PATH"), filepath.Join(home, "token"))
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("hub: the token of the hub: %w", err)
		}
		c.Token = string(text)
	}
	c.Token = strings.TrimSpace(c.Token)
	return c, nil
}

// huggingFaceHome is the folder of huggingface_hub.
func huggingFaceHome() (string, error) {
	if home := os.Getenv("HF_HOME"); home != "" {
		return home, nil
	}
	caches := os.Getenv("XDG_CACHE_HOME")
	if caches == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("hub: where is the cache of models? Set HF_HOME: %w", err)
		}
		caches = filepath.Join(home, ".cache")
	}
	return filepath.Join(caches, "huggingface"), nil
}

// isTrue is how huggingface_hub reads a switch.
func isTrue(value string) bool {
	return slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(value))
}
