// Package report shows a profile to people: as a summary of one screen, as
// text with every table, as an HTML page with pictures, and what a run recorded
// as a trace for Perfetto.
//
// Names come from the program under test (functions, regions, communicators,
// its command line), so nothing of them is trusted: control characters do not
// reach a terminal, and no name runs as a script in the page. Every profile
// that profile.Decode accepts is drawn without a panic, also one that makes no
// sense.
package report
