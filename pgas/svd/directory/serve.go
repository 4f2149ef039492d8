package directory

import (
	"evenkeel/collectives/carrier"
	"evenkeel/runtime/fabric"
)

// Server is a directory with a fabric that it has to itself. The fabric proves nothing
// about who sent a packet: between tasks that do not trust each other's network, send
// the messages of a directory as active messages of the engine (pgas/gsm/engine).
type Server struct {
	*Directory
	carrier *carrier.Carrier
}

// Serve makes a directory that sends and receives over a fabric; Self, Limit, Send and
// Changed of the configuration are the fabric's. The fabric is the server's until Close.
func Serve(f fabric.Fabric, c Config) (*Server, error) {
	carrier := carrier.New(f)
	c.Self, c.Limit = f.Self(), carrier.Limit(c.Tasks)
	c.Send, c.Changed = carrier.Send, carrier.Wake
	d, err := New(c)
	if err != nil {
		return nil, err
	}
	carrier.Start(d)
	return &Server{d, carrier}, nil
}

// Close ends the server and closes the fabric. What others still wait for from this
// task they don't get.
func (s *Server) Close() error { return s.carrier.Close() }
