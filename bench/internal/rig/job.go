// SPDX-License-Identifier: Apache-2.0

package rig

import "time"

// A Scenario is one kind of load.
type Scenario string

// The scenarios. Big is lines of 4 MB; Hooks16 keeps sixteen hooks waiting at a time; Death is a CLI with exit code 7.
const (
	Text        Scenario = "text"
	Mixed       Scenario = "mixed"
	Big         Scenario = "big"
	Hooks       Scenario = "hooks"
	Hooks16     Scenario = "hooks16"
	Permissions Scenario = "permissions"
	MCP         Scenario = "mcp"
	Death       Scenario = "death"
)

// Variables that configure the fake CLI.
const (
	// EnvScenario is a [Scenario].
	EnvScenario = "FAKECLI_SCENARIO"
	// EnvCount is the number of messages or round trips.
	EnvCount = "FAKECLI_COUNT"
	// EnvReport is the file that receives a [Report].
	EnvReport = "FAKECLI_REPORT"
	// EnvDie is the moment of death: "initialize", "stream:N" after N lines, "torn:N" in the middle of
	// line N+1, or "request" while a hook is at work.
	EnvDie = "FAKECLI_DIE"
)

// A Job is what a client process is asked to do.
type Job struct {
	Scenario Scenario `json:"scenario"`
	// CLI is the executable of the fake CLI, Env all of its environment.
	CLI string            `json:"cli"`
	Env map[string]string `json:"env"`
	// Moments are the values of [EnvDie], one run of the CLI for each. Only for [Death].
	Moments []string `json:"moments,omitempty"`
	// Report is the file of [EnvReport].
	Report string `json:"report"`
	// CPUProfile is a file for a profile of the client. Empty means none.
	CPUProfile string `json:"cpu_profile,omitempty"`
}

// A Sample is what a client process measured.
type Sample struct {
	// Messages and Text are what the consumer saw between the prompt and the result: messages that
	// are of the assistant, of a tool, or partial, and the length of their text.
	Messages int `json:"messages"`
	Text     int `json:"text"`
	// Seconds is the time from the prompt to the result.
	Seconds float64 `json:"seconds"`
	// Mallocs is the number of allocations in that time; zero where the language does not report it.
	Mallocs uint64 `json:"mallocs,omitempty"`
	// PeakKB is the largest resident size of the process.
	PeakKB int         `json:"peak_kb"`
	Deaths []DeathSeen `json:"deaths,omitempty"`
	Error  string      `json:"error,omitempty"`
}

// DeathSeen is how one death of the CLI reached the consumer.
type DeathSeen struct {
	Moment string `json:"moment"`
	// MS is the time from the death to the consumer's knowledge of it, at most [DeathCap].
	MS float64 `json:"ms"`
	// Reason means that the report names the exit code.
	Reason bool `json:"reason"`
	// Said is the report, cut short.
	Said string `json:"said"`
}

// DeathCap is how long a client is given to notice a death.
const DeathCap = 2 * time.Second

// A Report is what the fake CLI measured.
type Report struct {
	RoundTrips int     `json:"round_trips,omitempty"`
	Seconds    float64 `json:"seconds,omitempty"`
	// Wrong is the number of answers that were errors or not the expected ones, and Example is one.
	Wrong   int    `json:"wrong,omitempty"`
	Example string `json:"example,omitempty"`
	// DiedAt is the time of death in nanoseconds since 1970.
	DiedAt int64 `json:"died_at,omitempty"`
}
