// Package show shows programs of package ir to people: graphs as drawings ([DOT]), and which code is in memory when
// ([Code]). It looks at them by [gogcl.dev/ir.Graph.Operations] alone, as any package can.
package show
