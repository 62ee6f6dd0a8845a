// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/url"
	"slices"
	"strings"

	"github.com/drover-agents/drover/claude"
)

// The part of SARIF 2.1.0 that a review needs.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     severity        `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
)

// newSARIF returns the findings that have a path. GitHub refuses a file with a result that has none.
func newSARIF(r *codeReview) sarifLog {
	run := sarifRun{Results: []sarifResult{}, Tool: sarifTool{sarifDriver{
		Name: "drover", Version: claude.Version, InformationURI: "https://github.com/drover-agents/drover", Rules: []sarifRule{},
	}}}
	rules := &run.Tool.Driver.Rules
	for _, f := range r.Findings {
		if f.Path == "" {
			continue
		}
		rule := slices.Index(*rules, sarifRule{f.Rule})
		if rule < 0 {
			rule = len(*rules)
			*rules = append(*rules, sarifRule{f.Rule})
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Rule, RuleIndex: rule, Level: f.Severity,
			Message: sarifMessage{withoutLinks.Replace(f.Message)},
			Locations: []sarifLocation{{sarifPhysical{
				Artifact: sarifArtifact{(&url.URL{Path: f.Path}).String()}, Region: sarifRegion{f.Line},
			}}},
		})
	}
	return sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}

// withoutLinks changes what SARIF would take for a link, whose text and target a model would choose.
var withoutLinks = strings.NewReplacer("](", "] (")
