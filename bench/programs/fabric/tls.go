package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"

	"github.com/pkg/errors"

	"evenkeel/runtime/fabric"
)

// newSecureStream is a TCP stream that nobody can change unseen either: TLS, by Go's
// standard library, whose AES-GCM makes the tags of packets too.
func newSecureStream(m fabric.Meeting) (*stream, error) {
	s, err := newStream(m)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}
	if self == 0 {
		c := tls.Client(s.c, config)
		return &stream{c}, errors.Wrap(c.Handshake(), "TLS")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, errors.Wrap(err, "TLS")
	}
	card := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, &card, &card, &key.PublicKey, key)
	if err != nil {
		return nil, errors.Wrap(err, "TLS")
	}
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}
	c := tls.Server(s.c, config)
	return &stream{c}, errors.Wrap(c.Handshake(), "TLS")
}
