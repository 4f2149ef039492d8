// Package config reads evenkeel's settings from the environment. The settings
// themselves stand in c/tables/settings.table; the C library reads the same
// variables by the same rules.
package config

import (
	"strconv"
	"strings"
	"time"

	"evenkeel/c/tables"
)

const prefix = "EVENKEEL_"

// table is settings.table. It is embedded, and tested to parse, so that an
// error here can only be met by whoever is editing the table.
var table = func() []tables.Setting {
	settings, err := tables.Settings()
	if err != nil {
		panic(err)
	}
	return settings
}()

// Config is a value for every setting. The zero Config holds the defaults. It
// is immutable, and safe for concurrent use.
type Config struct {
	values map[string]string // the valid ones that were set
}

// Load reads the settings from environ, a list of NAME=value as os.Environ
// returns it. A variable that is set but empty counts as not set; if a name
// stands twice, the first counts, as for getenv. For each EVENKEEL_ variable
// that is no setting, or whose value is none that it can have, there is one
// warning, and the default is used.
func Load(environ []string) (Config, []Warning) {
	c := Config{values: map[string]string{}}
	var warnings []Warning
	seen := map[string]bool{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || seen[name] {
			continue
		}
		seen[name] = true
		setting, known := find(name)
		switch {
		case !known:
			warnings = append(warnings, unknownName(name))
		case value == "":
		case setting.Check(value) != nil:
			warnings = append(warnings, badValue(setting, value))
		default:
			c.values[name] = value
		}
	}
	return c, warnings
}

// Settings returns the table in its order.
func Settings() []tables.Setting {
	return append([]tables.Setting(nil), table...)
}

func find(name string) (tables.Setting, bool) {
	for _, s := range table {
		if s.Name == name {
			return s, true
		}
	}
	return tables.Setting{}, false
}

// Value returns the value of the setting of that name as text: the one that
// was set, else the default; empty for a name that is no setting.
func (c Config) Value(name string) string {
	if v, set := c.values[name]; set {
		return v
	}
	s, _ := find(name)
	return s.Default
}

func (c Config) flag(name string) bool { return c.Value(name) == "1" }

func (c Config) number(name string) int {
	n, _ := strconv.Atoi(c.Value(name)) // Load and the table's own check let numbers through alone
	return n
}

// Enable is false where the library is to pass every call on and do nothing else.
func (c Config) Enable() bool { return c.flag("EVENKEEL_ENABLE") }

// Out is the directory of the profile; empty: ./evenkeel.JOB.
func (c Config) Out() string { return c.Value("EVENKEEL_OUT") }

// Summary is whether a summary is wanted on stderr at the end.
func (c Config) Summary() bool { return c.flag("EVENKEEL_SUMMARY") }

// Time is which calls are timed: "auto", "all" or "none".
func (c Config) Time() string { return c.Value("EVENKEEL_TIME") }

// Fast is which calls are made faster: any of "barrier", "shadow", "datatype".
func (c Config) Fast() []string {
	s, _ := find("EVENKEEL_FAST")
	return s.Members(c.Value(s.Name))
}

// ShadowSlots is how many shadow buffers there are for messages of up to 4 KiB.
func (c Config) ShadowSlots() int { return c.number("EVENKEEL_SHADOW_SLOTS") }

// ShadowLarge is how many shadow buffers of ShadowLimit bytes there are for other nodes.
func (c Config) ShadowLarge() int { return c.number("EVENKEEL_SHADOW_LARGE") }

// ShadowLimit is the largest message that goes through a shadow buffer, in bytes.
func (c Config) ShadowLimit() int { return c.number("EVENKEEL_SHADOW_LIMIT") }

// ShadowRoute is which messages go through shadow buffers: "auto", "history", "all" or "control".
func (c Config) ShadowRoute() string { return c.Value("EVENKEEL_SHADOW_ROUTE") }

