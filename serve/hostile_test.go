package serve

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// hostile is how many requests TestHostileRequests sends.
var hostile = flag.Int("hostile", 600, "requests that TestHostileRequests sends")

// attack is a request that a server should not answer with 200.
type attack struct {
	bytes string
	slow  bool // it is sent in two parts, of which the second never comes
	leave bool // the client does not wait for the answer
	may   bool // it may be a request like any other
}

// post is a search with a body.
func post(body string) string {
	return fmt.Sprintf("POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// bomb is a PNG that says it has w x h pixels.
func bomb(w, h uint32) []byte {
	b := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	head := []byte("IHDR")
	head = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(head, w), h)
	head = append(head, 8, 2, 0, 0, 0)
	return append(append(b, head...), binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(head))...)
}

// attacks are kinds of requests, of which r chooses one.
func newAttack(t *testing.T, r *rand.Rand) attack {
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return string(b)
	}
	valid := []string{`{"text": "a red circle", "k": 5}`, `{"row": 3}`, `{"vector": [1, 2, 3, 4], "k": 2, "exact": true}`, `{"image": "` + base64Of(picture(t, 3, 4)) + `"}`, `{"text_features": [1, 2, 3]}`}
	get := func(path string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	}
	switch r.IntN(14) {
	case 0: // no HTTP
		return attack{bytes: random(1+r.IntN(2000)) + "\r\n\r\n"}
	case 1: // a head that is too long
		return attack{bytes: "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + long(25_000+r.IntN(100_000)) + "\r\n\r\n"}
	case 2: // more or less than it says
		body := valid[r.IntN(len(valid))]
		return attack{bytes: fmt.Sprintf("POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", r.IntN(2)*1_000_000_000+len(body)/2, body)}
	case 3: // chunks that are none
		return attack{bytes: "POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + random(50)}
	case 4: // contradictory lengths
		return attack{bytes: "POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n{}{}{}"}
	case 5: // too large
		return attack{bytes: post(`{"text": "` + long(100_000+r.IntN(100_000)) + `"}`)}
	case 6: // deep
		return attack{bytes: post(strings.Repeat([]string{"[", `{"a":`, `{"vector":[`}[r.IntN(3)], 1+r.IntN(5000)))}
	case 7, 8: // a byte or a stretch of a request is another
		b := []byte(valid[r.IntN(len(valid))])
		for range 1 + r.IntN(4) {
			at := r.IntN(len(b))
			switch r.IntN(3) {
			case 0:
				b[at] = byte(r.Uint32())
			case 1:
				b = append(b[:at], b[at+r.IntN(len(b)-at):]...)
			case 2:
				b = append(b, b[at:]...)
			}
			if len(b) == 0 {
				b = []byte("x")
			}
		}
		return attack{bytes: post(string(b)), may: true}
	case 9: // files of the machine
		return attack{bytes: get("/" + strings.Repeat([]string{"../", "%2e%2e/", "..%2f", "..\\", "./"}[r.IntN(5)], 1+r.IntN(8)) + []string{"etc/passwd", "index.json", "x.jsonl", "v1/thumbnails/../../x.jsonl"}[r.IntN(4)])}
	case 10: // rows that are none
		return attack{bytes: get("/v1/" + []string{"items/", "thumbnails/"}[r.IntN(2)] + []string{"-1", "99999999999999999999", "1e3", "%00", "0/1", "..", "4", "3.5", "%F0%9F%90%88"}[r.IntN(9)]), may: true}
	case 11: // pictures that are large or none
		image := bomb(1+r.Uint32N(1<<17), 1+r.Uint32N(1<<17))
		if r.IntN(2) == 0 {
			image = append(bomb(8, 8), random(r.IntN(300))...)
		}
		return attack{bytes: post(`{"image": "` + base64Of(image) + `"}`)}
	case 12: // slow
		whole := post(valid[0])
		return attack{bytes: whole[:1+r.IntN(len(whole)-1)], slow: true}
	default: // gone before the answer
		return attack{bytes: post(valid[r.IntN(len(valid))]), leave: true}
	}
}

// Whatever comes in, it is refused with 4xx or the connection is closed, and the server lives and
// keeps nothing. -hostile sends more.
func TestHostileRequests(t *testing.T) {
	if testing.Short() {
		*hostile = min(*hostile, 100)
	}
	var open sync.Map
	s, err := New(t.Context(), Options{Open: opener(t, makeGallery(t, 20), &fake{}, &open), Limits: Limits{Body: 50_000, Pixels: 1_000_000, Read: 2 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	addr, cancel, ended := listen(t, s)
	before := runtime.NumGoroutine()

	var next atomic.Int64
	var mu sync.Mutex
	codes := map[int]int{}
	var all sync.WaitGroup
	const workers = 16
	for w := range workers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for next.Add(1) <= int64(*hostile) {
				a := newAttack(t, r)
				code, err := a.send(addr)
				if err != nil {
					t.Errorf("%.100q: %v", a.bytes, err)
				}
				mu.Lock()
				codes[code]++
				mu.Unlock()
				ok := code == 0 || code >= 400 && code < 500 || code == 200 && a.may || code == 307 || code == 501 || code == 503 || code == 505
				if !ok {
					t.Errorf("%.200q: code %d", a.bytes, code)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d requests, by status (0: closed or left): %v", *hostile, codes)
	if codes[200] > *hostile/5 || codes[400] == 0 {
		t.Errorf("these are no hostile requests: %v", codes)
	}
	a, err := http.Post("http://"+addr+"/v1/search", "application/json", strings.NewReader(`{"row": 1, "k": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(a.Body)
	a.Body.Close()
	if a.StatusCode != 200 || strings.Count(string(b), `"row"`) != 2 {
		t.Errorf("afterwards: %d %s", a.StatusCode, b)
	}
	http.DefaultClient.CloseIdleConnections()
	until(t, "what served them has ended", func() bool { return runtime.NumGoroutine() <= before+5 && len(s.bodies)+len(s.decoders) == 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// send returns the status of the answer, 0 where the connection was closed without one.
func (a attack) send(addr string) (int, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return 0, err
	}
	io.WriteString(c, a.bytes) // the server may close before the end
	if a.leave {
		return 0, nil
	}
	if !a.slow {
		if t, ok := c.(*net.TCPConn); ok {
			t.CloseWrite()
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		return 0, fmt.Errorf("no answer and no end of the connection")
	}
	if err != nil {
		return 0, nil
	}
	answer.Body.Close()
	return answer.StatusCode, nil
}

// TestManyKeys: a request of many keys is refused at the first that is unknown, before anything is made of the others.
func TestManyKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString("{")
	for i := range 300_000 {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	b.WriteString(`"text":"a"}`)
	body := []byte(b.String())
	done := budgettest.WithinBytes(t, 0, 100<<10)
	err := decodeBody(body, new(searchRequest), searchKeys)
	done()
	if err == nil || !strings.HasPrefix(err.Error(), `there is no key "k0": use text, `) {
		t.Error(err)
	}
}

// FuzzSearch: whatever a body is, it is refused as the client's fault or answered.
func FuzzSearch(f *testing.F) {
	for _, s := range []string{`{"text":"a"}`, `{"row":1,"k":3}`, `{"vector":[1,2,3,4],"exact":true}`, `{"image":"aGk="}`, `{"text_features":[1,2,3]}`, `{"image_features":[1,-2e30,3],"k":2}`, `{"text_features":[]}`, `{"text":"a","text":"b"}`, `{"row":1e400}`, `{`, `{"k":null}`} {
		f.Add([]byte(s))
	}
	s := newServer(f, makeGallery(f, 20), Options{})
	f.Fuzz(func(t *testing.T, body []byte) {
		defer budgettest.Within(t, len(body))()
		s.t = t
		code, text := s.do("POST", "/v1/search", string(body))
		if code != 200 && code/100 != 4 {
			t.Errorf("%q: %d %s", body, code, text)
		}
	})
}
