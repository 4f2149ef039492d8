package hosts

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"
)

const networkInterface = "eth0"

func address(host int) string { return fmt.Sprintf("10.0.0.%d", host+1) }

// addresses is the content of /etc/hosts on every host.
func addresses(count int) string {
	var text strings.Builder
	fmt.Fprintln(&text, "127.0.0.1 localhost")
	for host := range count {
		fmt.Fprintln(&text, address(host), name(host))
	}
	return text.String()
}

// connect joins the hosts by a bridge, each through a pair of virtual interfaces.
func (c *Cluster) connect() error {
	bridge := []string{
		"link set lo up",
		"link add bridge0 type bridge",
		"link set bridge0 up",
	}
	for host, holder := range c.holders {
		bridge = append(bridge,
			fmt.Sprintf("link add port%d type veth peer name %s netns %s", host, networkInterface, holder),
			fmt.Sprintf("link set port%d master bridge0 up", host))
	}
	if err := c.ip(switchHolder, bridge); err != nil {
		return errors.Wrap(err, "make the bridge")
	}
	for host, holder := range c.holders {
		err := c.ip(holder, []string{
			"link set lo up",
			fmt.Sprintf("address add %s/24 dev %s", address(host), networkInterface),
			fmt.Sprintf("link set %s up", networkInterface),
		})
		if err != nil {
			return errors.Wrapf(err, "connect %s", name(host))
		}
	}
	return nil
}

func (c *Cluster) ip(holder string, commands []string) error {
	cmd := c.enter(context.Background(), holder, "ip", []string{"-batch", "-"})
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	output, err := cmd.CombinedOutput()
	return errors.Wrapf(err, "ip: %s", output)
}
