// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

func watchCPU(int, <-chan struct{}) map[string]float64 { return nil }
