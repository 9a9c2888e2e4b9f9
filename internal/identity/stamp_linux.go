package identity

import (
	"io/fs"
	"syscall"
)

// system adds what Linux says of a file.
func (s *Stamp) system(st fs.FileInfo) {
	if x, ok := st.Sys().(*syscall.Stat_t); ok {
		s.Changed, s.File, s.Device = x.Ctim.Nano(), x.Ino, x.Dev
	}
}
