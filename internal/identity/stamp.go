package identity

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Stamp is what a file system says of a file. The zero Stamp is of no file.
type Stamp struct {
	Size     int64
	Modified int64  // nanoseconds since 1970, of the last change of the contents; a program can set it
	Changed  int64  // the same of the file's state, which no program can set back; 0: the system has none
	File     uint64 // number of the file on its device; 0: the system has none
	Device   uint64
}

// StampOf returns the stamp of the file at path, links followed.
func StampOf(path string) (Stamp, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Stamp{}, err
	}
	return StampOfInfo(st), nil
}

// StampOfInfo returns the stamp of a file that was asked about.
func StampOfInfo(st fs.FileInfo) Stamp {
	s := Stamp{Size: st.Size(), Modified: st.ModTime().UnixNano()}
	s.system(st)
	return s
}

// String is the stamp as a text that differs where stamps do.
func (s Stamp) String() string {
	return fmt.Sprintf("%d %d %d %d %d", s.Size, s.Modified, s.Changed, s.File, s.Device)
}

// Together returns a stamp of several files in their order: it is another one where one of theirs is.
func Together(stamps ...Stamp) Stamp {
	if len(stamps) == 1 {
		return stamps[0]
	}
	var all Stamp
	l := NewList()
	for _, s := range stamps {
		all.Size += s.Size
		all.Modified, all.Changed = max(all.Modified, s.Modified), max(all.Changed, s.Changed)
		l.Add(s.String())
	}
	sum := l.Sum()
	all.File, all.Device = binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])
	return all
}

// Shared is the stamp as a text for caches that several machines use: without the device, whose number each machine
// chooses for itself.
func (s Stamp) Shared() string {
	s.Device = 0
	return s.String()
}

// settled is how long ago a file must have changed for its stamp to prove anything: file systems count
// time in steps of up to two seconds, so that a file may change again within one and keep its stamp.
const settled = 2 * time.Second

// Proves reports whether a file that has this stamp at a later time is certain to hold what it held at
// the time read, when it had the stamp too.
func (s Stamp) Proves(read time.Time) bool {
	last := max(s.Modified, s.Changed)
	return s != Stamp{} && read.UnixNano()-last >= int64(settled)
}
