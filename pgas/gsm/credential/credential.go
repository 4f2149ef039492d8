// Package credential makes and checks the tag by which a task of a job knows the packets of the others.
//
// The tag is AES-GCM's over the whole packet, with nothing to encrypt (GMAC): whoever has no key can neither make a packet
// nor change one, but may read it. Each task seals with keys of its own, which HKDF (RFC 5869) derives from the job's
// secret, the task and its life, so the counter in the header is a nonce that no two packets under one key share. Replayed
// packets have a right tag; that they do no harm is the affair of epochs, numbers and sequences (pgas/gsm/epoch).
//
// A subset of tasks may have a secret of its own, which only its members are given: a narrower key. A window can then
// want that key of those who reach it.
package credential

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Secret is what the tasks of a job, or of a subset, have in common.
type Secret [32]byte

// Generate makes a secret that nobody else has. One task does, and gives it to the others through MPI.
func Generate() (s Secret, err error) {
	_, err = rand.Read(s[:])
	return s, errors.Wrap(err, "making the job's secret")
}

// NewLife is a random life for a task that starts.
func NewLife() (wire.Life, error) {
	var b [4]byte
	for {
		if _, err := rand.Read(b[:]); err != nil {
			return 0, errors.Wrap(err, "making the task's life")
		}
		if life := binary.LittleEndian.Uint32(b[:]); life != 0 {
			return wire.Life(life), nil
		}
	}
}

// Credential seals the packets of one task, and opens those of others. For one goroutine at a time.
type Credential struct {
	job     uint32
	self    fabric.Task
	life    wire.Life
	secrets map[wire.Key]Secret
	sealers map[wire.Key]cipher.AEAD
	openers map[source]opener
	counter uint64
	nonce   [12]byte

	// The last of each that was used, since most packets come from whom the last one did.
	sealed wire.Key
	sealer cipher.AEAD
	opened source
	opener opener
}

// source is one key of one task.
type source struct {
	task fabric.Task
	key  wire.Key
}

type opener struct {
	life wire.Life
	aead cipher.AEAD
}

// New returns the credential of a task in a life of it, with the job's secret.
func New(job uint32, self fabric.Task, life wire.Life, secret Secret) (*Credential, error) {
	c := &Credential{
		job: job, self: self, life: life,
		secrets: map[wire.Key]Secret{}, sealers: map[wire.Key]cipher.AEAD{}, openers: map[source]opener{},
	}
	return c, c.Add(wire.JobKey, secret)
}

// Add gives the task the secret of a subset that it is in, under the key's name, which is the subset's own in the job.
func (c *Credential) Add(key wire.Key, secret Secret) error {
	if _, known := c.secrets[key]; known {
		return errors.Errorf("task %d has key %d already", c.self, key)
	}
	aead, err := derive(secret, c.job, key, c.self, c.life)
	if err != nil {
		return err
	}
	c.secrets[key], c.sealers[key] = secret, aead
	return nil
}

// Remove takes a key of a subset away. Packets under it are neither sealed nor opened any more.
func (c *Credential) Remove(key wire.Key) {
	delete(c.secrets, key)
	delete(c.sealers, key)
	c.sealer, c.opener = nil, opener{}
	for s := range c.openers {
		if s.key == key {
			delete(c.openers, s)
		}
	}
}

// Has says whether the task has a key.
func (c *Credential) Has(key wire.Key) bool { _, has := c.secrets[key]; return has }

// derive is the key with which a task in a life of it seals.
func derive(secret Secret, job uint32, key wire.Key, task fabric.Task, life wire.Life) (cipher.AEAD, error) {
	info := append([]byte("evenkeel gsm packets"), wire.ProtocolVersion)
	info = binary.LittleEndian.AppendUint32(info, job)
	info = binary.LittleEndian.AppendUint16(info, uint16(key))
	info = binary.LittleEndian.AppendUint32(info, uint32(task))
	info = binary.LittleEndian.AppendUint32(info, uint32(life))
	derived, err := hkdf.Key(sha256.New, secret[:], nil, string(info), 16)
	if err != nil {
		return nil, errors.Wrap(err, "deriving a task's key")
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, errors.Wrap(err, "deriving a task's key")
	}
	aead, err := cipher.NewGCM(block)
	return aead, errors.Wrap(err, "deriving a task's key")
}

// Seal gives an encoded packet its counter and appends its tag. The packet's capacity should have room for it. The key is
// the one that its header names; a packet under a key that the task has not is an error.
func (c *Credential) Seal(packet []byte) ([]byte, error) {
	key := wire.KeyOf(packet)
	if c.sealer == nil || key != c.sealed {
		aead := c.sealers[key]
		if aead == nil {
			return nil, errors.Wrapf(wire.UnknownKey, "task %d seals under key %d", c.self, key)
		}
		c.sealed, c.sealer = key, aead
	}
	c.counter++
	wire.SetCounter(packet, c.counter)
	binary.LittleEndian.PutUint64(c.nonce[4:], c.counter)
	return c.sealer.Seal(packet, c.nonce[:], nil, packet), nil
}

// Open checks a packet and decodes its header. The body is what lies between header and tag. For any reason but OK
// nothing of the packet is to be believed.
func (c *Credential) Open(packet []byte) (h wire.Header, body []byte, reason wire.Reason) {
	rest, reason := h.Decode(packet)
	switch {
	case reason != wire.OK:
		return h, nil, reason
	case h.Job != c.job:
		return h, nil, wire.Job
	case h.Target != c.self:
		return h, nil, wire.Misrouted
	}
	from := source{h.Source, h.Key}
	known := c.opener
	if from != c.opened || h.SourceLife != known.life {
		if known, reason = c.openerOf(from, h.SourceLife); reason != wire.OK {
			return h, nil, reason
		}
	}
	binary.LittleEndian.PutUint64(c.nonce[4:], h.Counter)
	signed, tag := packet[:len(packet)-wire.TagLength], packet[len(packet)-wire.TagLength:]
	if _, err := known.aead.Open(nil, c.nonce[:], tag, signed); err != nil {
		return h, nil, wire.Forged
	}
	if from != c.opened || known.life != c.opener.life {
		if _, cached := c.openers[from]; !cached { // packets of another life are opened the slow way, and dropped by epochs
			c.openers[from] = known
		}
		c.opened, c.opener = from, known
	}
	return h, rest[:len(rest)-wire.TagLength], wire.OK
}

// openerOf is what opens the packets of a source in a life.
func (c *Credential) openerOf(from source, life wire.Life) (opener, wire.Reason) {
	secret, has := c.secrets[from.key]
	if !has {
		return opener{}, wire.UnknownKey
	}
	if known, cached := c.openers[from]; cached && known.life == life {
		return known, wire.OK
	}
	aead, err := derive(secret, c.job, from.key, from.task, life)
	if err != nil {
		return opener{}, wire.Forged
	}
	return opener{life, aead}, wire.OK
}
