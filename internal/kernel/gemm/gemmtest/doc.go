// Package gemmtest makes random products with their exact values, for tests of what multiplies.
package gemmtest
