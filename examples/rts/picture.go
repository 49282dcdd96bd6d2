package main

type picture struct{}

func openPicture(string) (*picture, error) { return &picture{}, nil }
func (*picture) giveUp() error { return nil }
func (*picture) draw([]pass) error { return nil }
