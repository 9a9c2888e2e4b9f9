package main

func (c *campaign) disk() error { return nil }
