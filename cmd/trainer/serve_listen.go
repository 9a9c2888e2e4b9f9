package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
)

// unixPrefix begins an address that is the path of a socket of this machine.
const unixPrefix = "unix:"

// local says whether an address can be reached from this machine alone.
func local(address string) (bool, error) {
	if path, is := strings.CutPrefix(address, unixPrefix); is {
		if path == "" {
			return false, errors.New("unix: is followed by the path of a socket, as in unix:/run/trainer.sock")
		}
		return true, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("must be HOST:PORT, as in 127.0.0.1:8080, or unix:PATH (got %q)", address)
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// listen listens at HOST:PORT or unix:PATH. A socket that a server which has ended left at the path is replaced; the
// new one only this user may connect to.
func listen(address string) (net.Listener, error) {
	path, is := strings.CutPrefix(address, unixPrefix)
	if !is {
		return net.Listen("tcp", address)
	}
	switch st, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case st.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s is not a socket: remove it or choose another path", path)
	default:
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			return nil, fmt.Errorf("another process listens at %s: end it or choose another path", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	defer ownerOnly()()
	return net.Listen("unix", path)
}

// describeListener is where a listener is reached, for a person.
func describeListener(l net.Listener, secure bool) string {
	switch {
	case l.Addr().Network() == "unix":
		return unixPrefix + l.Addr().String()
	case secure:
		return fmt.Sprintf("https://%s/", l.Addr())
	}
	return fmt.Sprintf("http://%s/", l.Addr())
}

// Tokens of clients.
const (
	tokenVariable = "GEOALIGN_TOKEN" // holds one, where there is no file
	shortestToken = 16               // characters: shorter ones are guessed
)

// readTokens reads a file with a token a line, or without one the variable. None is not an error.
func readTokens(path string) (list []string, err error) {
	text, from := os.Getenv(tokenVariable), tokenVariable
	if path != "" {
		b, err := files.Read(path, files.MaxConfig)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		text, from = string(b), "--token-file "+path
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(line) < shortestToken || strings.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, usageError{fmt.Errorf(
				"%s: a token is a line of at least %d visible ASCII characters, as `openssl rand -hex 32` prints one",
				from, shortestToken)}
		}
		list = append(list, line)
	}
	if path != "" && len(list) == 0 {
		return nil, usageError{fmt.Errorf("%s has no token: write one with `openssl rand -hex 32 > FILE`", from)}
	}
	return list, nil
}

// readTLS reads a certificate with its key; nil where none is named.
func readTLS(cert, key string) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
