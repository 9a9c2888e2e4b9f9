// Command load asks a server of a gallery (trainer serve) as fast as it answers, and prints how
// long answers take and how many come in a second. For example:
//
//	go run ./load -n 5000 -c 32                       # rows at random
//	go run ./load -n 5000 -c 32 -texts captions.txt   # texts, a line each
//	go run ./load -n 5000 -c 32 -reload 200ms         # and the gallery is reloaded meanwhile, of a server with --admin 127.0.0.1:8081
//
// Answers 429 and 503 are counted as refused and asked again. Any other answer but 200, and any
// connection that breaks, is a lost request: the program then exits with 1.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// load is what is asked, and what came of it.
type load struct {
	url    string
	admin  string // of reloads
	token  string
	k      int
	rows   int
	texts  []string
	client http.Client

	next, refused, lost, reloads atomic.Int64
	mu                           sync.Mutex
	took                         []time.Duration
	batches                      int
	example                      string // of a lost request
}

func main() {
	log.SetFlags(0)
	l := &load{}
	n := flag.Int("n", 2000, "requests")
	c := flag.Int("c", 32, "requests at once")
	flag.StringVar(&l.url, "url", "http://127.0.0.1:8080", "address of the server")
	flag.StringVar(&l.admin, "admin", "http://127.0.0.1:8081", "address of the server's --admin, for -reload")
	flag.StringVar(&l.token, "token", os.Getenv("GEOALIGN_TOKEN"), "token to show")
	flag.IntVar(&l.k, "k", 10, "hits of a request")
	texts := flag.String("texts", "", "file with a text per line to ask by; rows at random without")
	reload := flag.Duration("reload", 0, "time between reloads of the gallery; 0: none")
	flag.Parse()
	if *n < 1 || *c < 1 {
		log.Fatalf("load: -n and -c must be > 0 (got %d and %d)", *n, *c)
	}
	if err := l.prepare(*texts, *c); err != nil {
		log.Fatalln("load:", err)
	}
	took := l.run(*n, *c, *reload)
	l.print(*n, *c, took)
	if l.lost.Load() > 0 {
		os.Exit(1)
	}
}

// prepare reads the texts and asks what is served.
func (l *load) prepare(texts string, c int) error {
	l.client = http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: c}}
	if texts != "" {
		all, err := os.ReadFile(texts)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(all)) { // of any length
			if t := strings.TrimSpace(line); t != "" {
				l.texts = append(l.texts, t)
			}
		}
		if len(l.texts) == 0 {
			return fmt.Errorf("%s has no texts", texts)
		}
	}
	a, err := l.do(http.MethodGet, l.url+"/v1/info", nil)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	var info struct{ Rows int }
	if err := json.NewDecoder(a.Body).Decode(&info); err != nil || info.Rows < 1 {
		return fmt.Errorf("%s is not a server of a gallery: %d, %v", l.url, a.StatusCode, err)
	}
	l.rows = info.Rows
	return nil
}

// run sends all requests and returns the time they took together.
func (l *load) run(n, c int, reload time.Duration) time.Duration {
	done := make(chan struct{})
	var reloading sync.WaitGroup
	if reload > 0 {
		reloading.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(reload):
				}
				a, err := l.do(http.MethodPost, l.admin+"/v1/reload", nil)
				if err != nil || a.StatusCode != http.StatusOK {
					l.lose("reload", a, err)
				} else {
					l.reloads.Add(1)
				}
				if err == nil {
					a.Body.Close()
				}
			}
		})
	}
	start := time.Now()
	var all sync.WaitGroup
	for w := range c {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for l.next.Add(1) <= int64(n) {
				l.ask(l.body(r))
			}
		})
	}
	all.Wait()
	took := time.Since(start)
	close(done)
	reloading.Wait()
	return took
}

// do sends a request.
func (l *load) do(method, url string, body []byte) (*http.Response, error) {
	r, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if l.token != "" {
		r.Header.Set("Authorization", "Bearer "+l.token)
	}
	return l.client.Do(r)
}

func (l *load) body(r *rand.Rand) []byte {
	q := map[string]any{"k": l.k}
	if len(l.texts) > 0 {
		q["text"] = l.texts[r.IntN(len(l.texts))]
	} else {
		q["row"] = r.IntN(l.rows)
	}
	b, err := json.Marshal(q)
	if err != nil {
		panic(err) // words and numbers
	}
	return b
}

// ask sends a request until it is not refused.
func (l *load) ask(body []byte) {
	for {
		start := time.Now()
		a, err := l.do(http.MethodPost, l.url+"/v1/search", body)
		if err != nil {
			l.lose(string(body), nil, err)
			return
		}
		var reply struct {
			Batch int
			Hits  []any
		}
		b, err := io.ReadAll(a.Body)
		a.Body.Close()
		switch {
		case a.StatusCode == http.StatusTooManyRequests, a.StatusCode == http.StatusServiceUnavailable:
			l.refused.Add(1)
			time.Sleep(10 * time.Millisecond)
			continue
		case err != nil || a.StatusCode != http.StatusOK || json.Unmarshal(b, &reply) != nil || len(reply.Hits) == 0:
			l.lose(string(body)+" "+string(b), a, err)
			return
		}
		l.mu.Lock()
		l.took = append(l.took, time.Since(start))
		l.batches += reply.Batch
		l.mu.Unlock()
		return
	}
}

func (l *load) lose(what string, a *http.Response, err error) {
	l.lost.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	status := 0
	if a != nil {
		status = a.StatusCode
	}
	l.example = fmt.Sprintf("%s: %d %v", what, status, err)
}

func (l *load) print(n, c int, took time.Duration) {
	slices.Sort(l.took)
	at := func(share float64) time.Duration {
		if len(l.took) == 0 {
			return 0
		}
		return l.took[min(len(l.took)-1, int(share*float64(len(l.took))))].Round(10 * time.Microsecond)
	}
	fmt.Printf("%d requests, %d at once, %d rows: %.0f a second, p50 %v, p90 %v, p99 %v, most %v\n", n, c, l.rows,
		float64(len(l.took))/took.Seconds(), at(.5), at(.9), at(.99), at(1))
	fmt.Printf("mean batch %.1f, refused and asked again %d, reloads %d, lost %d\n",
		float64(l.batches)/float64(max(1, len(l.took))), l.refused.Load(), l.reloads.Load(), l.lost.Load())
	if l.example != "" {
		fmt.Println("a lost one:", l.example)
	}
}
