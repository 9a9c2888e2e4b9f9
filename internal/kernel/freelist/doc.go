// Package freelist lends memory to goroutines.
package freelist
