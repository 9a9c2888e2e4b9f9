// Package serve answers searches of an embedded gallery over HTTP: an API in JSON and a page for
// people.
//
//	s, err := serve.New(ctx, serve.Options{Open: open}) // open opens a gallery with its encoder
//	err = s.Serve(ctx, listener)                        // until ctx ends and what is asked is answered
//
// # How a query is answered
//
// A handler reads and checks a request and puts it into a queue. One goroutine takes all that wait,
// encodes their texts and their images together, searches for them together, and answers. While
// it computes, the next requests gather: under load batches grow, and a lone request waits for
// nobody. It is the only one to use the engine, whose threads share out each batch.
//
// # What is replaced
//
// Reload opens the gallery anew beside the one in use and then changes over. A request keeps the
// gallery that it began with, which is closed after the last of them. A reload that fails changes
// nothing.
//
// # What is changed
//
// A source with a Writer answers puts and deletions. They are on the disk before they are answered, and searches find
// them from then on. When there are many the gallery is written anew in the background, with its index, and changed
// over to.
//
// # What a client cannot do
//
// Every size, number and time of a request has a limit (Limits). Requests beyond those that are
// served at once are refused with 429 or 503. No path of a request leads to a file: a thumbnail is
// named by its row or id. Without Options.Public only names of this machine are answered to, so that a
// page of a foreign site cannot reach the server under a name of its own, and no foreign page may
// send anything but safe requests.
package serve