// ShadowControl is which messages are control traffic, as written.
func (c Config) ShadowControl() string { return c.Value("EVENKEEL_SHADOW_CONTROL") }

// ShadowReserve is how many shadow buffers of each size are kept for control traffic.
func (c Config) ShadowReserve() int { return c.number("EVENKEEL_SHADOW_RESERVE") }

// ShadowRoom is whether Open MPI is asked for shadow buffers on the node: "auto", "0" or "1".
func (c Config) ShadowRoom() string { return c.Value("EVENKEEL_SHADOW_ROOM") }

// Wait is how blocking calls wait: "spin", "adaptive" or "sleep".
func (c Config) Wait() string { return c.Value("EVENKEEL_WAIT") }

// IdleRun is the command that runs while ranks wait; empty: none.
func (c Config) IdleRun() string { return c.Value("EVENKEEL_IDLE_RUN") }

// IdleTrim is whether free memory goes back to the system in waits.
func (c Config) IdleTrim() bool { return c.flag("EVENKEEL_IDLE_TRIM") }

// Lend is whether ranks that wait lend their cores.
func (c Config) Lend() bool { return c.flag("EVENKEEL_LEND") }

// GsmReserve is how many bytes of addresses a task reserves for global shared memory.
func (c Config) GsmReserve() uint64 { return uint64(c.number("EVENKEEL_GSM_RESERVE")) << 20 }

// GsmSilence is after which time of silence a task on another node has failed.
func (c Config) GsmSilence() time.Duration {
	return time.Duration(c.number("EVENKEEL_GSM_SILENCE")) * time.Millisecond
}

// GsmApart is whether commands to other tasks of the node take the network too.
func (c Config) GsmApart() bool { return c.flag("EVENKEEL_GSM_APART") }

// Lib is the library that `evenkeel run` preloads; empty: in ../lib beside the command.
func (c Config) Lib() string { return c.Value("EVENKEEL_LIB") }

// Runtime is the path of libevenkeel-runtime.so; empty: beside libevenkeel.so.
func (c Config) Runtime() string { return c.Value("EVENKEEL_RUNTIME") }

// Watch is whether a watcher process is wanted.
func (c Config) Watch() bool { return c.flag("EVENKEEL_WATCH") }

// Threads is how many threads of a rank are recorded.
func (c Config) Threads() int { return c.number("EVENKEEL_THREADS") }

// Ring is the length of a thread's event ring, in events.
func (c Config) Ring() int { return c.number("EVENKEEL_RING") }

// History is how many events a rank keeps of its run.
func (c Config) History() int { return c.number("EVENKEEL_HISTORY") }

// Drain is how often the runtime empties the rings.
func (c Config) Drain() time.Duration {
	return time.Duration(c.number("EVENKEEL_DRAIN")) * time.Millisecond
}

// Fabric is the network between nodes: "auto", "udp" or "mpi".
func (c Config) Fabric() string { return c.Value("EVENKEEL_FABRIC") }

// FabricNode is whether tasks of a node send messages through shared memory.
func (c Config) FabricNode() bool { return c.flag("EVENKEEL_FABRIC_NODE") }

// ShmSlots is how many packets fit an injection FIFO.
func (c Config) ShmSlots() int { return c.number("EVENKEEL_SHM_SLOTS") }

// ShmBuffer is the size of a shadow buffer of an injection FIFO, in bytes.
func (c Config) ShmBuffer() int { return c.number("EVENKEEL_SHM_BUFFER") << 10 }

// UdpAddress is by which address other nodes reach this one, as written.
func (c Config) UdpAddress() string { return c.Value("EVENKEEL_UDP_ADDRESS") }

// UdpPaths is how many sockets a task has.
func (c Config) UdpPaths() int { return c.number("EVENKEEL_UDP_PATHS") }

// UdpRate is how many bytes a second leave a task for another one at most; 0: no limit.
func (c Config) UdpRate() int { return c.number("EVENKEEL_UDP_RATE") * 1e6 }
