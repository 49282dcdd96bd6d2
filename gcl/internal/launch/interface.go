package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Interface says which addresses of a host may be used. The zero Interface allows all.
type Interface struct {
	except   bool           // the list has the addresses that may not be used
	exact    bool           // names has whole names; if false, beginnings of names
	names    []string       // names of network interfaces; empty if networks is not
	networks []netip.Prefix // networks; empty if names is not
}

// ParseInterface reads the grammar of NCCL_SOCKET_IFNAME, or networks in CIDR notation:
//
//	eth,ib          interfaces whose names begin with eth or ib
//	=eth0,eth1      eth0 and eth1
//	^docker,lo      all but those whose names begin with docker or lo
//	^=docker0       all but docker0
//	10.0.0.0/8      addresses of that network; several with commas between; ^ in front for all others
//
// "^" and "=" stand once, in front of the whole list. [Interface.String] prints a text that means the same.
func ParseInterface(text string) (Interface, error) {
	list, except := strings.CutPrefix(text, "^")
	list, exact := strings.CutPrefix(list, "=")
	out := Interface{except: except, exact: exact}
	for item := range strings.SplitSeq(list, ",") {
		if err := out.add(item); err != nil {
			return Interface{}, fmt.Errorf("%s: %w", show(text), err)
		}
	}
	return out, nil
}

// add adds one item of the list.
func (i *Interface) add(item string) error {
	if network, err := netip.ParsePrefix(item); err == nil {
		switch {
		case i.exact:
			return fmt.Errorf("= is for names of interfaces, %s is a network", item)
		case network.Addr().Is4In6():
			return fmt.Errorf("network %s: want it in IPv4's form", item)
		case len(i.names) > 0:
			return errors.New("names and networks in one list")
		}
		i.networks = append(i.networks, network.Masked())
		return nil
	}
	if addr, err := netip.ParseAddr(item); err == nil {
		return fmt.Errorf("%s is an address: want a network, as in %s/%d", item, addr.WithZone(""), addr.BitLen())
	}
	switch {
	case item == "":
		return errors.New("an empty name in the list")
	case strings.ContainsAny(item, "^="):
		return fmt.Errorf("name %s: ^ and = stand once, in front of the whole list", show(item))
	case strings.ContainsAny(item, "/"):
		return fmt.Errorf("%s is no network in CIDR notation, as in 10.0.0.0/8", show(item))
	case strings.ContainsAny(item, ":") || !isPlain(item):
		return fmt.Errorf("%s is no name of an interface", show(item))
	case len(i.networks) > 0:
		return errors.New("names and networks in one list")
	}
	i.names = append(i.names, item)
	return nil
}

// Matches reports whether an address of the interface called name may be used.
func (i Interface) Matches(name string, addr netip.Addr) bool {
	if i.isZero() {
		return true
	}
	addr = addr.Unmap().WithZone("") // a network contains no address with a zone, nor IPv4 in IPv6's form
	listed := slices.ContainsFunc(i.networks, func(n netip.Prefix) bool { return n.Contains(addr) }) ||
		slices.ContainsFunc(i.names, func(n string) bool {
			return name == n || !i.exact && strings.HasPrefix(name, n)
		})
	return listed != i.except
}

func (i Interface) isZero() bool { return len(i.names) == 0 && len(i.networks) == 0 }

// String is a text that [ParseInterface] reads, "" for the zero Interface.
func (i Interface) String() string {
	items := slices.Clone(i.names)
	for _, n := range i.networks {
		items = append(items, n.String())
	}
	text := strings.Join(items, ",")
	if i.exact {
		text = "=" + text
	}
	if i.except {
		text = "^" + text
	}
	return text
}
