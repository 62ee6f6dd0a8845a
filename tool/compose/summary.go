// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"

	"github.com/drover-agents/drover/tool"
)

// A Summary is what to know of a tool before one chooses it. Its JSON form is short: what is empty is left out.
type Summary struct {
	Name        string `json:"name"`
	ID          string `json:"id"`
	Title       string `json:"title,omitzero"`
	Description string `json:"description"`
	// Risk and Needs are the names of [tool.Tool.Risks] and [tool.Tool.Needs].
	Risk  []string `json:"risk,omitempty"`
	Needs []string `json:"needs,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	// SchemaKeys are the names of the parameters, in the order of the schema.
	SchemaKeys []string `json:"schemaKeys,omitempty"`
	// Served is set if the tool can be called.
	Served     bool   `json:"served"`
	Deprecated string `json:"deprecated,omitzero"`
}

// Summarise gives the summaries of tools, in their order.
func Summarise(tools []*tool.Tool) []Summary {
	out := make([]Summary, len(tools))
	for i, t := range tools {
		out[i] = Summary{
			Name: t.Name, ID: t.ID(), Title: t.Title, Description: t.Description,
			Risk: t.Risks().Names(), Needs: t.Needs().Names(),
			Tags: slices.Clone(t.Tags), SchemaKeys: slices.Clone(schemaKeys(t)), Served: t.Served(), Deprecated: t.Deprecated,
		}
	}
	return out
}
