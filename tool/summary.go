// SPDX-License-Identifier: Apache-2.0

package tool

import "slices"

// A Summary is what to know of a tool before one chooses it. Its JSON form is short: what is empty
// is left out.
type Summary struct {
	Name        string `json:"name"`
	ID          string `json:"id"`
	Title       string `json:"title,omitzero"`
	Description string `json:"description"`
	// Risk and Needs are the names of [Tool.Risks] and [Tool.Needs].
	Risk  []string `json:"risk,omitempty"`
	Needs []string `json:"needs,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	// SchemaKeys are the names of the parameters, in the order of the schema.
	SchemaKeys []string `json:"schemaKeys,omitempty"`
	// Served says that the tool can be called.
	Served     bool   `json:"served"`
	Deprecated string `json:"deprecated,omitzero"`
}

// Summaries are the summaries of all tools, in the order in which they were added.
func (r *Registry) Summaries() []Summary { return Summarise(r.Tools()) }

// Summarise gives the summaries of tools, in their order.
func Summarise(tools []*Tool) []Summary {
	out := make([]Summary, len(tools))
	for i, t := range tools {
		out[i] = Summary{
			Name: t.Name, ID: t.ID(), Title: t.Title, Description: t.Description,
			Risk: flagNames(t.Risks(), riskNames), Needs: flagNames(t.Needs(), capabilityNames),
			Tags: slices.Clone(t.Tags), SchemaKeys: slices.Clone(t.schemaKeys()), Served: t.Served(), Deprecated: t.Deprecated,
		}
	}
	return out
}
