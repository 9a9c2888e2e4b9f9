package parallel

import "time"

// What not every group can do are interfaces of one method. A group that stands for another one has
// Unwrap, by which they are found.

// Aborter is a group that can end all its processes at once, this one among them: what is not saved is lost. It says
// err, unless it is nil, and does not return.
type Aborter interface{ Abort(err error) }

// Placed is a group that knows which of its ranks share a machine.
type Placed interface {
	// Local returns the place of this rank among those of its machine, and their number.
	Local() (rank, ranks int)
	// Threads is how many threads a rank may compute with, so that the ranks of a machine are not in each other's way.
	Threads() int
}

// Wired is a group that can send what Begin sums in fewer bytes: "fp32" or "bf16". All ranks set the same.
type Wired interface{ SetWire(form string) error }

// Patient is a group that ends all its processes where one is waited for longer than that in an exchange.
type Patient interface{ SetTimeout(d time.Duration) }

// Attentive is a group that says in its errors what this rank was at, as "update" 1200.
type Attentive interface{ At(what string, number int) }

// Timed is a group that knows how long it has exchanged, on a thread of its own for what Begin began.
type Timed interface{ Times() Times }

// Times are sums since the group was made.
type Times struct {
	Exchanges int   // that were made
	Bytes     int64 // that this rank gave
	// from the beginning of each exchange on this rank to its end: the wait for slower ranks is a part of it
	Exchange time.Duration
}

// As returns the ability T of a group, or of one that it stands for, and whether there is one.
func As[T any](g Group) (ability T, ok bool) {
	for g != nil {
		if ability, ok = g.(T); ok {
			return ability, true
		}
		u, more := g.(interface{ Unwrap() Group })
		if !more {
			break
		}
		g = u.Unwrap()
	}
	return ability, false
}
