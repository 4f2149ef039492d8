// Package caller tells from which place of the program a function was called, in
// the time that an MPI call leaves for it.
package caller
