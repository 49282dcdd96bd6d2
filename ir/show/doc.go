// Package show shows programs of package ir to people: graphs as drawings ([DOT]), and which code is in memory when
// ([Code]). It looks at them from outside, by [gogcl.dev/ir.Graph.Operations], as any package can.
package show
