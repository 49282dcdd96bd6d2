// Package hosttest gives tests several hosts on one machine. Hosts are network namespaces:
//
//	stage ── bridge gcl0 ─┬─ veth0 ── host 0: eth0 10.77.0.1, fd00:77::1
//	                      ├─ veth1 ── host 1: eth0 10.77.0.2, fd00:77::2
//	                      └─ veth2 ── host 2: eth0 10.77.0.3, fd00:77::3
//
// Each host also has an interface "decoy0" with 10.99.0.x, which leads nowhere. The stage is the test binary, with its
// own namespaces for networks, mounts, processes and, without root, users. A host is a process that waits in a network
// namespace of its own. The stage is the first process of its namespace and ends with the test's process, whatever
// happens to that; then the kernel ends all others, and the namespaces with them.
//
// It needs Linux, ip (iproute2), and the permission to make namespaces. Tests are skipped where one is missing.
package hosttest
