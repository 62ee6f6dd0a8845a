// SPDX-License-Identifier: Apache-2.0

// Package telemetry turns the events of a run into OpenTelemetry spans and metrics.
//
// It uses the API of OpenTelemetry alone: the program chooses the SDK and the exporter, by the providers in [Options]. Names
// are those of the GenAI semantic conventions where these have one, and begin with drover. where they do not.
//
//	invoke_agent review          the run, below the caller's span
//	  turn                       one message of the user, and what the agent did about it
//	    chat claude-opus-4-6     a call of the model, as the gateway saw it
//	    execute_tool Agent       a call of a tool
//	      invoke_agent Explore   the subagent that it ran
//	        chat ...
//	        execute_tool Read
//
// Texts of the user, the model and the tools are in no attribute unless [Options.Content] is set, and neither
// is the text of an error, which may quote them.
//
// A run belongs to one goroutine: nothing here may be called by two at once. No goroutine is started.
package telemetry
