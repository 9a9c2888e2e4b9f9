package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
)

// TestTokens: without one of the server's tokens nothing of the gallery is told and nothing reloaded; the page, which asks for it, and health are
// answered to all.
func TestTokens(t *testing.T) {
	const good, other = "0123456789abcdef", "fedcba9876543210"
	s := newServer(t, makeGallery(t, 20), Options{Tokens: []string{good, other}})
	asked := []struct{ method, path string }{
		{"POST", "/v1/search"}, {"GET", "/v1/info"}, {"GET", "/v1/items/1"}, {"GET", "/v1/thumbnails/1"}, {"POST", "admin:/v1/reload"}, {"GET", "admin:/metrics"},
	}
	for _, x := range asked {
		for header, want := range map[string]int{
			"": 401, "Bearer": 401, "Bearer ": 401, "Bearer " + good[1:]: 401, "Bearer " + good + "0": 401, "Basic " + good: 401, good: 401, "Bearer " + good + " " + other: 401,
			"Bearer " + good: 200, "bearer " + other: 200,
		} {
			code, text := s.do(x.method, x.path, `{"row": 1}`, "Authorization", header)
			if code != want {
				t.Errorf("%s %s with %q: %d %.100s, want %d", x.method, x.path, header, code, text, want)
			}
		}
	}
	a := check.Get(http.Get(s.url + "/v1/info"))(t)
	a.Body.Close()
	if got := a.Header.Get("WWW-Authenticate"); got != `Bearer realm="geoalign"` {
		t.Errorf("challenge %q", got)
	}
	for _, path := range []string{"/", "/app.js", "/healthz", "/readyz", "admin:/healthz", "admin:/readyz"} {
		if code, _ := s.do("GET", path, ""); code != 200 {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// dialled opens connections to an address that say nothing.
func dialled(t *testing.T, addr string, n int) (list []net.Conn) {
	t.Helper()
	for range n {
		c := check.Get(net.Dial("tcp", addr))(t)
		t.Cleanup(func() { c.Close() })
		list = append(list, c)
	}
	return list
}

// get asks for a path over a connection of its own.
func get(t *testing.T, addr, path string) int {
	t.Helper()
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	a, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return 0
	}
	defer a.Body.Close()
	io.Copy(io.Discard, a.Body)
	return a.StatusCode
}

// TestIdleConnections: a client with many idle connections keeps neither others nor himself out for longer than the grace, health at the
// listener of its own is answered at once, and a connection in the middle of a request is not closed for a new one.
func TestIdleConnections(t *testing.T) {
	var open sync.Map
	f := &fake{block: make(chan struct{})}
	s, err := New(t.Context(), Options{Open: opener(t, makeGallery(t, 20), f, &open), Limits: Limits{Conns: 20, EachConns: 15, Read: time.Minute, Answer: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	l := check.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	admin := check.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, admin) }()
	addr := l.Addr().String()

	// A search in progress, and its connection.
	busy := make(chan int, 1)
	go func() {
		a, err := http.Post("http://"+addr+"/v1/search", "application/json", strings.NewReader(`{"text": "a"}`))
		if err != nil {
			t.Error(err)
			busy <- 0
			return
		}
		a.Body.Close()
		busy <- a.StatusCode
	}()
	until(t, "a search is in progress", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.batches) == 1 })
	list := dialled(t, addr, 100)
	if code := get(t, admin.Addr().String(), "/healthz"); code != 200 {
		t.Errorf("health at --admin: %d", code)
	}
	// Those beyond the limit are told.
	var told int
	for _, c := range list {
		c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if b, _ := bufio.NewReader(c).ReadString('\n'); strings.Contains(b, "429") {
			told++
		}
	}
	if told < 80 {
		t.Errorf("%d of 100 connections are refused, 15 are allowed", told)
	}
	time.Sleep(graceOfNew)
	if code := get(t, addr, "/healthz"); code != 200 {
		t.Errorf("after the grace: %d", code)
	}
	close(f.block)
	if code := <-busy; code != 200 {
		t.Errorf("the search in progress: %d", code)
	}
	s.metrics.mu.Lock()
	if s.metrics.refused["connections"] == 0 || s.metrics.refused["idle"] == 0 {
		t.Errorf("%v", s.metrics.refused)
	}
	s.metrics.mu.Unlock()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestTotalOfConnections: where all places are taken by idle connections of many clients, the one that has been idle for longest goes.
func TestTotalOfConnections(t *testing.T) {
	c := newConns(nil, 3, 2, func(string) {})
	add := func(client string, idleFor time.Duration) *conn {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		x := &conn{Conn: near, all: c, client: client, idle: idleFor > 0, since: time.Now().Add(-idleFor)}
		c.open[x] = true
		c.of[client]++
		return x
	}
	old, older, busy := add("a", time.Minute), add("b", time.Hour), add("c", 0)
	if err := c.room(); err != nil || c.open[older] || !c.open[old] || !c.open[busy] || c.of["b"] != 0 {
		t.Errorf("%v: %v", c.open, err)
	}
	c.state(old, http.StateActive)
	add("d", 0)
	waited := make(chan error, 1)
	go func() { waited <- c.room() }()
	select {
	case <-waited:
		t.Fatal("there is room where all are busy")
	case <-time.After(50 * time.Millisecond):
	}
	busy.Close()
	if err := <-waited; err != nil {
		t.Error(err)
	}
	for addr, want := range map[string]string{"1.2.3.4:5": "1.2.3.4", "[::1]:5": "::1", "[2001:db8:1:2:3:4:5:6]:7": "2001:db8:1:2::", "@": "", "": "", "/run/x": ""} {
		if got := addressOf(addr); got != want {
			t.Errorf("%s: %q", addr, got)
		}
	}
}

// TestSlowReaders: a client that asks and reads nothing is cut off.
func TestSlowReaders(t *testing.T) {
	var open sync.Map
	s, err := New(t.Context(), Options{Open: opener(t, makeGallery(t, 20), &fake{}, &open), Limits: Limits{Read: 200 * time.Millisecond, Answer: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	addr, cancel, ended := listen(t, s)
	c := dialled(t, addr, 1)[0]
	c.(*net.TCPConn).SetReadBuffer(4096)
	gone := make(chan error, 1)
	go func() {
		for {
			if _, err := io.WriteString(c, strings.Repeat("GET /app.js HTTP/1.1\r\nHost: localhost\r\n\r\n", 100)); err != nil {
				gone <- err
				return
			}
		}
	}()
	select {
	case <-gone:
	case <-time.After(30 * time.Second):
		t.Error("a client that reads nothing is served on")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// certificate makes one of 127.0.0.1.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key := check.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der := check.Get(x509.CreateCertificate(rand.Reader, c, c, key.Public(), key))(t)
	leaf := check.Get(x509.ParseCertificate(der))(t)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// TestTLS: searches over TLS, also over HTTP/2, whose connections are counted; older versions and plain HTTP are refused.
func TestTLS(t *testing.T) {
	cert, pool := certificate(t)
	var open sync.Map
	var text lockedBuffer
	s, err := New(t.Context(), Options{Open: opener(t, makeGallery(t, 20), &fake{}, &open), TLS: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, Limits: Limits{EachConns: 4, Read: time.Minute}, Log: &text})
	if err != nil {
		t.Fatal(err)
	}
	addr, cancel, ended := listen(t, s)
	for _, version2 := range []bool{false, true} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: version2}
		a, err := (&http.Client{Transport: tr}).Post("https://"+addr+"/v1/search", "application/json", strings.NewReader(`{"row": 1}`))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, a.Body)
		a.Body.Close()
		if a.StatusCode != 200 || (a.ProtoMajor == 2) != version2 {
			t.Errorf("%s: %d", a.Proto, a.StatusCode)
		}
		tr.CloseIdleConnections()
	}
	if c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11}); err == nil {
		c.Close()
		t.Error("TLS 1.1 is accepted")
	}
	if code := get(t, addr, "/v1/info"); code != 400 {
		t.Errorf("plain HTTP: %d", code)
	}
	dialled(t, addr, 20) // which never begin with TLS
	time.Sleep(graceOfNew + 100*time.Millisecond)
	a, err := (&http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}).Get("https://" + addr + "/healthz")
	if err != nil {
		t.Error(err)
	} else {
		a.Body.Close()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Contains(text.String(), "TLS") {
		t.Errorf("any client can fill the log: %s", text.String())
	}
}

// lockedBuffer is a buffer that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}
func (l *lockedBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// TestLog: names with line ends and codes of terminals are one line of the log, which looks like no other.
func TestLog(t *testing.T) {
	var text lockedBuffer
	s := newServer(t, makeGallery(t, 20), Options{Log: &text})
	s.Server.current.now.Picture = func(int) (*transform.Image, error) {
		return nil, &os.PathError{Op: "open", Path: "a\nreloaded: gallery evil of 1 rows\r\x1b[2J\u202e.png", Err: os.ErrPermission}
	}
	if code, body := s.do("GET", "/v1/thumbnails/1", ""); code != 404 || strings.Contains(body, "evil") {
		t.Errorf("%d %s", code, body)
	}
	got := text.String()
	if lines := strings.Count(got, "\n"); lines != 1 || strings.ContainsAny(got, "\r\x1b\u202e") || !strings.Contains(got, `a\nreloaded`) {
		t.Errorf("%d lines: %q", lines, got)
	}
	if code, body := s.do("GET", "/%0areloaded%1b", ""); code != 404 || strings.ContainsAny(strings.TrimSpace(body), "\n\x1b") {
		t.Errorf("%d %q", code, body)
	}
}

// TestRoots: pictures are read from the folder of the gallery's images and from those named beside it, by whatever path or link, and
// from nowhere else, by none.
func TestRoots(t *testing.T) {
	dir := t.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	at := func(path string) string { return filepath.Join(dir, filepath.FromSlash(path)) }
	for path, content := range map[string][]byte{"in/a.png": picture(t, 1, 8), "in/sub/b.png": picture(t, 2, 8), "out/c.png": picture(t, 3, 8), "in/text": []byte("secret"), "inside/d.png": picture(t, 4, 8)} {
		check.OK(t, os.MkdirAll(filepath.Dir(at(path)), 0o777))
		check.OK(t, os.WriteFile(at(path), content, 0o666))
	}
	for link, to := range map[string]string{"in/link.png": at("out/c.png"), "in/folder": at("out"), "in/near.png": "sub/b.png", "in/up.png": "../out/c.png", "in/self": "self", "other": at("in")} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Skip(err)
		}
	}
	alone := check.Get(openRoots([]string{at("in")}))(t)
	both, err := openRoots([]string{at("other"), at("out")}) // by a link
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][2]bool{
		"in/a.png": {true, true}, "in/sub/b.png": {true, true}, "in/near.png": {true, true}, "other/a.png": {true, true}, "in/sub/../a.png": {true, true},
		"in/link.png": {false, true}, "in/folder/c.png": {false, true}, "in/up.png": {false, true}, "out/c.png": {false, true}, "in/../out/c.png": {false, true},
		"inside/d.png": {false, false}, "in/self": {false, false}, "in/text": {false, false}, "in": {false, false}, "in/none.png": {false, false}, "/etc/passwd": {false, false}, "/dev/zero": {false, false},
	} {
		full := path
		if !filepath.IsAbs(path) {
			full = dir + "/" + path
		}
		for i, r := range []*roots{alone, both} {
			if _, err := r.picture(full, 1000); (err == nil) != want[i] || err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s of %q: %v", path, r.real, err)
			}
		}
	}
	// A link that is turned meanwhile leads nowhere: the system follows links within the folder alone.
	if f, err := alone.list[0].Open("link.png"); err == nil {
		f.Close()
		t.Error("a link that leads out is opened")
	}
	for _, r := range []*roots{alone, both} {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := openRoots([]string{at("in"), at("none")}); err == nil {
		t.Error("a folder that is not there")
	}
	if r, err := openRoots([]string{at("none")}); err != nil {
		t.Errorf("pictures of a gallery that are elsewhere: %v", err)
	} else if _, err := r.picture(at("in/a.png"), 0); err == nil {
		t.Error("a picture of no folder")
	}
}

