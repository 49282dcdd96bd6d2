package main

import "gogcl.dev/internal/measure"

// measurement is one line of -json: a collective of one size, in one place, by one method.
type measurement struct {
	Collective     string  `json:"collective"`
	Transport      string  `json:"transport"`
	Implementation string  `json:"implementation"`
	Method         string  `json:"method"`
	N              int     `json:"n"`
	Bytes          int     `json:"bytes"`
	Count          int     `json:"count"`
	DType          string  `json:"dtype"`
	Op             string  `json:"op"`   // none where nothing is reduced
	Root           int     `json:"root"` // -1 where there is none
	Place          string  `json:"place"`
	P50            float64 `json:"p50_us"`
	P90            float64 `json:"p90_us"`
	P99            float64 `json:"p99_us"`
	AlgBW          float64 `json:"algbw_gbps"`
	BusBW          float64 `json:"busbw_gbps"`
	Wrong          int     `json:"wrong"` // -1 where results are not checked
	Allocs         float64 `json:"allocs"`
	Load           float64 `json:"load"`         // cores that other programs kept busy meanwhile; -1: not known
	Dirty          float64 `json:"dirty_p50_us"` // of calls after a rewrite of the inputs; -1 without -dirty
	CPU            float64 `json:"cpu_us"`       // processor time of a call, of all replicas; -1: not known
	Path           string  `json:"path"`         // how the data of a call goes, as gcl.Path says it
	OfBound        float64 `json:"of_bound"`     // what part of what the network allows P50 is; -1: no network is known
	measure.Origin
}
