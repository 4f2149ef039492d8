package shared

// Knows says whether the thread is told of what becomes of an object.
func (w *World) Knows(r Ref) bool { return w.directory.Lookup(r) != nil }

// Lost is the end of the queue of a lock that is lost because that thread died.
func Lost(thread int) uint64 { return lost | uint64(thread+1) }

// SetTail changes the end of a lock's queue.
func (l *Lock) SetTail(tail uint64) error {
	_, err := l.door.Swap64(l.at(l.home, tailWord), tail)
	return err
}
