package main

func (c *campaign) soak() error { return nil }
