//go:build (linux || darwin) && (amd64 || arm64) && !static

package dynlib

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// A servant that answers what it is asked, or ends in the way that it is told.
func init() {
	Serve("echo", func(args []string, questions io.Reader, answers io.Writer) int {
		fmt.Fprintln(answers, "this is not an answer")
		for lines := bufio.NewScanner(questions); lines.Scan(); {
			var q string
			_ = json.Unmarshal(lines.Bytes(), &q)
			switch q {
			case "exit":
				fmt.Fprintln(os.Stderr, "\n no room ")
				return 7
			case "crash":
				_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
				select {}
			case "interrupt":
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			case "hang":
				select {}
			}
			_ = json.NewEncoder(answers).Encode(args[0] + q)
		}
		return 0
	})
}

// A servant that hangs and says in a file that it lives, and one that starts it.
func init() {
	Serve("alive", func(args []string, _ io.Reader, _ io.Writer) int {
		for i := 0; ; i++ {
			_ = os.WriteFile(args[0], fmt.Append(nil, i), 0o666)
			time.Sleep(20 * time.Millisecond)
		}
	})
	Serve("parent", func(args []string, questions io.Reader, answers io.Writer) int {
		_, err := Start("alive", args[0])
		_ = json.NewEncoder(answers).Encode(err == nil)
		_, _ = io.Copy(io.Discard, questions)
		return 0
	})
}

// A child that hangs ends after its parent.
func TestChildWithoutParent(t *testing.T) {
	beat := filepath.Join(t.TempDir(), "beat")
	parent := check.Get(Start("parent", beat))(t)
	var started bool
	if err := parent.Ask(nil, &started, 10*time.Second); err != nil || !started {
		t.Fatal(started, err)
	}
	last, deadline := "", time.Now().Add(20*time.Second)
	wait := func(step time.Duration, until func(text string) bool) {
		for ; ; time.Sleep(step) {
			text, _ := os.ReadFile(beat)
			if until(string(text)) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("it goes on without its parent, or never began")
			}
			last = string(text)
		}
	}
	wait(10*time.Millisecond, func(text string) bool { return text != "" })
	parent.Close()
	wait(500*time.Millisecond, func(text string) bool { return text == last })
}

func TestChild(t *testing.T) {
	rows := []struct {
		question, how string
		late, outside bool
	}{
		{"exit", "ended a trial process (exit status 7), which said no room", false, false},
		{"crash", "ended a trial process (signal: segmentation fault)", false, false},
		{"interrupt", "ended a trial process (signal: killed)", false, true},
		{"hang", "gave no answer within 300ms", true, false},
	}
	for _, r := range rows {
		c := check.Get(Start("echo", "you said "))(t)
		for _, word := range []string{"one", "two"} {
			var answer string
			if err := c.Ask(word, &answer, 10*time.Second); err != nil || answer != "you said "+word {
				t.Errorf("%q, %v", answer, err)
			}
		}
		limit := 10 * time.Second
		if r.question == "hang" {
			limit = 300 * time.Millisecond
		}
		var answer string
		err := c.Ask(r.question, &answer, limit)
		var end *EndedError
		if !errors.As(err, &end) || end.How != r.how || end.Late != r.late || end.Outside != r.outside || err.Error() != r.how {
			t.Errorf("%s: %v", r.question, err)
		}
		if err := c.Ask("more", &answer, time.Second); err == nil {
			t.Errorf("%s: answers after its end", r.question)
		}
	}
	c := check.Get(Start("echo", ""))(t)
	c.Close()
	if c.command.ProcessState == nil {
		t.Error("it goes on after Close")
	}
	c = check.Get(Start("nobody"))(t)
	check.Error(t, c.Ask(nil, new(string), 10*time.Second), "exit status 0")
}
