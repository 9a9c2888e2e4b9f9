//go:build unix

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/check"
)

// rowsFile writes a gallery of four rows.
func rowsFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.npy")
	check.OK(t, features.WriteArray(path, []int{4}, func(emit func([]float32) error) error {
		for i := range 4 {
			row := make([]float32, 4)
			row[i] = 1
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	}))
	return path
}

// served starts serve and returns what it prints and what ends it.
func served(t *testing.T, args ...string) (out *live, end func() (code int, stderr string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out = &live{}
	var messages live
	code := make(chan int, 1)
	go func() { code <- execute(ctx, append([]string{"serve"}, args...), out, &messages) }()
	end = func() (int, string) { cancel(); return <-code, messages.String() }
	waitFor(t, func() string { return out.String() + messages.String() }, `(serving|trainer: )`)
	return out, end
}

// TestServeSocket: a socket is this user's alone, one that was left over is replaced, one in use or another file is
// not, and it goes at the end.
func TestServeSocket(t *testing.T) {
	rows, dir := rowsFile(t), t.TempDir()
	path := filepath.Join(dir, "s")
	left := check.Get(net.Listen("unix", path))(t)
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	out, end := served(t, rows, "--listen", "unix:"+path, "--admin", "unix:"+path+"-admin", "--quiet")
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 || st.Mode()&fs.ModeSocket == 0 {
		t.Errorf("%v, %v", st, err)
	}
	client := func(path string) *http.Client {
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}}}
	}
	for _, x := range []struct{ socket, path, body string }{{path, "/v1/search", `{"row": 1}`}, {path + "-admin", "/v1/reload", ""}} {
		a, err := client(x.socket).Post("http://localhost"+x.path, "application/json", strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(a.Body); a.StatusCode != 200 {
			t.Errorf("%s: %d %s", x.path, a.StatusCode, b)
		}
		a.Body.Close()
	}
	contains(t, out.String(), "at unix:"+path+"\n", "reloads and figures at unix:"+path+"-admin\n")
	fails(t, exitFailed, []string{"serve", rows, "--listen", "unix:" + path}, "another process listens at "+path)
	if code, stderr := end(); code != exitDone {
		t.Errorf("code %d: %s", code, stderr)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("%v is left (%v)", list, err)
	}
	check.OK(t, os.WriteFile(path, nil, 0o666))
	fails(t, exitFailed, []string{"serve", rows, "--listen", "unix:" + path}, path+" is not a socket")
	fails(t, exitUsage, []string{"serve", rows, "--listen", "unix:"}, "unix: is followed by the path")
}

// TestServeFlags: what is wrong with tokens, certificates and addresses is said before the gallery is opened.
func TestServeFlags(t *testing.T) {
	rows := rowsFile(t)
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		check.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	long := strings.Repeat("a", 16)
	for want, args := range map[string][]string{
		"a token is a line of at least 16 visible": {"--token-file", file("short", "abc\n")},
		"has no token":                  {"--token-file", file("empty", "\n")},
		"belong together":               {"--tls-cert", file("c", "")},
		"--admin must be HOST:PORT":     {"--admin", "8081"},
		"add --public and --token-file": {"--admin", "0.0.0.0:0", "--public"},
		"--admin 0.0.0.0:0 can be reached from other machines": {"--admin", "0.0.0.0:0", "--token-file", file("good", long)},
		"--max-conns-per-client must be at least 1":            {"--max-conns-per-client", "0"},
	} {
		fails(t, exitUsage, append([]string{"serve", rows, "--listen", "127.0.0.1:0"}, args...), want)
	}
	for want, args := range map[string][]string{
		"--token-file: ":             {"--token-file", "none"},
		"--tls-cert and --tls-key: ": {"--tls-cert", file("c", "x"), "--tls-key", file("k", "x")},
		"--listen: ":                 {"--listen", "127.0.0.1:999999"},
		"--admin: ":                  {"--admin", "127.0.0.1:999999"},
	} {
		fails(t, exitFailed, append([]string{"serve", rows, "--listen", "127.0.0.1:0"}, args...), want)
	}
}

// TestServeDocumentedLines runs the lines of docs/serve.md and docs/server.md that ask a server, as they stand there,
// but for the ports.
func TestServeDocumentedLines(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	var text []byte
	for _, page := range []string{"serve.md", "server.md"} {
		b := check.Get(os.ReadFile(filepath.Join("..", "..", "docs", page)))(t)
		text = append(text, b...)
	}
	dir := t.TempDir()
	key := check.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true}
	der := check.Get(x509.CreateCertificate(rand.Reader, c, c, key.Public(), key))(t)
	private := check.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	for name, b := range map[string][]byte{
		"cert.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), "token": []byte("0123456789abcdef\n"),
	} {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	check.Get(tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")))(t)
	rows := rowsFile(t)
	t.Chdir(dir)
	ran := 0
	for _, secure := range []bool{false, true} {
		args := []string{rows, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--quiet"}
		if secure {
			args = append(args, "--token-file", "token", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
		}
		out, end := served(t, args...)
		ports := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindAllStringSubmatch(out.String(), 2)
		if len(ports) != 2 {
			t.Fatalf("%q", out.String())
		}
		for _, line := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(line, "curl ") || strings.Contains(line, "https:") != secure || strings.Contains(line, "text") || strings.Contains(line, "embeddings") || strings.Contains(line, "unix") {
				continue
			}
			for from, to := range map[string]string{"localhost:8080": "localhost:" + ports[0][1], "localhost:8443": "localhost:" + ports[0][1], "localhost:8081": "localhost:" + ports[1][1]} {
				line = strings.ReplaceAll(line, from, to)
			}
			b, err := exec.Command("sh", "-c", line+" --fail-with-body -sS").CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v: %s", line, err, b)
			}
			ran++
		}
		if code, stderr := end(); code != exitDone {
			t.Errorf("code %d: %s", code, stderr)
		}
	}
	if ran < 4 {
		t.Errorf("%d lines", ran)
	}
}
