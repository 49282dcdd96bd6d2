package main

import "gogcl.dev/internal/command"

func main() { command.Main("gclperf", run) }
