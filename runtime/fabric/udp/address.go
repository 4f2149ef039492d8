package udp

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// Card is what a task tells the others of itself.
type Card struct {
	Host      string         // the machine and its network namespace
	Ports     []uint16       // one for each path
	Addresses []netip.Prefix // at which it can be reached, the best first
	Buffer    int            // bytes of the buffer of each port; 0: not known
	Error     string         // why there are none
}

// Host names this machine's network: its kernel since it was started, and the
// network namespace.
func Host() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", errors.Wrap(err, "finding out which machine this is")
	}
	namespace, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return "", errors.Wrap(err, "finding out which network this is")
	}
	return strings.TrimSpace(string(boot)) + " " + namespace, nil
}

// Addresses returns those of this machine that `want` allows: empty for all, the
// name of an interface, an address, or a prefix of addresses. Loopback comes
// last, IPv4 before IPv6; link-local addresses are left out, since they mean
// nothing elsewhere.
func Addresses(want string) ([]netip.Prefix, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, errors.Wrap(err, "listing network interfaces")
	}
	byName := slices.ContainsFunc(interfaces, func(i net.Interface) bool { return i.Name == want })
	var allowed netip.Prefix
	if want != "" && !byName {
		if allowed, err = parsePrefix(want); err != nil {
			return nil, err
		}
	}
	var found []netip.Prefix
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || byName && i.Name != want {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			return nil, errors.Wrapf(err, "listing the addresses of %s", i.Name)
		}
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			if err != nil || prefix.Addr().IsLinkLocalUnicast() {
				continue
			}
			if want == "" || byName || allowed.Contains(prefix.Addr()) {
				found = append(found, prefix)
			}
		}
	}
	if len(found) == 0 {
		return nil, errors.Errorf("this host has no address that %q allows, or none at all", want)
	}
	slices.SortStableFunc(found, func(a, b netip.Prefix) int { return rank(a.Addr()) - rank(b.Addr()) })
	return found, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return prefix, nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, errors.Errorf("%q is no interface of this host, no address and no prefix like 10.0.0.0/8", text)
	}
	return netip.PrefixFrom(address, address.BitLen()), nil
}

func rank(a netip.Addr) int {
	r := 0
	if a.IsLoopback() {
		r += 2
	}
	if a.Is6() {
		r++
	}
	return r
}

// choose picks the address at which a peer is sent to: one in a network of our
// own if there is any, else the peer's first. An address that we have too (that
// of a bridge which every host has for its containers) leads to ourselves, and
// is only good for a peer on the same host; there loopback is better, as the
// kernel keeps the route to it, and makes one anew for each packet to another
// address of its own.
func choose(own, peer Card) (netip.Addr, error) {
	if own.Host == peer.Host && len(peer.Addresses) > 0 {
		for _, theirs := range peer.Addresses {
			if theirs.Addr().IsLoopback() {
				return theirs.Addr(), nil
			}
		}
		return peer.Addresses[0].Addr(), nil
	}
	var fallback netip.Addr
	for _, theirs := range peer.Addresses {
		address := theirs.Addr()
		near, same := false, address.IsLoopback()
		for _, ours := range own.Addresses {
			near = near || ours.Contains(address)
			same = same || ours.Addr() == address
		}
		if same {
			continue
		}
		if near {
			return address, nil
		}
		if !fallback.IsValid() {
			fallback = address
		}
	}
	if !fallback.IsValid() {
		return fallback, errors.Errorf("none of its addresses %v leads to it from here", peer.Addresses)
	}
	return fallback, nil
}
