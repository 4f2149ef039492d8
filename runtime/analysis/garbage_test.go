package analysis

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"evenkeel/runtime/history"
)

// Numbers as they stand in damaged records.
func anyTime() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(0, 1e9), rapid.Int64(), rapid.SampledFrom([]int64{
		math.MinInt64, math.MaxInt64, -1, 0, farthest, -farthest,
	}))
}

func anyIndex() *rapid.Generator[int] {
	return rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(-2, 6), rapid.Int())
}

func anyFunction() *rapid.Generator[history.Function] {
	return rapid.Custom(func(t *rapid.T) history.Function {
		return history.Function{
			Name:  rapid.SampledFrom([]string{"MPI_Barrier", "MPI_Ibcast", "MPI_Ineighbor_alltoall", "", "\xff"}).Draw(t, "name"),
			Class: history.Class(rapid.IntRange(-1, 15).Draw(t, "class")),
		}
	})
}

func anyAccount() *rapid.Generator[history.Account] {
	return rapid.Custom(func(t *rapid.T) history.Account {
		return history.Account{
			Thread: anyIndex().Draw(t, "thread"), Function: anyFunction().Draw(t, "function"),
			Comm: anyIndex().Draw(t, "comm"), Region: anyIndex().Draw(t, "region"),
			Module: rapid.SampledFrom([]string{"", "/", "a/b"}).Draw(t, "module"), Offset: rapid.Uint64Range(0, 3).Draw(t, "offset"),
			Calls: anyTime().Draw(t, "calls"), Timed: anyTime().Draw(t, "timed"), Time: anyTime().Draw(t, "time"),
			Variance: rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), -1})).Draw(t, "variance"),
			Shortest: anyTime().Draw(t, "shortest"), Longest: anyTime().Draw(t, "longest"), Bytes: anyTime().Draw(t, "bytes"),
		}
	})
}

func anyEvent() *rapid.Generator[history.Event] {
	return rapid.Custom(func(t *rapid.T) history.Event {
		enter := anyTime().Draw(t, "enter")
		leave := anyTime().Draw(t, "leave")
		if rapid.Bool().Draw(t, "in order") {
			leave = enter + rapid.Int64Range(0, 1e9).Draw(t, "duration")
		}
		return history.Event{
			Enter: enter, Leave: leave, Account: anyIndex().Draw(t, "account"), Comm: anyIndex().Draw(t, "comm"),
			Sequence:   rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Just(uint64(math.MaxUint64))).Draw(t, "sequence"),
			Collective: rapid.Bool().Draw(t, "collective"), Thread: anyIndex().Draw(t, "thread"),
			Weight: rapid.OneOf(rapid.Just(int64(1)), anyTime()).Draw(t, "weight"),
			Peers: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) history.Peer {
				return history.Peer(anyIndex().Draw(t, "peer"))
			}), 0, 9).Draw(t, "peers"),
		}
	})
}

func anyComm() *rapid.Generator[history.Comm] {
	return rapid.Custom(func(t *rapid.T) history.Comm {
		return history.Comm{
			ID: rapid.Uint64Range(0, 2).Draw(t, "id"), Size: anyIndex().Draw(t, "size"), Rank: anyIndex().Draw(t, "rank"),
			Members: rapid.SliceOfN(anyIndex(), 0, 4).Draw(t, "members"), Neighbours: rapid.SliceOfN(anyIndex(), 0, 4).Draw(t, "neighbours"),
			Next:  rapid.Uint64Range(0, 3).Draw(t, "next"),
			Inter: rapid.Bool().Draw(t, "inter"), Other: rapid.Bool().Draw(t, "other"),
		}
	})
}

func anyRank() *rapid.Generator[history.Rank] {
	return rapid.Custom(func(t *rapid.T) history.Rank {
		return history.Rank{
			Task: history.Task{World: anyIndex().Draw(t, "world"), Rank: anyIndex().Draw(t, "rank")},
			Node: anyIndex().Draw(t, "node"), State: history.State(anyIndex().Draw(t, "state")),
			Start: anyTime().Draw(t, "start"), End: anyTime().Draw(t, "end"), Paused: anyTime().Draw(t, "paused"),
			Accounts: rapid.SliceOfN(anyAccount(), 0, 4).Draw(t, "accounts"),
			Comms:    rapid.SliceOfN(anyComm(), 0, 3).Draw(t, "comms"),
			Regions: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) history.Region {
				return history.Region{
					Name:   rapid.SampledFrom([]string{"", "a", wholeRun}).Draw(t, "name"),
					Parent: anyIndex().Draw(t, "parent"), Entries: anyTime().Draw(t, "entries"),
					Time: anyTime().Draw(t, "time"), Off: rapid.Bool().Draw(t, "off"),
				}
			}), 0, 3).Draw(t, "regions"),
			Events: rapid.SliceOfN(anyEvent(), 0, 12).Draw(t, "events"),
			Level:  anyIndex().Draw(t, "level"), Offered: anyTime().Draw(t, "offered"), Lost: anyTime().Draw(t, "lost"),
			Unrecorded: anyTime().Draw(t, "unrecorded"),
			Bins:       rapid.SliceOfN(anyTime(), 0, 5).Draw(t, "bins"), BinWidth: anyTime().Draw(t, "bin width"),
		}
	})
}

func anyRun() *rapid.Generator[*history.Run] {
	return rapid.Custom(func(t *rapid.T) *history.Run {
		return &history.Run{
			Nodes: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) history.Node {
				return history.Node{
					World: anyIndex().Draw(t, "world"), ClockOffset: anyTime().Draw(t, "offset"),
					ClockError: anyTime().Draw(t, "error"), ClockKnown: rapid.Bool().Draw(t, "known"),
				}
			}), 0, 3).Draw(t, "nodes"),
			Ranks:    rapid.SliceOfN(anyRank(), 0, 5).Draw(t, "ranks"),
			Complete: rapid.Bool().Draw(t, "complete"),
		}
	})
}

// damaged is a run of a real program with some records overwritten.
func damaged(t *rapid.T) *history.Run {
	run := drawWorld(t).finish()
	for range rapid.IntRange(0, 10).Draw(t, "damages") {
		rank := &run.Ranks[rapid.IntRange(0, len(run.Ranks)-1).Draw(t, "rank")]
		switch rapid.IntRange(0, 5).Draw(t, "damage") {
		case 0:
			if n := len(rank.Events); n > 0 {
				rank.Events[rapid.IntRange(0, n-1).Draw(t, "event")] = anyEvent().Draw(t, "damaged")
			}
		case 1:
			if n := len(rank.Accounts); n > 0 {
				rank.Accounts[rapid.IntRange(0, n-1).Draw(t, "account")] = anyAccount().Draw(t, "damaged")
			}
		case 2:
			rank.Comms[rapid.IntRange(0, len(rank.Comms)-1).Draw(t, "comm")] = anyComm().Draw(t, "damaged")
		case 3:
			rank.Events = rank.Events[:rapid.IntRange(0, len(rank.Events)).Draw(t, "cut")]
			rank.State = history.Killed
		case 4:
			rank.End = anyTime().Draw(t, "end")
		case 5:
			rank.Task.Rank = anyIndex().Draw(t, "number")
		}
	}
	return run
}

// However damaged a run is, its profile is one that can be read.
func checkDamaged(t *rapid.T) {
	consistent(t, Analyse(anyRun().Draw(t, "run")))
	consistent(t, Analyse(damaged(t)))
}

func TestDamagedRuns(t *testing.T) { rapid.Check(t, checkDamaged) }

func FuzzAnalyse(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkDamaged)) }
