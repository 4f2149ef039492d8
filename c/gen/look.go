package main

import (
	"strings"

	"evenkeel/c/tables"
)

// look is what a wrapper looks at, found by the names of the parameters.
// Expressions are in the words of one flavour.
type look struct {
	tables.Function
	flavour

	Handle     string // key of the communicator, window or file, "EK_NO_HANDLE" if none
	Collective bool   // counts as an operation on the communicator
	Peer       string // rank it may wait for, MPI_PROC_NULL if none
	OtherPeer  string // a second one
	Size       string // bytes; empty if the arguments do not tell
	// Significant is the condition under which the call, and so the wrapper,
	// looks at the arguments that Size is made of.
	Significant string
	Tag         string
	Status      string // of a single receive, or wait, whose sender may be any
	FromAny     string // condition: it may be
	Source      string
	SourcePlace int    // of the sender among the peers
	Requests    string // a wait's array of requests, and
	Count       string // their number
	Statuses    string // of all of these, in the same order
	Posted      string // key of the request that the call makes
	NewComm     string // C handle of the communicator that the call makes
	// Maker is the call if its communicator has all members of the new one,
	// else "0".
	Maker    string
	Named    string // C handle of the communicator that the call gives a name
	Bind     string // key of the window or file that the call makes, on Handle's communicator
	BindFile bool   // it is a file
	Dup      bool   // NewComm is still being made: it takes Handle's members
	Drop     string // key to forget after the call
	DropComm string // C handle of the communicator to forget after the call
}

// flavour is how one language passes arguments and handles.
type flavour struct {
	value   func(p tables.Param) string  // the argument's value
	key     func(kind, e string) string  // a handle as a key of the handle table
	cHandle func(kind, e string) string  // a handle as C knows it
	size    func(count, t string) string // bytes of a buffer
	given   func(buffer string) string   // condition: it is not MPI_IN_PLACE
	Suffix  string                       // of the helper functions that take arrays
}

var flavourC = flavour{
	value: func(p tables.Param) string { return p.Name },
	key: func(kind, e string) string {
		return "EK_C_KEY(" + e + ")"
	},
	cHandle: func(kind, e string) string { return e },
	size:    func(count, t string) string { return "ek_size_c(" + count + ", " + t + ")" },
	given:   func(buffer string) string { return buffer + " != MPI_IN_PLACE" },
	Suffix:  "c",
}

var flavourFortran = flavour{
	value: func(p tables.Param) string { return "*" + p.Name },
	key: func(kind, e string) string {
		return "EK_F_KEY(EK_F_" + strings.ToUpper(kind) + ", " + e + ")"
	},
	cHandle: func(kind, e string) string { return "ek_" + kind + "_f2c(" + e + ")" },
	size:    func(count, t string) string { return "ek_size_f(" + count + ", " + t + ")" },
	given:   func(buffer string) string { return buffer + " != ek_mpi.f_in_place" },
	Suffix:  "f",
}

var collectiveClass = map[string]bool{
	"alltoall": true, "fromroot": true, "toroot": true, "prefix": true,
	"neighbour": true, "create": true, "begin": true,
}

// returnsAtOnce are the classes of functions that wait for nobody; those written
// by hand are not recorded, and so never seen to wait.
var returnsAtOnce = map[string]bool{"local": true, "begin": true, "hand": true}

// betweenParents are the functions whose new communicator has members that are
// not in the communicator of their first argument.
var betweenParents = map[string]bool{
	"MPI_Intercomm_create": true, "MPI_Comm_spawn": true, "MPI_Comm_spawn_multiple": true,
	"MPI_Comm_accept": true, "MPI_Comm_connect": true, "MPI_Comm_join": true, "MPI_Comm_get_parent": true,
}

