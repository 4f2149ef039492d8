// Package shared has the shared objects of a partitioned global address space as UPC defines them
// (language and library specifications 1.3): arrays whose elements are spread over the tasks in
// blocks, pointers to shared with thread, phase and address, locks, allocation and collectives.
//
// Names are UPC's where UPC has one: a task is called a thread here. docs/shared.md tells them from
// each other, and what differs.
package shared
