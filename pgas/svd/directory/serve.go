package directory

import "evenkeel/collectives/carrier"

// Server is a directory whose messages are carried. A carrier over a bare fabric proves
// nothing about who sent a packet: between tasks that do not trust each other's network
// they go as active messages of the job's engine (pgas/courier).
type Server struct {
	*Directory
	carrier carrier.Carrier
}

// Serve makes a directory that a carrier, which is its until Close, connects with
// those of the other tasks. Self, Limit, Send and Due of the configuration are the
// carrier's. All tasks have called it before one uses the directory.
func Serve(by carrier.Carrier, c Config) (*Server, error) {
	c.Self, c.Limit = by.Self(), by.Limit(c.Tasks)
	c.Send, c.Due = by.Send, by.Due
	d, err := New(c)
	if err != nil {
		return nil, err
	}
	if err := by.Start(d); err != nil {
		return nil, err
	}
	return &Server{d, by}, nil
}

// Close ends the server and closes the carrier. What others still wait for from this
// task they don't get; here nothing is known any more, and who waits for something is told
// that the directory is closed.
func (s *Server) Close() error {
	err := s.carrier.Close()
	s.close()
	return err
}
