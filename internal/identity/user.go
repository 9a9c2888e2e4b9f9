package identity

import (
	"sync"

	"github.com/geoalign/geoalign/internal/usercache"
)

// userMost is how many entries the user's book keeps: 1.2 MB.
const userMost = 1 << 14

var user struct {
	mu   sync.Mutex
	book *Book
}

// User returns the book of the user's cache folder, for files that may lie where nothing can be written
// beside them. It is never saved where there is no such folder.
func User() *Book {
	user.mu.Lock()
	defer user.mu.Unlock()
	if path := usercache.File("sums"); user.book == nil || user.book.path != path {
		user.book = OpenBook(path)
		user.book.most = userMost
	}
	return user.book
}
