package files

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/geoalign/geoalign/internal/process"
	"github.com/geoalign/geoalign/internal/words"
)

// OwnerFile is the file in a locked folder that says who has the lock. It is there while the lock is held, and stays
// where its process is killed.
const OwnerFile = ".lock"

// Owner is what that file says.
type Owner struct {
	Program string `json:"program"` // ownProgram
	process.Identity
	Since   time.Time `json:"since"`
	Command string    `json:"command"` // line that started the process
	Token   string    `json:"token"`   // another one for each lock
}

// ownProgram marks an owner file of this program, as opposed to a file .lock of another.
const ownProgram = "geoalign"

// maxOwner is the largest size of the file in bytes, and maxCommand what is kept of a command line.
const (
	maxOwner   = 16 << 10
	maxCommand = 1000
)

// newOwner describes this process.
func newOwner(token string) Owner {
	command := strings.ToValidUTF8(strings.Join(os.Args, " "), "?")
	if len(command) > maxCommand {
		command = strings.ToValidUTF8(command[:maxCommand], "") + "..."
	}
	return Owner{Program: ownProgram, Identity: process.Self(), Since: time.Now().UTC().Truncate(time.Second),
		Command: command, Token: token}
}

// parseOwner reads an owner file, of which the beginning may be all that is there.
func parseOwner(b []byte) (o Owner, ok bool) {
	if json.Unmarshal(b, &o) != nil || o.Program != ownProgram || o.Token == "" {
		return Owner{}, false
	}
	return o, true
}

// readOwner reads the owner file at path and the time of its last heartbeat. The file is opened for that: a network
// file system looks at the server then.
func readOwner(path string) (o Owner, ok bool, beat time.Time, err error) {
	f, size, err := Open(path, maxOwner)
	if err != nil {
		return o, false, beat, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return o, false, beat, err
	}
	b, err := Rest(f, size, maxOwner)
	if err != nil {
		return o, false, beat, err
	}
	o, ok = parseOwner(b)
	return o, ok, st.ModTime(), nil
}

// String tells who it is in a line.
func (o Owner) String() string {
	command := ""
	if o.Command != "" {
		command = ": " + words.Inline(o.Command)
	}
	return fmt.Sprintf("process %d on %s since %s%s", o.PID, words.Inline(o.Host),
		o.Since.Local().Format("2006-01-02 15:04:05"), command)
}
