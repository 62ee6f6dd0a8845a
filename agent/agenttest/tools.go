// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"encoding/json"

	"github.com/drover-agents/drover/tool"
)

// Tools is a catalogue of invented tools, so that code that works for them depends on no agent:
//
//   - inscribe {"at": file, "text": text} writes a file, peruse {"at": file} reads one.
//   - amend {"changes": [{"at": file, "text": text}]} writes several.
//   - perform {"line": "make FILE"} runs a command, of which there is this one.
//   - consult {"site": host} needs the network, and does nothing.
//   - answer gives a structured answer.
func Tools() *tool.Catalogue { return tools }

var tools = &tool.Catalogue{
	Agent: "scripted", Others: tool.Fields{Paths: []string{"at"}},
	ReadRule: "peruse", WriteRule: "inscribe", CommandRule: "perform", AnswerTool: "answer",
	Natives: []tool.Native{
		{Name: "inscribe", Risk: tool.Mutates, Needs: tool.FileWrite, Files: tool.WritesFile, Verb: "write"},
		{Name: "amend", Risk: tool.Mutates, Needs: tool.FileWrite, Files: tool.WritesFile, Fields: tool.Fields{Scan: amended}, Verb: "change"},
		{Name: "peruse", Risk: tool.ReadOnly, Files: tool.ReadsFile, Verb: "read"},
		{Name: "perform", Risk: tool.Mutates | tool.Dangerous, Needs: tool.ShellExecute, Fields: tool.Fields{Command: "line"}, Shell: true, Verb: "run"},
		{Name: "consult", Risk: tool.ReadOnly, Needs: tool.NetworkAccess, Fields: tool.Fields{Host: "site"}, Verb: "fetch"},
		{Name: "answer", Risk: tool.ReadOnly, Plumbing: true},
	},
}

// A writing is what inscribe writes, and one change of amend.
type writing struct{ At, Text string }

type amendment struct{ Changes []writing }

func amended(input json.RawMessage) (paths []string, ok bool) {
	var a amendment
	err := json.Unmarshal(input, &a)
	for _, change := range a.Changes {
		paths = append(paths, change.At)
	}
	return paths, err == nil
}
