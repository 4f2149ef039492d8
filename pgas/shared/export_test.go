package shared

// Knows says whether the thread is told of what becomes of an object.
func (w *World) Knows(r Ref) bool { return w.directory.Lookup(r) != nil }
