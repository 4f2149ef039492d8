// Package dgsp moves data that does not lie in one piece into another task's memory: layouts
// compile to data gather/scatter programs, which travel ahead of the data they place.
//
// The programs are those of the preload library's compiled datatypes: dgsp.c makes them and
// dgsp_run.c executes them, here as there. Everything else is in Go and pure: [Sender] and
// [Receiver] are the two ends of the protocol, packets and the time in, packets and effects out.
// They know no socket, clock or goroutine, and what they receive may be lost, repeated, reordered
// or made up by anybody. docs/dgsp.md has the formats and the rules.
//
// The idea is that of US patent 7,454,491: a message describes itself, so that one-sided
// transfers of any shape need no round trip and no memory at the target but a bounded queue.
package dgsp
