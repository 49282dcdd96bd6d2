// Package interop has the gradients of programs of other libraries reduced in place by package gcl: gonum, gomlx and
// Gorgonia's tensors. It is a module of its own, so that users of gogcl.dev do not depend on those.
// docs/design/interop.md explains the examples.
package interop
