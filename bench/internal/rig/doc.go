// SPDX-License-Identifier: Apache-2.0

// Package rig is what the benchmark, the fake CLI and the clients under measurement agree on: the
// scenarios, how a job reaches a client process, and how its figures come back.
//
// A client runs in a process of its own, so that its memory is its own. It gets one [Job] as JSON in
// its last argument and prints one [Sample] as JSON. Rates of streams are taken by the client, from
// the prompt to the result; rates of round trips are taken by the fake CLI, which asks.
package rig