func lookAt(f tables.Function, fl flavour) look {
	l := look{Function: f, flavour: fl, Handle: "EK_NO_HANDLE", Tag: "0", Maker: "&call",
		Collective: collectiveClass[f.Class]}
	has := func(name string) bool { _, ok := f.Param(name); return ok }
	value := func(name string) string { p, _ := f.Param(name); return fl.value(p) }
	// deref is the value of a handle that is passed by reference in C too;
	// before the call, when nobody has looked at it, the reference may be null.
	deref := func(p tables.Param) string { return "*" + p.Name }
	given := func(p tables.Param) string { return p.Name + " ? *" + p.Name + " : 0" }

	for _, p := range f.Params {
		kind, byValue := handleKind(p.Type)
		switch {
		case kind == "":
		case byValue && l.Handle == "EK_NO_HANDLE":
			l.Handle = fl.key(kind, fl.value(p))
		case byValue:
		case f.Name == "MPI_Comm_free" || f.Name == "MPI_Comm_disconnect":
			l.Handle = fl.key(kind, given(p))
			l.DropComm = fl.cHandle(kind, given(p))
		case f.Name == "MPI_Win_free" || f.Name == "MPI_File_close":
			l.Handle = fl.key(kind, given(p))
			l.Drop = l.Handle
		case kind == "comm":
			l.NewComm = fl.cHandle(kind, deref(p))
		default:
			l.Bind, l.BindFile = fl.key(kind, deref(p)), kind == "file"
		}
	}
	l.Dup = strings.HasPrefix(f.Name, "MPI_Comm_idup")
	if betweenParents[f.Name] {
		l.Maker = "0"
	}
	if f.Name == "MPI_Comm_set_name" {
		l.Named = fl.cHandle("comm", value("comm"))
	}

	var peers []string
	for _, name := range []string{"dest", "source", "target_rank"} {
		if has(name) {
			peers = append(peers, value(name))
		}
	}
	if has("root") && collectiveClass[f.Class] {
		peers = append(peers, value("root"))
	}
	if has("rank") && strings.HasPrefix(f.Name, "MPI_Win_") {
		peers = append(peers, value("rank"))
	}
	l.Peer = "MPI_PROC_NULL"
	if len(peers) > 0 {
		l.Peer = peers[0]
	}
	if len(peers) > 1 {
		l.OtherPeer = peers[1]
	}
	receives := has("source") && !has("dest") || has("message") // its arguments tell the room, not the data
	for _, b := range buffersOf(f) {
		count, _ := f.Param(b.count)
		if count.Type == "int" && has(b.datatype) && !receives {
			l.Size = fl.size(value(b.count), value(b.datatype))
			if b.inPlace != "" {
				l.Significant = fl.given(b.inPlace)
			}
			if has("root") { // else MPI_ROOT, or MPI_PROC_NULL on an intercommunicator
				l.Significant = strings.TrimPrefix(l.Significant+" && ", " && ") + value("root") + " >= 0"
			}
			break
		}
	}
	for _, name := range []string{"tag", "sendtag"} {
		if has(name) {
			l.Tag = "(uint32_t)" + value(name)
			break
		}
	}
	if has("source") && has("status") && (f.Class == "recv" || f.Class == "sendrecv") {
		l.Source, l.Status, l.SourcePlace = value("source"), "status", len(peers)-1
		l.FromAny = "call.enter && " + l.Source + " == MPI_ANY_SOURCE"
	}
	if p, ok := f.Param("request"); ok && p.Type == "MPI_Request *" {
		switch f.Class {
		case "wait":
			l.Requests, l.Count, l.Statuses = "request", "1", "status"
			l.Status, l.FromAny = "status", "call.from_any"
		case "local", "begin", "create":
			if makesRequest(f.Name) {
				l.Posted = fl.key("request", deref(p))
			}
		}
	}
	if has("array_of_requests") && f.Class == "wait" {
		l.Requests = "array_of_requests"
		if f.Name == "MPI_Waitall" {
			l.Statuses = "array_of_statuses"
		}
		l.Count = value("count")
		if has("incount") {
			l.Count = value("incount")
		}
	}
	if l.Requests != "" { // a wait belongs to the communicator of its first request
		l.Handle = "ek_requests_comm_" + fl.Suffix + "(" + l.Count + ", " + l.Requests + ")"
	}
	return l
}

// buffer is a pair of parameters that tells how much data a call moves, and the
// parameter that is MPI_IN_PLACE where the pair means nothing.
type buffer struct {
	count, datatype, inPlace string
}

// buffersOf are the pairs to look for in a function, the first that it has
// counts. They mean something on every rank: what is sent in a scatter, only
// its root knows; MPI_NO_OP has no origin.
func buffersOf(f tables.Function) []buffer {
	if strings.HasPrefix(f.Name, "MPI_Scatter") || strings.HasPrefix(f.Name, "MPI_Iscatter") {
		return []buffer{{"recvcount", "recvtype", "recvbuf"}}
	}
	return []buffer{
		{"count", "datatype", ""},
		{"count", "type", ""},
		{"sendcount", "sendtype", "sendbuf"},
		{"target_count", "target_datatype", ""},
	}
}

// makesRequest tells a function that returns a new request from one that is
// given one.
func makesRequest(name string) bool {
	switch name {
	case "MPI_Start", "MPI_Test", "MPI_Cancel", "MPI_Request_free":
		return false
	}
	return true
}

// handleKind says which kind of object a parameter type names that belongs to
// a communicator, and whether it is passed by value.
func handleKind(t string) (kind string, byValue bool) {
	switch t {
	case "MPI_Comm":
		return "comm", true
	case "MPI_Comm *":
		return "comm", false
	case "MPI_Win":
		return "win", true
	case "MPI_Win *":
		return "win", false
	case "MPI_File":
		return "file", true
	case "MPI_File *":
		return "file", false
	}
	return "", false
}
