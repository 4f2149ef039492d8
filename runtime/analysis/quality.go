package analysis

import (
	"fmt"
	"slices"

	"evenkeel/runtime/profile"
)

// lostShare is the share of events lost from which a note says so.
const lostShare = 0.01

// nodes are the hosts as the profile has them.
func (j *job) nodes() []profile.Node {
	nodes := make([]profile.Node, len(j.run.Nodes))
	for i, n := range j.run.Nodes {
		nodes[i] = profile.Node{World: n.World, Number: n.Number, Host: n.Host}
		if n.ClockKnown {
			offset, e := seconds(float64(n.ClockOffset)), seconds(float64(n.ClockError))
			nodes[i].ClockOffset, nodes[i].ClockError = &offset, &e
		}
	}
	for r := range j.run.Ranks {
		nodes[j.run.Ranks[r].Node].Ranks++
	}
	return nodes
}

// quality says what the figures rest on.
func (j *job) quality() profile.Quality {
	q := profile.Quality{Operations: j.operations.matched, SampleLevel: j.level}
	errors := map[int]int64{} // by node
	for r := range j.run.Ranks {
		rank := &j.run.Ranks[r]
		for a := range rank.Accounts {
			q.Calls += rank.Accounts[a].Calls
			q.TimedCalls += rank.Accounts[a].Timed
		}
		q.Events += int64(len(rank.Events))
		q.EventsSeen += max(rank.Offered, int64(len(rank.Events)))
		q.EventsLost += rank.Lost
		q.Unrecorded += rank.Unrecorded
		if j.run.Nodes[rank.Node].ClockKnown {
			errors[rank.Node] = j.run.Nodes[rank.Node].ClockError
		}
	}
	if len(errors) > 1 {
		sorted := make([]int64, 0, len(errors))
		for _, e := range errors {
			sorted = append(sorted, e)
		}
		slices.Sort(sorted)
		q.ClockError = seconds(float64(sorted[len(sorted)-1] + sorted[len(sorted)-2]))
	}
	return q
}

// notes are those of the run, and what the analysis has to add.
func (j *job) notes(q *profile.Quality, bad int64) []string {
	notes := append([]string{}, j.run.Notes...)
	if bad > 0 {
		notes = append(notes, fmt.Sprintf("%d records were damaged and left out or mended; the figures rest on the others.", bad))
	}
	if !j.clocksCompared() {
		notes = append(notes, "The clocks of the hosts were not compared, so waiting for a rank on another host is not split; let the program reach MPI_Finalize.")
	}
	if lost := float64(q.EventsLost); lost > lostShare*(lost+float64(q.EventsSeen)) {
		notes = append(notes, fmt.Sprintf("%d events were overwritten before they could be looked at; a larger EVENKEEL_RING keeps more.", q.EventsLost))
	}
	if q.Calls > 0 && q.TimedCalls == 0 {
		notes = append(notes, "No call was timed, so nothing is known about waiting; EVENKEEL_TIME=auto times enough of them.")
	}
	notes = append(notes, j.foreign()...)
	return append(notes, j.trespassers()...)
}

// trespassers tells of threads that called MPI without leave, which is an error of
// the program even where it goes well.
func (j *job) trespassers() []string {
	who, others := "", 0
	for _, r := range j.run.Ranks {
		switch {
		case !r.OneOnly || r.Threads < 2:
		case who == "":
			who = fmt.Sprintf("%d threads of rank %d", r.Threads, r.Task.Rank)
		default:
			others++
		}
	}
	if who == "" {
		return nil
	}
	if others > 0 {
		who += fmt.Sprintf(" and others of %d more", others)
	}
	return []string{who + " called MPI, where only the main thread may: ask MPI_Init_thread for MPI_THREAD_SERIALIZED, or for MPI_THREAD_MULTIPLE if they call at the same time."}
}

// foreign tells of packets that came to ranks' ports and that no task of a job had sent.
func (j *job) foreign() []string {
	all, most, ranks, worst := int64(0), int64(0), 0, 0
	for _, r := range j.run.Ranks {
		if r.Foreign > 0 {
			all += r.Foreign
			ranks++
		}
		if r.Foreign > most {
			most, worst = r.Foreign, r.Task.Rank
		}
	}
	switch ranks {
	case 0:
		return nil
	case 1:
		return []string{fmt.Sprintf("Rank %d dropped %d packets that are not its job's: another job or program sends to its ports.",
			worst, all)}
	}
	return []string{fmt.Sprintf("%d ranks dropped %d packets that are not their job's, most of them rank %d (%d): another job or program sends to their ports.",
		ranks, all, worst, most)}
}

func (j *job) clocksCompared() bool {
	for r := range j.run.Ranks {
		if !j.comparable(0, r) {
			return false
		}
	}
	return true
}
