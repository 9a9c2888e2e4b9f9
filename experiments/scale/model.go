package main

import "math"

// Step is a training step on R ranks, one on each host, that have an equal share of the batch each.
//
//	T(R) = C(n) + G(R) + E(R) + p X(R)           n = B/R rows of a rank
//	C(n) = a + c n                               a: update and twins of all parameters; c: a row, forward and back
//	t(S) = 2 (R-1) (l + S / (R w))               a sum of S bytes: a share to everybody, and the sums back
//	G(R) = 2 (R-1) (l + n f / w)                 features of f bytes a row, gathered on the way
//	E(R) = what of the sums lies behind the end of the backward pass
//	X(R) = the time of all exchanges, which hold up the computation beside them for p times their length
//
// Sums are made one after the other, in buckets. Bucket k of K is complete when the share k/K of the
// backward pass is over, which is Back of c n.
type Step struct {
	Fixed, PerRow float64 // a and c, in seconds
	Back          float64 // share of the backward pass in c n
	Gradients     float64 // bytes on the wire, of all parameters
	Bucket        float64 // bytes
	Features      float64 // f, in bytes
	Work          float64 // p
	Link
}

// Link joins hosts.
type Link struct {
	Latency   float64 // l, seconds of a message
	Bandwidth float64 // w, bytes a second of a host, in each direction
}

// Sum is t(S): the seconds that a sum of so many bytes takes.
func (l Link) Sum(ranks int, bytes float64) float64 {
	others := float64(ranks - 1)
	return 2 * others * (l.Latency + bytes/float64(ranks)/l.Bandwidth)
}

// Exchange returns X(R) for a rank's rows.
func (s Step) Exchange(ranks int, rows float64) float64 {
	buckets := math.Ceil(s.Gradients / s.Bucket)
	return s.gather(ranks, rows) + buckets*s.Sum(ranks, s.Gradients/buckets)
}

// gather is G(R).
func (s Step) gather(ranks int, rows float64) float64 {
	return 2 * float64(ranks-1) * (s.Latency + rows*s.Features/s.Bandwidth)
}

// Seconds returns T(R) for a rank's rows, and its part E(R) that no computation hides.
func (s Step) Seconds(ranks int, rows float64) (step, exposed float64) {
	compute := s.Fixed + s.PerRow*rows
	if ranks == 1 {
		return compute, 0
	}
	back := s.Back * s.PerRow * rows
	buckets := math.Ceil(s.Gradients / s.Bucket)
	end := 0.0
	for k := range int(buckets) {
		ready := back * float64(k+1) / buckets
		end = max(end, ready) + s.Sum(ranks, s.Gradients/buckets)
	}
	exposed = max(0, end-back)
	return compute + s.gather(ranks, rows) + exposed + s.Work*s.Exchange(ranks, rows), exposed
}

// Efficiency is how much of R times the speed of one rank is there: with the batch of one rank for
// all (strong), or for each of them (weak).
func (s Step) Efficiency(ranks, batch int, weak bool) float64 {
	rows, speed := float64(batch), 1.0
	alone, _ := s.Seconds(1, rows)
	if !weak {
		rows, speed = rows/float64(ranks), float64(ranks)
	}
	step, _ := s.Seconds(ranks, rows)
	return alone / step / speed
}
