// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/safetext"
)

// A Prompt is one message of the user.
type Prompt struct {
	// Text is the prompt. With Content it is put in front of it.
	Text string
	// Content are further parts: images, documents, text.
	Content []Content
	// UUID names the message; results and cancellations refer to it. Empty means a fresh one.
	UUID string
	// Priority is "now", "next" or "later" for a prompt sent while a turn runs. Empty means the CLI's default.
	Priority string
	// NoTurn adds the message to the conversation without asking the model.
	NoTurn bool
	// Verbatim sends this prompt without expanding @-mentions and slash commands.
	Verbatim bool
}

// Text is a prompt of plain text.
func Text(text string) Prompt { return Prompt{Text: text} }

// Content is a part of a [Prompt]: see [TextContent], [ImageContent], [DocumentContent] and [RawContent].
type Content struct {
	block any
	err   error
}

// MarshalJSON encodes the part as a content block of the Messages API.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	return json.Marshal(c.block)
}

// TextContent is a part of text.
func TextContent(text string) Content {
	if problem := safetext.PromptProblem(text); problem != "" {
		return Content{err: errors.New("claude: a part of text " + problem)}
	}
	return Content{block: map[string]string{"type": "text", "text": text}}
}

// ImageContent is an image; mediaType is such as "image/png".
func ImageContent(mediaType string, data []byte) Content {
	return base64Block("image", mediaType, data)
}

// DocumentContent is a document; mediaType is such as "application/pdf".
func DocumentContent(mediaType string, data []byte) Content {
	return base64Block("document", mediaType, data)
}

// RawContent is a content block of the Messages API as it is.
func RawContent(block json.RawMessage) Content {
	if !isObject(block) {
		return Content{err: errors.New("claude: a content block is not a JSON object")}
	}
	return Content{block: block}
}

func base64Block(kind, mediaType string, data []byte) Content {
	if mediaType == "" || len(data) == 0 {
		return Content{err: fmt.Errorf("claude: an %s needs a media type and data", kind)}
	}
	source := map[string]string{"type": "base64", "media_type": mediaType, "data": base64.StdEncoding.EncodeToString(data)}
	return Content{block: map[string]any{"type": kind, "source": source}}
}

type userLine struct {
	Type            string      `json:"type"`
	Message         userContent `json:"message"`
	ParentToolUseID *string     `json:"parent_tool_use_id"`
	SessionID       string      `json:"session_id"`
	UUID            string      `json:"uuid"`
	Priority        string      `json:"priority,omitempty"`
	ShouldQuery     *bool       `json:"shouldQuery,omitempty"`
	ClientComposed  bool        `json:"client_composed,omitempty"`
}

type userContent struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// line encodes the prompt; a line the CLI cannot read would end it, so faults are found here.
func (p Prompt) line(verbatim bool) ([]byte, error) {
	switch p.Priority {
	case "", "now", "next", "later":
	default:
		return nil, &OptionError{Option: "Prompt.Priority", Reason: fmt.Sprintf("%q is not one of now, next, later", p.Priority)}
	}
	if problem := safetext.PromptProblem(p.Text); problem != "" {
		return nil, &OptionError{Option: "Prompt.Text", Reason: problem}
	}
	if p.UUID != "" && !ident.ValidUUID(p.UUID) {
		return nil, &OptionError{Option: "Prompt.UUID", Reason: fmt.Sprintf("%q is not a UUID", p.UUID)}
	}
	line := userLine{
		Type:           "user",
		Message:        userContent{Role: "user", Content: p.content()},
		UUID:           p.UUID,
		Priority:       p.Priority,
		ClientComposed: verbatim || p.Verbatim,
	}
	if p.UUID == "" {
		line.UUID = ident.NewUUID()
	}
	if p.NoTurn {
		line.ShouldQuery = new(bool)
	}
	return json.Marshal(line)
}

func (p Prompt) content() any {
	if len(p.Content) == 0 {
		return p.Text
	}
	if p.Text == "" {
		return p.Content
	}
	return append([]Content{TextContent(p.Text)}, p.Content...)
}
