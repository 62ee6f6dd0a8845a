// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

// resultFrom makes a result of ours of a server's. The model reads the text, as the server wrote it;
// the structured value is for programs, and for the model where there is no text.
func resultFrom(from *sdk.CallToolResult) tool.Result {
	text, images := contents(from.Content)
	if from.IsError {
		return failureFrom(from, text)
	}
	r := tool.Result{Outcome: tool.Success, Message: text, Images: images}
	if from.StructuredContent == nil {
		return r
	}
	raw, err := json.Marshal(from.StructuredContent)
	if err != nil {
		return r // it came as JSON
	}
	if plainjson.MayBeRounded(raw) {
		return unrounded(r)
	}
	if raw[0] == '{' {
		r.Structured = raw
	}
	if text == "" {
		r.Value = json.RawMessage(raw)
	}
	return r
}

// unrounded leaves a result its text, since the SDK reads the numbers of a structured value as doubles.
func unrounded(r tool.Result) tool.Result {
	if r.Message != "" || len(r.Images) > 0 {
		return r
	}
	return tool.Result{Outcome: tool.Failed, Err: &tool.Error{
		Code: tool.CodeInvalidOutput, Category: tool.CategoryInternal,
		Message: fmt.Sprintf(resultRounded, plainjson.MaxWhole),
	}}
}

// failureFrom keeps the fields that a registry of ours adds to a failure. A server cannot make a success of it this way.
func failureFrom(from *sdk.CallToolResult, text string) tool.Result {
	f, _ := fromMeta[failureMeta](from.Meta, metaFailure)
	switch f.Outcome {
	case tool.Denied, tool.NeedsApproval, tool.Cancelled:
	default:
		f.Outcome = tool.Failed
	}
	return tool.Result{Outcome: f.Outcome, Err: &tool.Error{
		Code: cmp.Or(f.Code, tool.CodeFailed), Category: cmp.Or(f.Category, tool.CategoryInternal), Retryable: f.Retryable,
		Message: cmp.Or(text, toolFailed),
	}}
}

func contents(all []sdk.Content) (text string, images []tool.Image) {
	var parts []string
	for _, c := range all {
		if image, ok := c.(*sdk.ImageContent); ok {
			images = append(images, tool.Image{Data: image.Data, MIMEType: image.MIMEType})
			continue
		}
		parts = append(parts, contentText(c))
	}
	return strings.Join(parts, "\n"), images
}

// contentText gives a text for every content that is no image, so that nothing is lost unseen.
func contentText(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.AudioContent:
		return fmt.Sprintf(audioContent, c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return strings.TrimSpace(fmt.Sprintf("%s (%s) %s", c.Name, c.URI, c.Description))
	case *sdk.EmbeddedResource:
		if c.Resource == nil {
			return emptyResource
		}
		if c.Resource.Blob != nil {
			return fmt.Sprintf(binaryResource, c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob))
		}
		return c.Resource.Text
	}
	return fmt.Sprintf(unknownContent, c)
}
