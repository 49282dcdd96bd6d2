// Package price says how a call goes, why, and what that and the alternatives would cost, for gcl.Comm's Explain.
// Messages are priced by methods/cost on a topology, peer memory by what was measured on a host.
//
// It sends nothing and waits for nothing.
package price