// TestThumbnailsOfNames: a gallery whose names lead out of its folder shows no pictures of there.
func TestThumbnailsOfNames(t *testing.T) {
	dir := makeGallery(t, 8)
	outside := filepath.Join(t.TempDir(), "private.png")
	check.OK(t, os.WriteFile(outside, picture(t, 1, 8), 0o666))
	if err := os.Symlink(outside, filepath.Join(dir, "link.png")); err != nil {
		t.Skip(err)
	}
	up := check.Get(filepath.Rel(dir, outside))(t)
	names := []string{"<b>0.png", outside, "link.png", up, "/etc/passwd", "../../../../../../etc/passwd", "x\x00y", ""}
	var lines strings.Builder
	for i, name := range names {
		b, _ := json.Marshal(name)
		fmt.Fprintf(&lines, "{\"row\":%d,\"name\":%s}\n", i, b)
	}
	writeFile(t, dir, "x.jsonl", lines.String())
	for _, open := range []bool{false, true} {
		var more []string
		if open {
			more = []string{filepath.Dir(outside)}
		}
		s := check.Get(New(t.Context(), Options{Open: func(ctx context.Context) (*Source, error) {
			return Open(ctx, dir, OpenOptions{NoModel: true, Side: gallery.Image, Roots: more})
		}}))(t)
		addr, cancel, ended := listen(t, s)
		for row := range names {
			want := 404
			if row == 0 || open && row < 4 {
				want = 200
			}
			if code := get(t, addr, fmt.Sprint("/v1/thumbnails/", row)); code != want {
				t.Errorf("row %d (%q) with %q: %d, want %d", row, names[row], more, code, want)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
