package main

import "gogcl.dev/internal/command"

func main() { command.Main("gcltune", run) }
